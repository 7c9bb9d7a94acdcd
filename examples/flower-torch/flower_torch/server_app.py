"""The server: it aggregates over a simulated radio and evaluates the model."""

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

import floras
from floras.flower import FlorasStrategy
from flower_torch import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for the configured number of rounds, and print accuracy and privacy."""
    config = context.run_config
    strategy = FlorasStrategy(
        floras.Uplink(
            sequences=config["sequences"],
            length=config["length"],
            modulation="phase-corrected",
            receiver=f"clipped={config['receiver']}",
            snr_db=config["snr-db"],
            clip=task.CLIP_NORM,
        ),
        fraction_evaluate=0.0,
        min_available_nodes=config["clients"],
    )
    model = task.initial_model(config["partition-seed"])
    images, labels = task.tensors(task.federation(config["partition-seed"], config["clients"]).test)

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model.load_state_dict(arrays.to_torch_state_dict())
        loss, accuracy = task.evaluate(model, images, labels)
        return MetricRecord({"test-loss": loss, "test-accuracy": accuracy})

    result = strategy.start(
        grid, ArrayRecord(model.state_dict()), num_rounds=config["rounds"], evaluate_fn=evaluate
    )
    last = result.evaluate_metrics_serverapp[config["rounds"]]
    print(f"test accuracy {100 * last['test-accuracy']:.1f} % after {strategy.rounds} rounds")
    print(strategy.ledger.views())
