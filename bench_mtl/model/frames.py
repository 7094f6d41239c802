"""Features and targets from the columns of a table: what frames, CSV and Parquet files share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError, nearest, plural
from bench_mtl.core.types import Array

#: A number of columns at an end of the table, the name of one, or a list of names.
Columns = int | str | Sequence[str]

_SIGNS = (-1.0, 0.0, 1.0)
_BINARY = ({0.0, 1.0}, {-1.0, 1.0}, {0.0}, {1.0}, {-1.0})
#: How columns without a name are called, and what pandas makes of it.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_UNNAMED = re.compile(r"(Unnamed: \d+)?")
_LONGEST, _MOST_NAMES = 40, 8
_WAYS = ("mean", "median")


class Chosen(NamedTuple):
    """Features and targets of a table."""

    X: Array
    """n x d."""
    targets: Array
    """n x m: labels -1/+1, or real targets."""
    are_labels: bool
    task: NDArray[np.intp] | None
    """n task numbers, where each task has its own rows."""
    notes: tuple[str, ...]


#: The different values, ascending, of columns of labels or classes by their place, as a whole table has them.
Values = Mapping[int, NDArray[Any]]


class _Options(NamedTuple):
    """Which columns are what, as `TaskData.from_frame` explains."""

    labels: Columns | None = None
    targets: Columns | None = None
    class_column: str | None = None
    task: str | None = None
    drop: str | Sequence[str] = ()
    impute: str | None = None


def chosen_columns(frame: Any, *, place: Callable[[int], str] = "row {}".format, values: Values | None = None, **named: Any) -> Chosen:
    """Return the features and targets of a pandas frame. The options are those of `TaskData.from_frame`.

    Messages call the row of a number, which counts from 0, as `place` does. For some rows of a table, `values` are what `different_values`
    finds in all of them. Raises InputError: not exactly one of `labels`, `targets` and `class_column`; columns that do not exist, twice the
    same, no feature left; a missing value, a text, an infinite number or a label that is neither 0/1 nor -1/+1, with its column and row.
    """
    options = _Options(**named)
    if options.impute is not None:
        one_of("impute", options.impute, _WAYS)
    parts = _parts(frame, options)
    table = _Table(frame, parts.names, place)
    values = table.different_values(parts) if values is None else values
    if parts.kind == "class_column":
        Y, notes = table.one_against_all(parts.learned[0], values)
    elif parts.kind == "targets":
        Y, notes = np.column_stack(table.all_numbers(parts.learned, "targets")), ()
    else:
        Y, notes = np.column_stack([table.signs(j, values) for j in parts.learned]), ()
    if parts.kind != "class_column" and options.task is None:
        notes = (f"The {parts.kind} are {_listed([parts.names[j] for j in parts.learned])}.",)
    X, imputed = table.features(parts.features, options.impute)
    number, task_notes = (None, ()) if options.task is None else table.task_numbers(parts.names.index(options.task))
    return Chosen(X, Y, parts.kind != "targets", number, (*notes, *task_notes, *imputed))


def different_values(frame: Any, *, place: Callable[[int], str] = "row {}".format, **named: Any) -> Values:
    """Return the different values of the columns of labels or classes in some rows of a table.

    Raises InputError: as `chosen_columns` does for these columns.
    """
    parts = _parts(frame, _Options(**named))
    return _Table(frame, parts.names, place).different_values(parts)


def joined_values(one: Values, other: Values) -> Values:
    """Return the different values of two parts of a table."""
    return {j: np.unique(np.concatenate([one[j], other[j]])) if j in one else other[j] for j in other}


class _Parts(NamedTuple):
    """Which columns are what."""

    names: list[str]
    kind: str
    learned: list[int]
    features: list[int]


def _parts(frame: Any, options: _Options) -> _Parts:
    labels, targets, class_column, task, drop, _ = options
    names = [str(name) for name in frame.columns]
    _require_distinct(names, [drop] if isinstance(drop, str) else drop)
    if not len(frame):
        raise InputError("has no row")
    wanted = {"labels": labels, "targets": targets, "class_column": class_column}
    given = [key for key, value in wanted.items() if value is not None]
    if len(given) != 1:
        twice = f", not {' and '.join(given)}" if given else ""
        raise InputError(
            f"which columns are to be learned? Give one of labels, targets and class_column{twice}: "
            f"a number n for the last n columns, or names. The columns are {_listed(names)}"
        )
    learned = _positions(given[0], wanted[given[0]], names)
    others = _positions("drop", drop, names) if drop or drop == "" else []
    if task is not None:
        others += _positions("task", task, names)
        if len(learned) > 1:
            raise InputError(f"task = '{task}' gives each task rows of its own, and one column to learn, not {len(learned)}")
        if class_column is not None:
            raise InputError("class_column makes a task of every class: it cannot be given with task")
    for j in learned:
        if j in others:
            raise InputError(f"column '{names[j]}' is named twice: to be learned, and as {'task' if names[j] == task else 'drop'}")
    features = [j for j in range(len(names)) if j not in {*learned, *others}]
    if not features:
        raise InputError("no column is left for the features")
    return _Parts(names, given[0], learned, features)


class _Table(NamedTuple):
    frame: Any
    names: list[str]
    place: Callable[[int], str]

    def where(self, row: int, j: int) -> str:
        return f"column '{self.names[j][:_LONGEST]}' in {self.place(row)}"

    def numbers(self, j: int, use: str, missing: bool = False) -> Array:
        """Return a column of finite numbers, NaN where one is missing if that is allowed."""
        import pandas as pd

        column = self.frame.iloc[:, j]
        absent = column.isna().to_numpy()
        if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
            raise InputError(f"column '{self.names[j][:_LONGEST]}' holds dates: {_refused(use, self.names[j])}")
        if pd.api.types.is_complex_dtype(column):
            raise InputError(f"column '{self.names[j][:_LONGEST]}' holds complex numbers")
        plain = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
        try:
            values = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        except OverflowError:
            raise InputError(f"column '{self.names[j][:_LONGEST]}' holds a number beyond the largest float") from None
        texts = np.flatnonzero(np.isnan(values) & ~absent)
        if len(texts):
            row = int(texts[0])
            text = str(column.iloc[row])[:_LONGEST]
            cure = f"write 0/1 or -1/+1; {_as_classes(self.names[j])}" if use == "labels" else _refused(use, self.names[j])
            if _DECIMAL_COMMA.fullmatch(text):
                cure = "decimal = ',' reads decimal commas of text files"
            raise InputError(f"{self.where(row, j)} is no number: {text!r}; {cure}")
        if absent.any() and not missing:
            row = int(np.argmax(absent))
            cure = "impute = 'mean' or 'median' would fill it" if use == "features" else f"{use} are not filled: leave the row out"
            raise InputError(f"{self.where(row, j)} has no value; {cure}")
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise InputError(self.where(int(infinite[0]), j), values[infinite[0]], "finite")
        return np.asarray(values, dtype=np.float64)

    def all_numbers(self, columns: list[int], use: str, missing: bool = False) -> list[Array]:
        """Return `numbers` of columns; what is wrong with any is reported at once, but for the first without its cure."""
        found, wrong = [], []
        for j in columns:
            try:
                found.append(self.numbers(j, use, missing))
            except InputError as error:
                wrong.append(str(error))
        if wrong:
            others = [text.partition(";")[0] for text in wrong[1 : 1 + _MOST_NAMES]]
            more = [f"{len(wrong) - 1 - len(others)} more"] if len(wrong) > 1 + len(others) else []
            raise InputError(wrong[0] + (f". Besides: {'; '.join(others + more)}" if others else ""))
        return found

    def different_values(self, parts: _Parts) -> Values:
        """Return those of columns of labels (of which one value that is no label represents all such) or of classes."""
        if parts.kind == "class_column":
            return {j: np.unique(self._plain(j)) for j in parts.learned}
        if parts.kind == "targets":
            return {}
        found = {j: np.unique(of) for j, of in zip(parts.learned, self.all_numbers(parts.learned, "labels"), strict=True)}
        return {j: np.concatenate([of[np.isin(of, _SIGNS)], of[~np.isin(of, _SIGNS)][:1]]) for j, of in found.items()}

    def signs(self, j: int, whole: Values) -> Array:
        """Return a column of labels as -1/+1."""
        values = self.numbers(j, "labels")
        if set(whole[j].tolist()) not in _BINARY:
            binary = np.isin(values, (-1.0, 1.0) if -1.0 in whole[j] else (0.0, 1.0))
            if not binary.all():
                row = int(np.argmin(binary))
                refused = _refused("labels", self.names[j])
                raise InputError(f"{self.where(row, j)} must be a label 0/1 or -1/+1, not {values[row]:g}; {refused}")
        return np.where(values == 1.0, 1.0, -1.0)

    def one_against_all(self, j: int, whole: Values) -> tuple[Array, tuple[str, ...]]:
        """Return a column of labels -1/+1 for every value of a column, in ascending order."""
        number, classes = np.searchsorted(whole[j], self._plain(j)), [str(value) for value in whole[j]]
        if len(classes) < 2:
            raise InputError(f"column '{self.names[j]}' has the same class in every row: at least 2 are needed")
        Y = np.where(number[:, None] == np.arange(len(classes)), 1.0, -1.0)
        return Y, (f"The tasks are the classes of '{self.names[j]}' against all others: {_listed(classes)}.",)

    def task_numbers(self, j: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
        """Return which of the different values of a column each row has."""
        tasks, number = np.unique(self._plain(j), return_inverse=True)
        return number.astype(np.intp), (f"The tasks are the values of '{self.names[j]}': {_listed([str(value) for value in tasks])}.",)

    def _plain(self, j: int) -> NDArray[Any]:
        """Return a column without missing values as numbers, or as texts where it does not hold numbers alone."""
        import pandas as pd

        column = self.frame.iloc[:, j]
        absent = column.isna().to_numpy()
        if absent.any():
            raise InputError(f"{self.where(int(np.argmax(absent)), j)} has no value")
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object)
        return np.asarray((column if pd.api.types.is_numeric_dtype(column) else column.astype(str)).to_numpy())

    def features(self, columns: list[int], impute: str | None) -> tuple[Array, tuple[str, ...]]:
        if (plain := self._plain_features(columns)) is not None:
            return plain, ()
        X = np.column_stack(self.all_numbers(columns, "features", impute is not None))
        absent = np.isnan(X)
        if not absent.any():
            return X, ()
        empty = np.flatnonzero(absent.all(axis=0))
        if len(empty):
            raise InputError(f"column '{self.names[columns[empty[0]]]}' has no value at all: drop it")
        fill = np.nanmean(X, axis=0) if impute == "mean" else np.nanmedian(X, axis=0)
        note = (
            f"{plural(int(absent.sum()), 'missing value')} in {plural(int(absent.any(axis=0).sum()), 'column')} "
            f"became the {impute} of the column over all rows of the table."
        )
        return np.where(absent, fill, X), (note,)

    def _plain_features(self, columns: list[int]) -> Array | None:
        """Return the features at once where all are finite numbers already: column by column takes its time for thousands of them."""
        chosen = self.frame.iloc[:, columns]
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in chosen.dtypes.unique()):
            return None
        X = np.ascontiguousarray(chosen.to_numpy(dtype=np.float64))
        return X if np.isfinite(X).all() else None


def _positions(option: str, value: Any, names: list[str]) -> list[int]:
    """Return the positions of columns, ascending."""
    if option in ("labels", "targets") and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        count = abs(int(value))
        if not 0 < count < len(names):
            raise InputError(f"{option} = {value} does not fit {plural(len(names), 'column')}: one to learn and one feature are the least")
        return list(range(len(names) - count, len(names)) if value > 0 else range(count))
    wanted = [value] if isinstance(value, str) else value
    is_list = isinstance(wanted, Sequence) and not isinstance(wanted, (bytes, str)) and all(isinstance(name, str) for name in wanted)
    one_name = option in ("class_column", "task")
    if not is_list or not wanted or (one_name and len(wanted) > 1):
        allowed = "the name of a column" if one_name else "a list of names" if option == "drop" else "a number or names of columns"
        raise InputError(option, value, allowed)
    for i, name in enumerate(wanted):
        if name not in names:
            near = nearest(name, names)
            hint = f"there are {_listed(names)}" if near is None else f"did you mean '{near}'?"
            raise InputError(f"{option} names column '{name[:_LONGEST]}', which does not exist: {hint}")
        if name in wanted[:i]:
            raise InputError(f"{option} names column '{name[:_LONGEST]}' twice")
    return sorted(names.index(name) for name in wanted)


def _require_distinct(names: list[str], drop: Any) -> None:
    seen: set[str] = set()
    for j, name in enumerate(names, start=1):
        if _UNNAMED.fullmatch(name) and not (isinstance(drop, Sequence) and name in drop):
            index = ", as the index that pandas writes without index=False" if j == 1 else ""
            raise InputError(f"column {j} has no name{f' but {name!r}' if name else ''}{index}: leave it out by drop = {name!r}")
        if name in seen:
            raise InputError(f"has two columns named '{name[:_LONGEST]}'")
        seen.add(name)


def _refused(use: str, name: str) -> str:
    if use == "features":
        return f"features are numbers: leave the column out by drop = '{name[:_LONGEST]}', or make numbers of it"
    if use == "labels":
        return f"{_as_classes(name)}, targets = '{name[:_LONGEST]}' a real target"
    return "targets are numbers"


def _as_classes(name: str) -> str:
    return f"class_column = '{name[:_LONGEST]}' would make a task of every class"


def _listed(names: Sequence[str]) -> str:
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
