"""Models of PyTorch as one vector, for `floras.Uplink.aggregate`.

The vector has the floating-point tensors of a ``state_dict`` in their order, each row by row, in single
precision. Other tensors, such as the counter of a batch normalisation, are not part of it.

This module needs PyTorch (``pip install "./python[torch]"`` in a checkout).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch  # type: ignore[import-not-found,unused-ignore]

__all__ = ["flatten_state", "state_delta", "unflatten_state"]

State: TypeAlias = Mapping[str, Any]
"""A ``state_dict``: tensors by name."""


def flatten_state(state: State) -> npt.NDArray[np.float32]:
    """Return the floating-point tensors of a state as one vector.

    Parameters
    ----------
    state : mapping of str to Tensor
        A ``state_dict``, on any device.

    Returns
    -------
    ndarray of float32
        A new vector of shape ``(d,)``.

    Raises
    ------
    ValueError
        If no tensor is floating-point.

    Examples
    --------
    >>> import torch
    >>> flatten_state({"weight": torch.ones(2, 2), "steps": torch.tensor(7)}).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    parts = [
        tensor.detach().to("cpu", torch.float32).numpy().ravel()
        for tensor in state.values()
        if tensor.is_floating_point()
    ]
    if not parts:
        raise ValueError("the state must have a floating-point tensor")
    return np.concatenate(parts)


def unflatten_state(vector: npt.NDArray[np.floating], like: State) -> dict[str, Any]:
    """Return a vector as a state, the inverse of `flatten_state`.

    Parameters
    ----------
    vector : ndarray
        All floating-point values, of shape ``(d,)``.
    like : mapping of str to Tensor
        A state with the names, shapes, types and devices of the result. Tensors that are not floating-point
        are copied from it.

    Returns
    -------
    dict of str to Tensor
        For ``load_state_dict``.

    Raises
    ------
    ValueError
        If the vector has another number of values than the state.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> vector = flatten_state(model.state_dict())
    >>> _ = model.load_state_dict(unflatten_state(vector - 1.0, model.state_dict()))
    >>> bool(np.allclose(flatten_state(model.state_dict()), vector - 1.0))
    True
    """
    size = sum(tensor.numel() for tensor in like.values() if tensor.is_floating_point())
    if vector.shape != (size,):
        raise ValueError(f"vector must have the shape ({size},), not {vector.shape}")
    state, start = {}, 0
    for name, tensor in like.items():
        if not tensor.is_floating_point():
            state[name] = tensor.clone()
            continue
        part = np.array(vector[start : start + tensor.numel()])
        state[name] = torch.from_numpy(part).reshape(tensor.shape).to(tensor.device, tensor.dtype)
        start += tensor.numel()
    return state


def state_delta(common: State, trained: State) -> npt.NDArray[np.float32]:
    """Return a client's update: the common model *minus* the trained model.

    Parameters
    ----------
    common, trained : mapping of str to Tensor
        States of the same model.

    Returns
    -------
    ndarray of float32
        A row for `floras.Uplink.aggregate`.

    Raises
    ------
    ValueError
        If the states differ in a name, a shape or a kind of tensor, or have no floating-point tensor. The
        order of their entries does not matter: that of ``common`` counts.

    Examples
    --------
    >>> import torch
    >>> state_delta({"weight": torch.ones(2)}, {"weight": torch.zeros(2)}).tolist()
    [1.0, 1.0]
    """
    for name in common.keys() ^ trained.keys():
        raise ValueError(
            f"{name} must be in both states, not only in {'common' if name in common else 'trained'}"
        )
    for name, tensor in common.items():
        ours, theirs = tuple(tensor.shape), tuple(trained[name].shape)
        if ours != theirs:
            raise ValueError(f"{name} must have the shape {ours} of common in trained, not {theirs}")
        if tensor.is_floating_point() != trained[name].is_floating_point():
            raise ValueError(f"{name} must be floating-point in both states or in none")
    return flatten_state(common) - flatten_state({name: trained[name] for name in common})
