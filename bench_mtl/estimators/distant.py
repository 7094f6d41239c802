"""Examples that are not in the memory of this process: collections of Dask, and designs in shards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from bench_mtl.core.checks import is_sparse, real_matrix
from bench_mtl.core.dask_rows import is_dask, is_frame, numbers_of_block, require_array_or_frame, shards_of, values_of
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData


def is_distant(X: Any) -> bool:
    """Whether X is a collection of Dask or a design in shards."""
    return is_dask(X) or isinstance(X, ShardedDesign)


def require_near(name: str, X: Any) -> None:
    """Raise InputError where X is not in memory, and has to be."""
    if is_distant(X):
        kind = "a Dask collection" if is_dask(X) else "a design in shards"
        raise InputError(f"{name} must be in memory here, not {kind}")


def near(name: str, values: Any, *, may_lack: bool = False) -> Any:
    """Return targets or labels of Dask, pandas or Arrow as an array, whatever their types (nullable, categories), and others as they are.

    Columns of words and of numbers together are objects. A value that a frame or a series lacks is NaN where it may lack some, and else an
    InputError.
    """
    if is_dask(values):
        return values_of(name, values)
    library = type(values).__module__.partition(".")[0]
    if library == "pyarrow":
        return near(name, values.to_pandas(), may_lack=may_lack)
    if library != "pandas":
        return values
    import pandas as pd

    frame = pd.DataFrame(values)
    rows = np.flatnonzero(frame.isna().to_numpy().any(axis=1))
    if len(rows) and not may_lack:
        raise InputError(f"{name} has no value (NaN) in row {rows[0]}")
    lacking: dict[str, Any] = {"dtype": object, "na_value": np.nan} if len(rows) else {}
    columns = [pd.Series(column.to_numpy(**lacking)).infer_objects().to_numpy() for _, column in frame.items()]
    if not columns:
        return values
    kind = None if all(column.dtype.kind in "biuf" for column in columns) else object
    table = np.stack(columns, axis=1, dtype=kind, casting="unsafe")
    return table if values.ndim == 2 else table[:, 0]


def distant_data(model: Any, X: Any, y: Any) -> tuple[TaskData, bool]:
    """Return examples that are not in memory, as data in shards with the targets of a model, and whether these were a vector.

    X is a Dask array or frame, or a `ShardedDesign`, and y, of Dask or in memory, a vector or examples x tasks. The linear model retains
    the names and the number of features. Raises InputError: X is not what `shards_of` takes, or y is not as long; ValueError: what
    scikit-learn does not take as targets.
    """
    rows = shards_of(X) if is_dask(X) else X.shards
    _check_features(model, X, rows.shape[1], reset=True)
    if y is None:
        raise InputError("y must be given")
    dtype = np.float64 if model._is_numeric else None
    checked = check_array(near("y", y), accept_sparse="csr", ensure_2d=False, dtype=dtype, input_name="y")
    if checked.shape[0] != rows.shape[0]:
        raise InputError(f"y has {checked.shape[0]} targets, but X has {rows.shape[0]} rows")
    targets = model._targets_of(np.asarray(checked.toarray() if is_sparse(checked) else checked))
    Y = frozen(np.ascontiguousarray(targets if targets.ndim == 2 else targets[:, None]))
    return TaskData(ShardedDesign(rows.with_targets(Y), Y.shape[1]), Y), checked.ndim == 1


def require_unchanged(data: TaskData) -> None:
    """Raise InputError where the examples are of Dask and are no longer what they were at first."""
    if isinstance(data.design, ShardedDesign):
        data.design.shards.require_unchanged()


def distant_outputs(model: Any, X: Any, W: Array, intercepts: Any, finish: Callable[[Array], Any]) -> Any:
    """Return what `finish` makes of the scores X W + b of examples that are not in memory, an array or a list of arrays.

    Of a Dask array or frame these are Dask arrays, and nothing is computed yet. Another collection, and other features than those that the
    model has seen, are an InputError.
    """
    if isinstance(X, ShardedDesign):
        _check_features(model, X, X.n_features, reset=False)
        return finish(ShardedDesign(X.shards, W.shape[1]).forward(W) + intercepts)
    require_array_or_frame("X", X)
    if X.ndim != 2:
        raise InputError("X", X.ndim, "have 2 dimensions")
    _check_features(model, X, int(X.shape[1]), reset=False)
    rows = X.to_dask_array() if is_frame(X) else X
    rows = rows.rechunk({1: -1}) if len(rows.chunks[1]) > 1 else rows
    sample = finish(np.zeros((1, W.shape[1])))

    def lazy(place: int | None, like: NDArray[Any]) -> Any:
        made = partial(_outputs, W=W, intercepts=intercepts, finish=finish, place=place)
        shape: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (rows.chunks[0], (like.shape[1],))}
        return rows.map_blocks(made, dtype=like.dtype, meta=np.empty((0,) * like.ndim, like.dtype), **shape)

    return [lazy(place, like) for place, like in enumerate(sample)] if isinstance(sample, list) else lazy(None, sample)


def _outputs(block: Any, W: Array, intercepts: Any, finish: Callable[[Array], Any], place: int | None) -> Any:
    found = finish(np.asarray(real_matrix("X", numbers_of_block(block)) @ W) + intercepts)
    return found if place is None else found[place]


def _check_features(model: Any, X: Any, n_features: int, *, reset: bool) -> None:
    """Compare the names and the number of features with those of the fit, or keep them, as scikit-learn does."""
    known = X._meta if is_dask(X) and is_frame(X) else np.empty((0, n_features))
    validate_data(model, known, reset=reset, skip_check_array=True)
