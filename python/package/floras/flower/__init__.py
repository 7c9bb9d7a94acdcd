"""FLORAS for Flower: a strategy that aggregates over a simulated radio, and a mod that clips on the device.

One line of a server changes, from `FedAvg` to `FlorasStrategy`, and one line of a client::

    strategy = FlorasStrategy(uplink=floras.Uplink(sequences=64, length=64, clip=1.0), fraction_train=1.0)
    app = ClientApp(mods=[clip_mod(1.0)])

**Who simulates the radio.** The server does. It receives every client's update, so nothing is hidden from the
server itself. The privacy statements hold for adversaries who see the output of the simulated base station:
the sums, the models and the metrics. They equal those of a real radio if there is no seed (`seed=None`).
"""

from floras.flower.clip import clip_mod
from floras.flower.strategy import FlorasStrategy

__all__ = ["FlorasStrategy", "clip_mod"]
