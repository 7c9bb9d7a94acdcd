"""The server: it aggregates over a simulated radio and evaluates the model."""

import json
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Result

import floras
from floras.flower import FlorasStrategy
from flower_digits import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Trains until the rounds are done or the budget is spent."""
    config: task.Config = context.run_config
    state = Path(config["state"]) if config["state"] else None
    strategy = make_strategy(config, state)
    images, labels = task.data_of(config).test

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        save_model(state, arrays)
        loss, accuracy = task.evaluate(arrays, images, labels, config["l2"])
        return MetricRecord({"test-loss": loss, "test-accuracy": accuracy})

    before = strategy.rounds
    result = strategy.start(
        grid,
        load_model(state),
        num_rounds=max(0, config["rounds"] - strategy.rounds),
        timeout=config["timeout"],
        evaluate_fn=evaluate,
    )
    save_result(state, result, before)


def make_strategy(config: task.Config, state: Path | None) -> FlorasStrategy:
    """The strategy of the run's configuration."""
    uplink = floras.Uplink(
        clients=config["clients"],
        sequences=config["sequences"],
        length=config["length"],
        modulation=config["modulation"],
        receiver=f"clipped={config['receiver']}" if config["receiver"] else "paper",
        snr_db=config["snr-db"],
        clip=task.CLIP_NORM,
        delta=config["delta"],
    )
    return FlorasStrategy(
        uplink=uplink,
        seed=None if config["noise-seed"] < 0 else config["noise-seed"],
        budget=config["budget"] or None,
        view=config["view"],
        ledger=None if state is None else state / "ledger.jsonl",
        fraction_train=config["fraction-train"],
        fraction_evaluate=0.0,
        min_available_nodes=config["clients"],
    )


def load_model(state: Path | None) -> ArrayRecord:
    """The model that was saved last, or the initial one."""
    if state is None or not (state / "model.npz").exists():
        return task.initial_model()
    with np.load(state / "model.npz") as file:
        return task.to_record(file["weights"], file["bias"])


def save_model(state: Path | None, arrays: ArrayRecord) -> None:
    """Replaces the saved model in one step."""
    if state is None:
        return
    weights, bias = task.from_record(arrays)
    np.savez(state / "draft.npz", weights=weights, bias=bias)
    (state / "draft.npz").replace(state / "model.npz")


def save_result(state: Path | None, result: Result, before: int) -> None:
    """Adds the metrics of this start's rounds to those of the rounds before it."""
    if state is None:
        return
    path = state / "result.json"
    metrics = json.loads(path.read_text("utf-8")) if path.exists() else {"train": {}, "test": {}}
    news = {"train": result.train_metrics_clientapp, "test": result.evaluate_metrics_serverapp}
    for kind, records in news.items():
        metrics[kind].update({str(before + number): dict(record) for number, record in records.items()})
    path.write_text(json.dumps(metrics, indent=1), encoding="utf-8")
