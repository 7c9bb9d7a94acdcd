"""The client: it trains on its own digits and clips its update."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from floras.flower import clip_mod
from flower_torch import task

app = ClientApp(mods=[clip_mod(task.CLIP_NORM)])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the common model on this client's digits."""
    config = context.run_config
    model = task.Network()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    digits = task.federation(config["partition-seed"], config["clients"])
    images, labels = task.tensors(digits.clients[int(context.node_config["partition-id"])])
    loss = task.train(model, images, labels, config)
    # Metrics are not sent over the air, and no epsilon covers them. An app for real data sends none.
    metrics = MetricRecord({"train-loss": loss, "num-examples": len(labels)})
    arrays = ArrayRecord(model.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
