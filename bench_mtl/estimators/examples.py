"""Examples as a fit takes them: in blocks, weighted, with a constant feature, within the range of floating-point numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from bench_mtl.core.checks import is_sparse, real_number
from bench_mtl.core.designs import frozen, largest_entry
from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.core.threads import fitting_blas_threads
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data import TaskData

#: Examples that repetitions may make at most.
_MOST_REPEATED = 10_000_000
#: And how many times the examples they make at most where weights of the loss do as well.
_FEW_REPEATED = 4

#: The largest numbers whose squares, summed up, are in the range of floating-point numbers.
_LARGEST = 1e150


def blocks_of(data: TaskData) -> list[tuple[Any, Array]]:
    """Return examples with their targets: one block with all targets where tasks share their examples, else a block for each task."""
    return [(data.design.block(0), data.targets)] if data.design.is_shared else [data.task(k) for k in range(data.n_tasks)]


def with_blocks(data: TaskData, blocks: Iterable[tuple[Any, Array]]) -> TaskData:
    """Return data of the same kind with these blocks, and with the weights, if there are any, of as many examples."""
    found = list(blocks)
    if data.design.is_shared:
        made = TaskData.shared(*found[0], name=data.name)
    else:
        made = TaskData.per_task([X for X, _ in found], [y for _, y in found], name=data.name)
    return replace(made, weights=data.weights, task_weights=data.task_weights)


def apart(data: TaskData) -> TaskData:
    """Return the same examples with a design for each task."""
    blocks = [data.task(k) for k in range(data.n_tasks)]
    return TaskData.per_task([X for X, _ in blocks], [y for _, y in blocks], name=data.name)


def weighted(data: TaskData, weights: Sequence[Array | None]) -> TaskData:
    """Return the data with weights of the examples of each block, of a shared one perhaps for each task, as the loss counts them."""
    if data.design.is_shared:
        v = np.broadcast_to(np.asarray(weights[0]).reshape(data.design.sizes[0], -1), data.design.output_shape).copy()
    else:
        v = np.concatenate([np.ones(n) if some is None else some for n, some in zip(data.design.sizes, weights, strict=True)])
    return replace(data, weights=frozen(v))


# Targets that are not observed


def observed(values: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return targets or labels with a value in every place, and which of them are not observed: NaN, None or NA; None where all are.

    A target that is not observed gets the value of another example of its task, which is never counted.
    """
    if not isinstance(values, (list, tuple, np.ndarray)):
        return values, None
    try:
        table = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    except ValueError:  # rows of different lengths, of which scikit-learn says so
        return values, None
    if table.ndim not in (1, 2) or table.dtype.kind not in "fO":
        return values, None
    missing = np.asarray(np.isnan(table) if table.dtype.kind == "f" else np.frompyfunc(_is_missing, 1, 1)(table), dtype=np.bool_)
    if not missing.any():
        return values, None
    table = table.copy()
    for column, gone in zip(table.reshape(len(table), -1).T, missing.reshape(len(table), -1).T, strict=True):
        column[gone] = column[~gone][0] if not gone.all() else 0.0
    if table.dtype.kind == "O" and all(isinstance(value, (bool, Number)) for value in table.flat):
        table = np.array(table.tolist())
    return table, missing


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, Real) and value != value) or type(value).__name__ == "NAType"


def counted(
    X: Matrix, y: NDArray[Any], missing: NDArray[np.bool_] | None, sample_weight: Any, name: str
) -> tuple[Matrix, NDArray[Any], NDArray[np.bool_] | None, Array | None]:
    """Return the examples of weight above 0 that have a target, which of their targets are missing, if any is, and their weights, if any.

    What is missing is as `observed` gives it; messages call the weights by `name`, such as "sample_weight of task 1". Raises InputError:
    weights that are negative, not finite, not as many as examples, or all zero; no target.
    """
    counts, weights = np.ones(len(y), dtype=np.bool_), None
    if sample_weight is None and missing is None:
        return X, y, None, None
    if sample_weight is not None:
        weights = weights_of(sample_weight, X, name)
        counts = weights > 0.0
        if not counts.any():
            raise InputError(f"{name} must not be all zero")
    if missing is not None:
        counts = counts & ~missing.reshape(len(y), -1).all(axis=1)
        if not counts.any():
            raise InputError(f"{name.replace('sample_weight', 'y')} has no observed value in an example that counts")
        missing = missing[counts] if missing[counts].any() else None
    return X[counts], y[counts], missing, None if weights is None else weights[counts]


# Weights and classes


def weights_of(sample_weight: Any, X: Any, name: str = "sample_weight") -> Array:
    """Return the weights of the examples of X, one number for all included. Raises InputError for those that are negative, not finite, or
    not as many as examples."""
    try:
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if not np.isfinite(weights).all():  # of one number scikit-learn does not look
        raise InputError(f"{name} must be finite")
    return weights


