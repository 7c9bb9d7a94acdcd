"""FLORAS for Flower: a strategy whose sums go over a simulated radio, and a mod that clips on the device.

One line of a server changes, `FedAvg` becomes `FlorasStrategy`, and one of a client::

    strategy = FlorasStrategy(uplink=floras.Uplink(sequences=64, length=64, clip=1.0), fraction_train=1.0)
    app = ClientApp(mods=[clip_mod(1.0)])

**Who simulates the radio.** The server does. It receives every client's update, so nothing is hidden from the
server itself. The statements of privacy are about whoever sees what comes out of the simulated base station:
the sums, the models and the metrics. They are those that a real radio would have, as long as nobody knows the
seed (`seed=None`).
"""

from floras.flower.clip import clip_mod
from floras.flower.strategy import FlorasStrategy

__all__ = ["FlorasStrategy", "clip_mod"]
