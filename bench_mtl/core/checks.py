"""Checks of arguments: every public function checks its input and names what is wrong, so that internal functions need not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.errors import InputError, did_you_mean, listed
from bench_mtl.core.types import AnyArray, Array, Matrix

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def real_array(name: str, value: Any, *, ndim: int | None = None, is_nan_allowed: bool = False) -> Array:
    """`value` as a C-contiguous float64 array, finite but for NaN where it is allowed, of dimension `ndim`.

    Raises InputError: not numeric, of another dimension, or with NaN or inf (its first place is named).
    """
    try:
        if np.iscomplexobj(value):
            raise InputError(f"{name} must be an array of real numbers, not complex ones")
        array = np.ascontiguousarray(value, dtype=np.float64) if np.ndim(value) else np.asarray(value, dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError) as error:  # lists of different lengths among them
        raise InputError(f"{name} must be an array of real numbers: {error}") from None
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name} must have {ndim} dimension(s), but has shape {array.shape}")
    require_finite(name, np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf) if is_nan_allowed else array)
    return array


def floating_array(name: str, value: Any, *, ndim: tuple[int, ...] = ()) -> AnyArray:
    """`value` as an array of float32 (where it is one already) or float64, in its own memory order, not copied if it can be helped.

    Finiteness is not checked: compiled kernels do it in their first pass and name the place with `require_finite`. Raises InputError: not
    numeric, or of a number of dimensions that is not in `ndim`, where that is not empty.
    """
    array = value
    if is_sparse(value):
        raise InputError(f"{name} must be an array here: sparse matrices are not supported")
    if type(array) is not np.ndarray or array.dtype not in _FLOATS:
        try:
            array = np.asarray(value)
            if array.dtype not in _FLOATS:
                array = array.astype(np.float64, casting="same_kind" if array.dtype.kind == "f" else "safe")
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} must be an array of real numbers: {error}") from None
    if ndim and array.ndim not in ndim:
        raise InputError(f"{name} must have {' or '.join(map(str, ndim))} dimension(s), but has shape {array.shape}")
    return array


def real_matrix(name: str, value: Any) -> Matrix:
    """`value` as a finite float64 matrix: a C-contiguous array, or CSR (sorted, duplicates summed) when it is sparse."""
    if not is_sparse(value):
        return real_array(name, value, ndim=2)
    matrix = canonical_csr(name, value, np.float64)
    require_finite(name, matrix.data)
    return matrix


def canonical_csr(name: str, value: Any, dtype: Any) -> Matrix:
    """A sparse matrix in CSR form with sorted columns and no duplicates, itself where it is one.

    Raises InputError: not two dimensions, or an index of no row or column.
    """
    if value.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, but has shape {value.shape}")
    if value.format in ("csr", "csc"):  # compiled code would read beyond arrays
        count, indices, ends = value.shape[1 if value.format == "csr" else 0], value.indices, value.indptr
        falls = np.any(ends[1:] < ends[:-1]) or ends[-1] > len(indices)
        if falls or (len(indices) and not 0 <= indices.min() <= indices.max() < count):
            raise InputError(f"{name} has indices of rows or columns that are not there, of {value.shape[0]} x {value.shape[1]}")
    matrix: Matrix = sp.csr_array(value, dtype=dtype)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the arrays may be those of `value`
        matrix.sum_duplicates()
    return matrix


def is_sparse(value: Any) -> bool:
    """Whether `value` is a SciPy sparse matrix or array, of any format."""
    return bool(sp.issparse(value))


def require_finite(name: str, array: Array) -> None:
    """Raise InputError naming the first NaN or inf of `array`."""
    # A sum is one vectorised pass and is finite for all ordinary data; only a suspicious one is searched entry by entry.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = np.argwhere(~np.isfinite(np.atleast_1d(array)))
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        kind = "NaN" if np.isnan(np.atleast_1d(array)[place]) else "inf"
        raise InputError(f"{name} has {kind} at index {place if len(place) > 1 else place[0]}: only finite numbers are allowed")


def real_number(name: str, value: Any, *, minimum: float = 0.0, strict: bool = False) -> float:
    """`value` as a finite float at least `minimum` (above it when `strict`)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < minimum or (strict and number == minimum):
        least = f" and {'above' if strict else 'at least'} {minimum:g}" if minimum > -math.inf else ""
        raise InputError(f"{name} must be finite{least}, not {number:g}")
    return number


def number_or_share(name: str, value: Any, largest: Callable[[], float]) -> float:
    """`value` as a finite float of at least 0; a text such as "0.1 max" as that share of `largest()`."""
    if not isinstance(value, str):
        return real_number(name, value)
    share, _, unit = value.partition(" ")
    try:
        factor = float(share)
    except ValueError:
        factor = -1.0
    if unit.strip() != "max" or not 0.0 <= factor < math.inf:
        raise InputError(f"{name} must be a number of at least 0, or a share such as '0.1 max', not '{value}'")
    with np.errstate(all="ignore"):
        number = factor * largest()
    if not math.isfinite(number):
        raise InputError(f"{name} '{value}' is no finite number on these data, whose gradient at 0 overflows: scale them, or give a number")
    return number


def positive_numbers(name: str, values: Any) -> tuple[float, ...]:
    """`values` as finite floats above 0, at least one."""
    if not isinstance(values, (tuple, list)) or not values:
        raise InputError(f"{name} must be a non-empty list of numbers, not {values!r}")
    return tuple(real_number(name, value, strict=True) for value in values)


def whole_number(name: str, value: Any, *, minimum: int = 0) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InputError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """`value` as a bool, if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be true or false, not {value!r}")
    return bool(value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {listed(allowed, str(value))}, not {value!r}{hint}")
    return str(value)
