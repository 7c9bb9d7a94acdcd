"""What a round says about itself, as metrics of Flower.

Everything here is a function of the radio, of the settings and of who answered, and of nothing that the
clients computed. Norms of updates, or how many were clipped, would be, and no epsilon covers them; so they
are not here.
"""

from typing import Any

from flwr.app import MetricRecord

import floras
from floras._types import View


def of_round(
    result: floras.Aggregate, ledger: floras.Ledger, sequences: int | None, is_secret: bool
) -> MetricRecord:
    """The metrics of a round that is on record; if it `is_secret` who took part, they do not name anyone."""
    answered = len(result.clients)
    gains = [float(gain) for gain in result.gains]
    record = _who(ledger, result.selected, answered)
    if sequences is not None:
        record["floras-unused-sequences"] = sequences - result.selected
    record["floras-noise-std"] = float(result.noise_std)
    record["floras-mean-gain"] = sum(gains) / answered
    if not is_secret:
        record["floras-gains"] = gains
        record["floras-clients"] = [int(client) for client in result.clients]
    for view, epsilon in result.spend.items():
        record[f"floras-round-epsilon-{_metric(view)}"] = float(epsilon)
    record.update(_so_far(ledger, is_secret))
    return record


def nothing_sent(ledger: floras.Ledger, selected: int, answered: int, is_secret: bool) -> MetricRecord:
    """The metrics of a round in which nothing went over the air."""
    return MetricRecord({**_who(ledger, selected, answered), **_so_far(ledger, is_secret)})


def stopped(ledger: floras.Ledger, is_secret: bool) -> MetricRecord:
    """The metrics of the round that the budget has forbidden."""
    so_far = _so_far(ledger, is_secret)
    return MetricRecord({"floras-stopped": 1, "floras-round": int(ledger.rounds), **so_far})


def summary(
    uplink: floras.Uplink, ledger: floras.Ledger, seed: int | None, budget: float | None, view: View
) -> list[str]:
    """Lines that say at the start what the training is about to do."""
    settings = ", ".join(f"{key} = {value}" for key, value in uplink.settings.items() if value is not None)
    lines = [f"Uplink: {settings}", "The server simulates the radio and sees every update itself"]
    if uplink.clip is None:
        lines.append("Nothing clips the updates (uplink.clip), so that nothing is said about privacy")
    if seed is not None:
        lines.append("The seed is fixed: whoever knows it can take the noise off, and no view is a guarantee")
    if budget is not None:
        lines.append(f"Budget: epsilon {budget} in the {_name(view)} view")
        if view == "published":
            lines.append(
                "The published view is the paper's formula and no guarantee: this budget protects nobody"
            )
    if ledger.rounds:
        epsilon = ledger.epsilon(view)
        spent = "no finite epsilon" if epsilon is None else f"epsilon {epsilon:.4f}"
        lines.append(f"On record: {ledger.rounds} rounds, {spent} in the {_name(view)} view")
    return lines


def _who(ledger: floras.Ledger, selected: int, answered: int) -> MetricRecord:
    return MetricRecord(
        {
            "floras-round": int(ledger.rounds),
            "floras-selected": selected,
            "floras-answered": answered,
            "floras-failed": selected - answered,
        }
    )


def _so_far(ledger: floras.Ledger, is_secret: bool) -> MetricRecord:
    """The privacy of all rounds together, in every view that has an epsilon."""
    record = MetricRecord()
    for view, statement in ledger.views().items():
        if statement["epsilon"] is not None:
            record[f"floras-epsilon-{_metric(view)}"] = float(statement["epsilon"])
    worst: dict[str, Any] | None = ledger.worst
    if worst is not None and not is_secret:
        record["floras-worst-client"] = int(worst["client"])
        record["floras-worst-epsilon"] = float(worst["epsilon"])
    record["floras-delta"] = float(ledger.delta)
    return record


def _metric(view: str) -> str:
    """A view's name in a metric; the paper's formula, which does not hold as printed, bears a mark."""
    return "published-no-guarantee" if view == "published" else _name(view)


def _name(view: str) -> str:
    return view.replace("_", "-")
