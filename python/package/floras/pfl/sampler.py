"""The users of a round: `K` different users out of `M`, all sets equally likely.

The accounting of `K` of `M` clients assumes this draw. Neither of pfl's own samplers does it. `random` may
draw a user twice in one round, which doubles this user's effect. `minimize_reuse` cycles in a known order, so
the selection is not secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

User = TypeVar("User")


class CohortSampler(Generic[User]):
    """Draws the users of one cohort after the other, for pfl's `FederatedDataset`.

    Every `cohort_size` calls return different users, all sets of them equally likely. So `cohort_size` must
    be the `train_cohort_size` of the algorithm, and the backend must not overshoot it.

    Parameters
    ----------
    users : iterable
        All users, different from one another.
    cohort_size : int
        K, the number of users in a cohort, from 1 to the number of users.
    seed : int, optional
        Makes the draw reproducible, for simulations. Anyone who knows it knows who took part, and sampling
        then gives no privacy. By default the draw comes from the operating system.

    Raises
    ------
    TypeError
        If ``cohort_size`` is not an integer.
    ValueError
        If a user is repeated, or if ``cohort_size`` is out of its range.

    Examples
    --------
    >>> sampler = CohortSampler(["ann", "bob", "eve"], cohort_size=2, seed=1)
    >>> first, second = sampler(), sampler()
    >>> first != second
    True
    """

    def __init__(self, users: Iterable[User], cohort_size: int, *, seed: int | None = None) -> None:
        self._users = list(users)
        if len(set(self._users)) != len(self._users):
            raise ValueError("users must be different from one another")
        if isinstance(cohort_size, bool) or not isinstance(cohort_size, int):
            raise TypeError(f"cohort_size must be an integer, not {cohort_size!r}")
        if not 1 <= cohort_size <= len(self._users):
            raise ValueError(
                f"cohort_size must be from 1 to {len(self._users)}, the users there are, not {cohort_size}"
            )
        self._cohort_size = cohort_size
        self._generator = np.random.default_rng(seed)
        self._waiting: list[int] = []

    def __call__(self) -> User:
        """Return the next user of the cohort."""
        if not self._waiting:
            # Its own generator: pfl seeds NumPy's global one before every call.
            drawn = self._generator.choice(len(self._users), size=self._cohort_size, replace=False)
            self._waiting = drawn.tolist()
        return self._users[self._waiting.pop()]
