"""Checks of arguments: every public function checks its input and names what is wrong, so that internal functions need not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.errors import InputError, listed, nearest
from bench_mtl.core.types import AnyArray, Array, Matrix

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def real_array(name: str, value: Any, *, ndim: int | None = None, is_nan_allowed: bool = False) -> Array:
    """`value` as a C-contiguous float64 array, finite but for NaN where it is allowed, of dimension `ndim`.

    Raises InputError: not numeric, of another dimension, or with NaN or inf (its first place is named).
    """
    try:
        if np.iscomplexobj(value):
            raise not_real(name, value, "not complex ones")
        require_unmasked(name, value)
        array = np.ascontiguousarray(value, dtype=np.float64) if np.ndim(value) else np.asarray(value, dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:  # lists of different lengths among them
        raise not_real(name, value, error) from None
    if ndim is not None and array.ndim != ndim:
        raise InputError(name, array.shape, f"have {ndim} dimension(s)")
    require_finite(name, np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf) if is_nan_allowed else array)
    return array


def require_unmasked(name: str, value: Any) -> None:
    """Raise InputError for a masked array with masked entries, whose mask would be lost."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise not_real(name, value, "masked entries are not supported, fill them")


def not_real(name: str, value: Any, why: object) -> InputError:
    """Return the error for what is no array of real numbers."""
    allowed = "an array of real numbers"
    return InputError(name, value, allowed, sentence=f"{name} must be {allowed}: {why}")


def floating_array(name: str, value: Any, *, ndim: tuple[int, ...] = ()) -> AnyArray:
    """`value` as an array of float32 (where it is one already) or float64, in its own memory order, not copied if it can be helped.

    Finiteness is not checked: compiled kernels do it in their first pass and name the place with `require_finite`. Raises InputError: not
    numeric, or of a number of dimensions that is not in `ndim`, where that is not empty.
    """
    array = value
    if is_sparse(value):
        raise InputError(name, value, "an array here", sentence=f"{name} must be an array here: sparse matrices are not supported")
    if type(array) is not np.ndarray or array.dtype not in _FLOATS:
        require_unmasked(name, value)
        try:
            array = np.asarray(value)
            if array.dtype not in _FLOATS:
                array = array.astype(np.float64, casting="same_kind" if array.dtype.kind == "f" else "safe")
        except (TypeError, ValueError) as error:
            raise not_real(name, value, error) from None
    if ndim and array.ndim not in ndim:
        raise InputError(name, array.shape, f"have {' or '.join(map(str, ndim))} dimension(s)")
    return array


def real_matrix(name: str, value: Any) -> Matrix:
    """`value` as a finite float64 matrix: a C-contiguous array, or CSR (sorted, duplicates summed) when it is sparse.

    Indices have 32 bits where these are enough: products read half as much, and kernels are compiled for one kind.
    """
    if not is_sparse(value):
        return real_array(name, value, ndim=2)
    matrix = canonical_csr(name, value, np.float64)
    require_finite(name, matrix.data)
    if matrix.indices.dtype == np.int32 or max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max:
        return matrix
    short = sp.csr_array((matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)), shape=matrix.shape)
    short.has_sorted_indices = short.has_canonical_format = True
    return short


def canonical_csr(name: str, value: Any, dtype: Any) -> Matrix:
    """A sparse matrix in CSR form with sorted columns and no duplicates, itself where it is one.

    Raises InputError: not two dimensions, complex numbers, or an index of no row or column.
    """
    if value.ndim != 2:
        raise InputError(name, value.shape, "have 2 dimensions")
    if value.dtype.kind == "c":
        raise not_real(name, value, "not complex ones")
    if value.format in ("csr", "csc"):  # compiled code would read beyond arrays
        count, indices, ends = value.shape[1 if value.format == "csr" else 0], value.indices, value.indptr
        falls = ends[0] != 0 or np.any(ends[1:] < ends[:-1]) or ends[-1] > len(indices)
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
        value = float(np.atleast_1d(array)[place])
        where = f"{'NaN' if math.isnan(value) else 'inf'} at index {place if len(place) > 1 else place[0]}"
        raise InputError(name, value, "finite", sentence=f"{name} has {where}: only finite numbers are allowed")


def real_number(
    name: str, value: Any, *, minimum: float = 0.0, strict: bool = False, maximum: float = math.inf, below: float = math.inf
) -> float:
    """`value` as a finite float of at least `minimum` (above it when `strict`), at most `maximum` and less than `below`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(name, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and minimum <= number <= maximum and number < below) or (strict and number == minimum):
        ends = [("above" if strict else "at least", minimum), ("at most", maximum), ("below", below)]
        limits = [f"{word} {end:g}" for word, end in ends if math.isfinite(end)]
        raise InputError(
            name, number, " and ".join(limits if min(maximum, below) < math.inf and math.isfinite(number) else ["finite", *limits])
        )
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
        raise InputError(name, value, "a number of at least 0, or a share such as '0.1 max'")
    with np.errstate(all="ignore"):
        number = factor * largest()
    if not math.isfinite(number):
        raise InputError(f"{name} '{value}' is no finite number on these data, whose gradient at 0 overflows: scale them, or give a number")
    return number


def positive_numbers(name: str, values: Any) -> tuple[float, ...]:
    """`values` as finite floats above 0, at least one."""
    if not isinstance(values, (tuple, list)) or not values:
        raise InputError(name, values, "a non-empty list of numbers")
    return tuple(real_number(name, value, strict=True) for value in values)


def whole_number(name: str, value: Any, *, minimum: int = 0, maximum: int | None = None, why: str = "") -> int:
    """`value` as an int of at least `minimum` and at most `maximum`; `why` ends the message, such as ", the number of rows"."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum or (maximum is not None and value > maximum):
        most = "" if maximum is None else f" and at most {maximum}"
        allowed = f"a whole number of at least {minimum}{most}{why}"
        if isinstance(value, float) and value.is_integer():
            raise InputError(name, value, allowed, sentence=f"{name} must be {allowed}, without a decimal point, not {value!r}")
        raise InputError(name, value, allowed)
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """`value` as a bool, if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(name, value, "true or false")
    return bool(value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        word = value if isinstance(value, str) else ""
        raise InputError(name, value, f"one of {listed(allowed, word)}", near=nearest(word, allowed))
    return str(value)


def unless_none(check: Callable[..., Any], name: str, value: Any, *limits: Any, **how: Any) -> None:
    """Check a value that may be left out, by one of the checks above."""
    if value is not None:
        check(name, value, *limits, **how)


def require_shape(name: str, array: Array, *shapes: tuple[int, ...], why: str = "") -> None:
    """Raise InputError unless `array` has one of the shapes; `why` ends the sentence that says which, such as " to match X"."""
    if array.shape not in shapes:
        raise InputError(name, array.shape, f"have shape {' or '.join(map(str, shapes))}{why}")
