"""Examples as a fit takes them: in blocks, weighted, with a constant feature, within the range of floating-point numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.core.threads import fitting_blas_threads
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data import TaskData

#: Examples that repetitions may make at most.
_MOST_REPEATED = 10_000_000

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
    return replace(made, weights=data.weights)


def weighted(data: TaskData, weights: Sequence[Array | None]) -> TaskData:
    """Return the data with weights of the examples of each block, as the loss counts them."""
    if data.design.is_shared:
        v = np.repeat(np.asarray(weights[0])[:, None], data.n_tasks, axis=1)
    else:
        v = np.concatenate([np.ones(n) if some is None else some for n, some in zip(data.design.sizes, weights, strict=True)])
    return replace(data, weights=frozen(v))


def with_constant_feature(data: TaskData, value: float) -> TaskData:
    """Return the data with one feature more, the last one, that is `value` in all examples: its coefficients are penalised too."""
    return with_blocks(data, [(_with_column(X, value), Y) for X, Y in blocks_of(data)])


def _with_column(X: Matrix, value: float) -> Matrix:
    column = np.full((X.shape[0], 1), value)
    return sp.csr_array(sp.hstack([X, sp.csr_array(column)], format="csr")) if is_sparse(X) else np.hstack([X, column])


# Weights


def of_positive_weight(X: Matrix, y: NDArray[Any], sample_weight: Any, name: str) -> tuple[Matrix, NDArray[Any], Array | None]:
    """Return the examples of weight above 0, and their weights; all examples and None where `sample_weight` is None.

    Raises
    ------
    InputError : weights that are negative, not finite, not as many as examples, or all zero; `name` is what the message calls them.
    """
    if sample_weight is None:
        return X, y, None
    try:
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise InputError(f"{name} must not be all zero")
    return X[kept], y[kept], weights[kept]


def are_counts(weights: Array) -> bool:
    """Whether examples may be repeated as often as these weights say."""
    return bool(np.all(weights == np.floor(weights)) and weights.sum() <= _MOST_REPEATED)


def repeated(data: TaskData, weights: Sequence[Array | None], loss: str) -> TaskData:
    """Return every example as often as its weight says: without weights, any loss of these has the same proof as that of `data` with them.

    Parameters
    ----------
    weights : of the examples of each block, whole numbers

    Raises
    ------
    InputError : a weight that is no whole number, or so many repetitions that they would not fit into memory.
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
    if data.design.is_in_shards:
        return
    for name, parts in (("X", [X.data if is_sparse(X) else X for X, _ in blocks_of(data)]), ("y", [data.targets])):
        size = max(float(max(part.max(initial=0.0), -part.min(initial=0.0))) for part in parts)
        if size > _LARGEST or (of_small and 0.0 < size < 1.0 / _LARGEST):
            what = f"{name} has entries of up to {size:.1e}, whose squares are out of the range of floating-point numbers"
            raise InputError(f"{what}: divide by their size")
