"""The example on Flower's deployment engine: a SuperLink and three SuperNodes, all processes on loopback."""

import json
from pathlib import Path

import numpy as np
from flower_engines import engine, variant, wait_until

# In round 2 this client's device, a whole SuperNode, dies while it trains.
DYING_CLIENT = """
import os, signal
from pathlib import Path
from flwr.clientapp import ClientApp
from floras.flower import clip_mod
from flower_digits import client_app, task

app = ClientApp(mods=[clip_mod(task.CLIP_NORM)])

@app.train()
def train(message, context):
    if context.node_config["partition-id"] == 2 and message.content["config"]["server-round"] == 2:
        os.kill(int(Path(context.node_config["pid-file"]).read_text()), signal.SIGKILL)
        os._exit(1)
    return client_app.train(message, context)
"""

# The server dies once, after round 2: the round is in the ledger, and its model not yet saved.
DYING_SERVER = """
import os, signal
from flower_digits import server_app

save, calls = server_app.save_model, []

def save_or_die(state, arrays):
    calls.append("before the first round, or after a round")
    if len(calls) == 3 and not (state / "died").exists():
        (state / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    save(state, arrays)

server_app.save_model = save_or_die
app = server_app.app
"""


def test_a_dead_node_and_a_restarted_server(tmp_path: Path) -> None:
    """One SuperNode of three is killed in round 2, and the server after it; another does the third round."""
    state = tmp_path / "state"
    state.mkdir()
    app = variant(tmp_path, DYING_CLIENT, DYING_SERVER)
    options = ["--run-config", f"state='{state}' clients=3 rounds=3 timeout=20.0"]
    with engine(tmp_path) as deployment:
        deployment.start_link()
        for number in range(3):
            deployment.start_node(number, 3)
        deployment.run(app, *options)
        wait_until((state / "died").exists, 180, "the server to die after round 2", deployment.logs)
        first = (state / "ledger.jsonl").read_text()
        with np.load(state / "model.npz") as file:
            after_round_1 = file["weights"]
        assert np.any(after_round_1 != 0)
        deployment.run(app, *options)
        wait_until((state / "result.json").exists, 180, "the second server to finish", deployment.logs)

    both = (state / "ledger.jsonl").read_text()
    assert both.startswith(first), "what was spent before the restart is still on record"
    result = json.loads((state / "result.json").read_text())
    assert list(result["train"]) == ["3"], "one round was left to do"
    last = result["train"]["3"]
    assert last["floras-round"] == 3
    # The SuperLink holds a node that died for connected for another minute, and so it was asked again.
    assert (last["floras-selected"], last["floras-answered"], last["floras-failed"]) == (3, 2, 1)
    assert last["floras-unused-sequences"] == 21
    assert last["floras-epsilon-actual"] > last["floras-round-epsilon-actual"]
    rounds = [json.loads(line) for line in both.splitlines()]
    assert [len(line["clients"]) for line in rounds if "clients" in line][-3:] == [3, 2, 2]
    nodes = json.loads((state / "ledger.jsonl.nodes.json").read_text())["nodes"]
    assert sorted(nodes.values()) == [0, 1, 2]
