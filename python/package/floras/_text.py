"""Numbers as text for tables."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_DIGITS = 4


def upper(value: float) -> str:
    """Return an upper bound with four significant digits, rounded up.

    Parameters
    ----------
    value : float
        The bound.

    Returns
    -------
    str
        A number that is not below it.
    """
    return _rounded(value, ROUND_CEILING)


def lower(value: float) -> str:
    """Return a lower bound with four significant digits, rounded down.

    Parameters
    ----------
    value : float
        The bound.

    Returns
    -------
    str
        A number that is not above it.
    """
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, rounding: str) -> str:
    # The shortest decimal that is read as this number: 12.9 remains 12.9.
    exact = Decimal(repr(float(value)))
    return f"{float(Context(prec=_DIGITS, rounding=rounding).plus(exact)):.{_DIGITS}g}"


def bound(epsilon: float | None, above: float | None = None) -> str:
    """Return an upper bound on epsilon as the program prints it in tables, with four digits.

    Parameters
    ----------
    epsilon : float or None
        The bound, if there is a finite one.
    above : float or None
        No bound up to this number is established.

    Returns
    -------
    str
        A number, ``"> 1e5"``, or ``"none"``.
    """
    if epsilon is not None:
        return upper(epsilon)
    return "none" if above is None else f"> {above:.0e}".replace("e+0", "e").replace("e+", "e")


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    Parameters
    ----------
    number : int
        The number.
    what : str
        The noun in the singular.

    Returns
    -------
    str
        Such as ``"1 round"`` or ``"2 rounds"``.
    """
    return f"{number} {what}{'' if number == 1 else 's'}"
