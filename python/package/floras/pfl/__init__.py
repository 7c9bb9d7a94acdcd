"""FLORAS inside pfl: an over-the-air uplink for `pfl.aggregate.simulate.SimulatedBackend`.

- `FlorasUplink` is a privacy mechanism: a gain for every user, noise for the sum.
- `FlorasAccountant` plans: any two of epsilon, delta and the number of sequences give the third.
- `CohortSampler` draws the users of a round as the accounting assumes it: different ones, all sets equally
  likely.

The server simulates the radio and sees the clipped updates itself. The privacy statements hold for
adversaries who see the output of the simulated base station, and equal those of a real radio. For real data,
leave the seed out. With a seed no view is a guarantee.

This module needs `pip install "./python[pfl]"` in a checkout.
"""

from floras.pfl.accountant import FlorasAccountant
from floras.pfl.sampler import CohortSampler
from floras.pfl.uplink import FlorasUplink

__all__ = ["CohortSampler", "FlorasAccountant", "FlorasUplink"]
