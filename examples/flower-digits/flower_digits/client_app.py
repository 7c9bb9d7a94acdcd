"""The client: it trains on its own digits and clips its update."""

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from floras.flower import clip_mod
from flower_digits import task

app = ClientApp(mods=[clip_mod(task.CLIP_NORM)])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Trains the common model on this client's data."""
    images, labels = task.data_of(context.run_config).clients[int(context.node_config["partition-id"])]
    arrays, loss = task.train(message.content.array_records["arrays"], images, labels, context.run_config)
    # Metrics are not sent over the air, and no epsilon covers them. An app for real data sends none.
    metrics = MetricRecord({"train-loss": loss, "num-examples": len(labels)})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
