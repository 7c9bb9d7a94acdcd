"""A model as Flower sends it, many named arrays, and as the radio sends it, one vector.

The vector has the floating-point arrays of the model in their order, each row by row, in single precision.
Integer and boolean arrays, such as the counter of a batch normalisation, are not part of it: they keep the
server's value. A difference that is not finite, because training diverged, becomes zero: divergence depends
on the client's data, and must not show in who takes part.
"""

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class GlobalModel:
    """The common model `w` of a round. It converts the clients' replies into differences `x = w - w_k`.

    Parameters
    ----------
    record : ArrayRecord
        The arrays of the model.

    Raises
    ------
    ValueError
        If no array is floating-point, or if one cannot be read.

    Examples
    --------
    >>> record = ArrayRecord([np.ones((2, 2), np.float32), np.zeros(3)])
    >>> model = GlobalModel(record)
    >>> model.size
    7
    >>> model.difference(ArrayRecord([np.zeros((2, 2), np.float32), np.ones(3)])).tolist()
    [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    """

    def __init__(self, record: ArrayRecord) -> None:
        self._arrays = {key: _numpy(key, array) for key, array in record.items()}
        self.trained = [key for key, array in self._arrays.items() if _is_floating(array)]
        self.kept = [key for key in self._arrays if key not in self.trained]
        for key in self.kept:
            _check_kept(key, self._arrays[key])
        self.size = sum(self._arrays[key].size for key in self.trained)
        if self.size == 0:
            raise ValueError("the model must have at least one floating-point array")

    def difference(self, trained: ArrayRecord) -> Vector:
        """Return the difference `w - w_k` for a trained model of a client.

        Parameters
        ----------
        trained : ArrayRecord
            The client's model `w_k`.

        Returns
        -------
        ndarray of float32
            The difference, of shape ``(size,)``; zero if it is not finite.

        Raises
        ------
        ValueError
            If arrays are missing, unknown or of another shape.
        """
        self._check_keys(trained, optional=self.kept)
        vector = np.empty(self.size, np.float32)
        for key, piece in self._pieces(vector):
            ours, theirs = self._arrays[key], self._values(trained, key)
            # The difference is rounded once, at the end, for single and for double precision.
            wide = np.result_type(ours.dtype, np.float32)
            with np.errstate(over="ignore", invalid="ignore"):
                piece[...] = np.subtract(ours, theirs, dtype=wide).ravel()
        return _finite(vector)

    def read(self, difference: ArrayRecord) -> Vector:
        """Return the difference that a client has computed and clipped itself.

        Parameters
        ----------
        difference : ArrayRecord
            The difference by arrays, as `write` makes it.

        Returns
        -------
        ndarray of float32
            The difference, of shape ``(size,)``; zero if it is not finite.

        Raises
        ------
        ValueError
            If arrays are missing, unknown or of another shape.
        """
        self._check_keys(difference, optional=[])
        vector = np.empty(self.size, np.float32)
        for key, piece in self._pieces(vector):
            with np.errstate(over="ignore"):
                piece[...] = self._values(difference, key).ravel()
        return _finite(vector)

    def write(self, difference: Vector) -> ArrayRecord:
        """Return a difference as arrays of single precision, the inverse of `read`.

        Parameters
        ----------
        difference : ndarray of float32
            The difference, of shape ``(size,)``.

        Returns
        -------
        ArrayRecord
            One array for each trained array of the model.
        """
        shaped = {key: piece.reshape(self._arrays[key].shape) for key, piece in self._pieces(difference)}
        return ArrayRecord({key: Array(np.ascontiguousarray(array)) for key, array in shaped.items()})

    def step(self, mean: Vector) -> ArrayRecord:
        """Return the next model `w - mean`.

        Parameters
        ----------
        mean : ndarray of float32
            The mean difference, of shape ``(size,)``.

        Returns
        -------
        ArrayRecord
            Arrays with the keys, shapes and types of this model.
        """
        arrays = dict(self._arrays)
        for key, piece in self._pieces(mean):
            old = self._arrays[key]
            wide = np.result_type(old.dtype, np.float32)
            new = np.subtract(old, piece.reshape(old.shape), dtype=wide)
            arrays[key] = np.asarray(new, dtype=old.dtype).reshape(old.shape)
        return ArrayRecord({key: Array(array) for key, array in arrays.items()})

    def _pieces(self, vector: Vector) -> list[tuple[str, Vector]]:
        """Return the part of the vector of each trained array."""
        pieces, start = [], 0
        for key in self.trained:
            stop = start + self._arrays[key].size
            pieces.append((key, vector[start:stop]))
            start = stop
        return pieces

    def _check_keys(self, record: ArrayRecord, optional: list[str]) -> None:
        missing = [key for key in self.trained if key not in record]
        unknown = [key for key in record if key not in self.trained and key not in optional]
        if missing:
            raise ValueError(f"it lacks the arrays {missing}")
        if unknown:
            raise ValueError(f"it has arrays that the model does not have: {unknown}")

    def _values(self, record: ArrayRecord, key: str) -> NDArray[np.floating]:
        array, shape = _numpy(key, record[key]), self._arrays[key].shape
        if array.shape != shape:
            raise ValueError(f"array {key!r} must have the shape {shape}, not {array.shape}")
        if not _is_floating(array):
            raise ValueError(f"array {key!r} must have floating-point values, not {array.dtype}")
        return array


def _numpy(key: str, array: Array) -> NDArray[np.floating]:
    try:
        values = array.numpy()
    # Received bytes can make NumPy raise almost any exception, and must not end the training.
    except Exception as error:
        raise ValueError(f"array {key!r} cannot be read: {error}") from error
    if not isinstance(values, np.ndarray):
        raise ValueError(f"array {key!r} cannot be read: it is not a NumPy array")
    return values


def _is_floating(array: NDArray[np.floating]) -> bool:
    return np.issubdtype(array.dtype, np.floating)


def _check_kept(key: str, array: NDArray[np.floating]) -> None:
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.bool_)):
        raise ValueError(f"array {key!r} of the model must have real numbers, not {array.dtype}")


def _finite(vector: Vector) -> Vector:
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)
