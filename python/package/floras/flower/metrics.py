"""Metrics of a round for Flower.

They depend on the radio, on the settings and on which clients answered, but not on what clients computed.
Norms of updates and the number of clipped updates are not reported: no epsilon covers them.
"""

from flwr.app import MetricRecord

import floras


def of_round(
    result: floras.Aggregate, ledger: floras.Ledger, sequences: int | None, is_secret: bool
) -> MetricRecord:
    """Return the metrics of a recorded round.

    Parameters
    ----------
    result : floras.Aggregate
        The round.
    ledger : floras.Ledger
        All rounds so far, including this one.
    sequences : int or None
        N, the number of sequences; ``None`` for a scheme without sequences.
    is_secret : bool
        Whether the selection of clients is secret. Then no metric identifies a client.

    Returns
    -------
    MetricRecord
        The channel, the clients and epsilon in every view.
    """
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
    """Return the metrics of a round without any update.

    Parameters
    ----------
    ledger : floras.Ledger
        All recorded rounds.
    selected, answered : int
        Numbers of clients that were selected and that answered.
    is_secret : bool
        Whether the selection of clients is secret. Then no metric identifies a client.

    Returns
    -------
    MetricRecord
        The clients and epsilon in every view.
    """
    return MetricRecord({**_who(ledger, selected, answered), **_so_far(ledger, is_secret)})


def stopped(ledger: floras.Ledger, is_secret: bool) -> MetricRecord:
    """Return the metrics of the first round that the budget does not allow.

    Parameters
    ----------
    ledger : floras.Ledger
        All recorded rounds.
    is_secret : bool
        Whether the selection of clients is secret. Then no metric identifies a client.

    Returns
    -------
    MetricRecord
        ``floras-stopped`` and epsilon in every view.
    """
    so_far = _so_far(ledger, is_secret)
    return MetricRecord({"floras-stopped": 1, "floras-round": int(ledger.rounds), **so_far})


def summary(
    uplink: floras.Uplink, ledger: floras.Ledger, seed: int | None, budget: float | None, view: str
) -> list[str]:
    """Return the settings of a training as lines for the log.

    Parameters
    ----------
    uplink : floras.Uplink
        The radio.
    ledger : floras.Ledger
        All recorded rounds.
    seed : int or None
        The seed of the noise; ``None`` for noise from the operating system.
    budget : float or None
        The epsilon that is not exceeded.
    view : str
        The view of the budget.

    Returns
    -------
    list of str
        The lines.
    """
    settings = ", ".join(f"{key} = {value}" for key, value in uplink.settings.items() if value is not None)
    lines = [f"Uplink: {settings}", "The server simulates the radio and sees every update itself"]
    if uplink.clip is None:
        lines.append("Updates are not clipped (uplink.clip), so no epsilon is established")
    if seed is not None:
        lines.append(
            "The seed is fixed: anyone who knows it can subtract the noise, and no view is a guarantee"
        )
    if budget is not None:
        lines.append(f"Budget: epsilon {budget} in the {view} view")
        if view == "published":
            lines.append("The published formula is not a guarantee: this budget protects no client")
    if ledger.rounds:
        epsilon = ledger.epsilon(view)
        spent = "no finite epsilon" if epsilon is None else f"epsilon {epsilon:.4f}"
        lines.append(f"Recorded: {ledger.rounds} rounds, {spent} in the {view} view")
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
    """Return the privacy of all rounds together, in every view that has an epsilon."""
    record = MetricRecord()
    for view, statement in ledger.views().items():
        if statement.epsilon is not None:
            record[f"floras-epsilon-{_metric(view)}"] = statement.epsilon
    worst = ledger.worst
    if worst is not None and not is_secret:
        record["floras-worst-client"] = worst.client
        record["floras-worst-epsilon"] = worst.epsilon
    record["floras-delta"] = float(ledger.delta)
    return record


def _metric(view: str) -> str:
    """Return a view's name in a metric. The published formula is marked: it does not hold as printed."""
    return "published-no-guarantee" if view == "published" else view