def classes_of(y: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the labels in a vector, ascending, and the place of that of each example. Raises InputError: some cannot be compared."""
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        raise InputError(f"{name} has labels that cannot be ordered, such as those of different types") from None


def require_class_weight(class_weight: Any, labels: Collection[Any]) -> None:
    """Raise InputError for class weights that are not "balanced" or a dict of some of these labels, or one that is not above 0."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise InputError(f"class_weight: it must be 'balanced' or a dict of labels, not {class_weight!r}")
    for label, weight in class_weight.items():
        if label not in labels:
            raise InputError(f"class_weight: no task has the label {label!r}")
        real_number(f"class_weight of {label!r}", weight, strict=True)


def of_classes(class_weight: Any, y: NDArray[Any], classes: NDArray[Any], weights: Array | None) -> Array:
    """Return weights of the examples of a task times those of their classes: 1 for labels that a dict lacks, or balanced ones.

    Raises InputError: a balanced weight that is not finite and above 0.
    """
    numbers, each = np.searchsorted(classes, y), np.ones(len(y)) if weights is None else weights
    if isinstance(class_weight, Mapping):
        found = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    else:
        totals = np.bincount(numbers, each, minlength=len(classes))
        with np.errstate(all="ignore"):
            found = totals.sum() / (len(classes) * totals)
        if not np.all((found > 0.0) & np.isfinite(found)):
            raise InputError("class_weight", float(found.min()), "finite and above 0")
    return found[numbers] * each


def are_counts(weights: Array, *, are_few: bool) -> bool:
    """Whether examples may be repeated as often as these weights say, and with `are_few` become at most four times as many."""
    most = min(_MOST_REPEATED, _FEW_REPEATED * len(weights)) if are_few else _MOST_REPEATED
    return bool(np.all(weights == np.floor(weights)) and weights.sum() <= most)


def repeated(data: TaskData, weights: Sequence[Array | None], loss: str) -> TaskData:
    """Return every example as often as its weight says: without weights, any loss of these has the same proof as that of `data` with them.

    Weights are those of the examples of each block. Raises InputError: one that is no whole number, or so many repetitions that they would
    not fit into memory.
    """
    blocks = []
    for k, ((X, Y), some) in enumerate(zip(blocks_of(data), weights, strict=True)):
        if some is None:
            blocks.append((X, Y))
            continue
        name = "sample_weight" if data.design.is_shared else f"sample_weight of task {k}"
        odd, total = some[some != np.floor(some)], float(some.sum())
        if len(odd):
            raise InputError(f"{name} must be whole numbers with the loss '{loss}' (only squares take any weights), but one is {odd[0]:g}")
        if total > _MOST_REPEATED:
            raise InputError(f"{name} must add up to at most {_MOST_REPEATED:,} with the loss '{loss}', not to {total:.3g}")
        rows = np.repeat(np.arange(len(some)), some.astype(np.intp))
        blocks.append((X[rows], Y[rows]))
    return with_blocks(data, blocks)


def scaled(data: TaskData, weights: Sequence[Array | None], reduction: str) -> TaskData:
    """Return rows and targets times the root of their weight: sum w (y - x.v)^2 is the sum of the squares of these.

    For the reduction "mean" the weights of each block are made to have mean 1.
    """
    blocks = []
    for (X, Y), some in zip(blocks_of(data), weights, strict=True):
        if some is not None:
            roots = np.sqrt(some / some.mean() if reduction == "mean" else some)
            X = sp.csr_array(X).multiply(roots[:, None]).tocsr() if is_sparse(X) else X * roots[:, None]
            Y = (Y.T * roots).T
        blocks.append((X, Y))
    return with_blocks(data, blocks)


# Range


@contextmanager
def fitting(data: TaskData) -> Iterator[None]:
    """Give linear algebra the threads that suit a fit to these data, refuse data whose squares overflow, and say of what fails in the
    body that the squares of small ones vanish, where they do."""
    sizes, d = data.design.sizes[:1] if data.design.is_shared else data.design.sizes, data.n_features
    require_range(data)
    try:
        with fitting_blas_threads(sum(min(n, d) ** 2 if data.design.is_sparse else n * d for n in sizes)):  # entries, or those of Grams
            yield
    except InputError:
        raise
    except (ArithmeticError, AssertionError, BenchError, ValueError):
        require_range(data, of_small=True)
        raise


def require_range(data: TaskData, *, of_small: bool = False) -> None:
    """Raise InputError where squares of examples or targets overflow; and where `of_small` those of all entries vanish."""
    shards = data.design.shards if data.design.is_in_shards else None  # type: ignore[attr-defined]
    largest = max(largest_entry(X) for X, _ in blocks_of(data)) if shards is None else shards.sizes.largest
    for name, size in (("X", largest), ("y", largest_entry(data.targets))):
        if size > _LARGEST or (of_small and 0.0 < size < 1.0 / _LARGEST):
            what = f"{name} has entries of up to {size:.1e}, whose squares are out of the range of floating-point numbers"
            raise InputError(f"{what}: divide by their size")
