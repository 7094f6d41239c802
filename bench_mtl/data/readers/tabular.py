"""Reader of tables whose columns are features and what is to be learned: CSV, TSV, Parquet and .npy files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.errors import InputError, plural
from bench_mtl.data.readers.common import is_number, naming, parsing, readable_file, unpacked_name
from bench_mtl.data.selection import Selection
from bench_mtl.data.table import Table, repeated, rows_of
from bench_mtl.model.frames import Chosen, Columns, Values, chosen_columns, different_values, joined_values
from bench_mtl.model.task_data import TaskData

_WITHOUT_TEXT = {".parquet": "a Parquet file", ".npy": "a .npy file"}
#: Options of tables of text.
_TEXT = {"header": True, "separator": None, "decimal": ".", "thousands": None}


def read_tabular(
    path: str | Path, *, labels: Columns | None = None, targets: Columns | None = None, class_column: str | None = None,
    task: str | None = None, drop: str | Sequence[str] = (), impute: str | None = None, header: bool = True, separator: str | None = None,
    decimal: str = ".", thousands: str | None = None, most_frequent: int | None = None, classes: str | None = None,
    examples: int | None = None, held_out: int = 0, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Tasks from a table in a file: a line an example, a column a feature or something to be learned.

    Parameters
    ----------
    path : a file that ends in .csv, .tsv or .parquet, or in .npy for a matrix of numbers, whose columns are named "1", "2", ...; text is
        UTF-8, and may be packed, its name ending in .csv.gz, .csv.bz2 or .csv.xz.
    labels, targets, class_column, task, drop, impute : which columns are what, as for `TaskData.from_frame`.
    header : whether the first line names the columns; without one their names are "1", "2", ... Not for Parquet and .npy.
    separator : what separates cells; None for a comma in .csv (a semicolon where decimals have the comma), a tab in .tsv.
    decimal, thousands : what numbers have before decimals, and between thousands.
    most_frequent, classes, examples, held_out, seed : as for `read_arff`.

    Raises
    ------
    InputError : anything but such a file; what `TaskData.from_frame` refuses, with the line of the file (of one whose cells hold
        no line breaks).
    """
    selection = Selection.among_columns(most_frequent, classes, examples, held_out, seed)
    source = readable_file(path)
    with naming(source):
        table = tabular_table(
            source, labels=labels, targets=targets, class_column=class_column, task=task, drop=drop, impute=impute, header=header,
            separator=separator, decimal=decimal, thousands=thousands,
        )  # fmt: skip
        return selection.of(table, unpacked_name(source).stem)


def tabular_table(source: Path, size: int | None = None, *, task: str | None = None, impute: str | None = None, **options: Any) -> Table:
    """Return the rows of a table, in blocks of about `size` bytes. Passes before look for types and classes.

    `task` and `impute` are of a table in memory alone, where the rows are one block; `options` are those of `read_tabular` that say which
    columns are what, and how text is read.
    """
    frames = _frames(source, size, {name: options.pop(name, usual) for name, usual in _TEXT.items()})
    if frames.n_rows == 0:
        raise InputError("has no row")
    values: Values = {}
    if options.get("targets") is None:
        for frame, place in frames.numbered(rows_of(size, frames.n_columns)):
            values = joined_values(values, different_values(frame, **options, place=place))
    rows = rows_of(size, max([frames.n_columns, *map(len, values.values())]))

    def made() -> Iterator[Chosen]:
        for frame, place in frames.numbered(rows):
            yield chosen_columns(frame, **options, task=task, impute=impute, place=place, values=values)

    chosen = repeated(made, size is None)
    first = next(chosen())
    return Table(
        frames.n_rows, first.X.shape[1], first.targets.shape[1], lambda: ((part.X, part.targets) for part in chosen()),
        first.are_labels, first.task, notes=first.notes,
    )  # fmt: skip


@dataclass(frozen=True)
class _Frames:
    """Rows of a table as pandas frames, from the first row as often as they are asked for."""

    n_rows: int
    n_columns: int
    of: Callable[[int], Iterator[Any]]
    """Yields so many rows at a time."""
    place: Callable[[int], str]
    """How messages call a row."""

    def numbered(self, rows: int) -> Iterator[tuple[Any, Callable[[int], str]]]:
        """Yield so many rows at a time, and how messages call those."""
        start = 0
        for frame in self.of(rows):
            own = frame.iloc[: max(0, self.n_rows - start)]  # empty lines at the end are no rows
            if len(own):
                yield own, lambda row, start=start: self.place(start + row)  # type: ignore[misc]
            start += len(frame)


def _row(row: int) -> str:
    return f"row {row + 1}"


def _frames(source: Path, size: int | None, text: Mapping[str, Any]) -> _Frames:
    import pandas as pd

    kind = _WITHOUT_TEXT.get(source.suffix.lower())
    if kind is None:
        return _text(source, size, **text)
    for name, value in text.items():
        if value != _TEXT[name]:
            raise InputError(f"{name} is for tables of text, and this is {kind}")
    if source.suffix.lower() == ".parquet":
        return _parquet(source, size)
    with parsing(kind):
        columns = np.load(source, mmap_mode="r", allow_pickle=False)
    if not isinstance(columns, np.ndarray) or columns.ndim != 2 or columns.dtype.kind not in "biuf":
        shown = f"{columns.dtype} of shape {columns.shape}" if isinstance(columns, np.ndarray) else "several arrays"
        raise InputError(f"must hold a matrix of numbers, a row an example, not {shown}")
    columns = np.asarray(columns)
    names = [str(j + 1) for j in range(columns.shape[1])]

    def of(rows: int) -> Iterator[Any]:
        return (pd.DataFrame(columns[start : start + rows], columns=names) for start in range(0, len(columns), rows))

    return _Frames(len(columns), len(names), of, _row)


def _parquet(source: Path, size: int | None) -> _Frames:
    if size is None:
        import pandas as pd

        with parsing("a Parquet file"):
            frame = pd.read_parquet(source)
        return _Frames(frame.shape[0], frame.shape[1], lambda _: iter([frame]), _row)
    with parsing("a Parquet file"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(source, memory_map=True, pre_buffer=False) as file:
            n, width = file.metadata.num_rows, file.metadata.num_columns

    def of(rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with parsing("a Parquet file"), pq.ParquetFile(source, memory_map=True, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, use_threads=False):
                yield pa.Table.from_batches([batch], file.schema_arrow).to_pandas()

    return _Frames(n, width, of, _row)


def _text(source: Path, size: int | None, header: Any, separator: Any, decimal: Any, thousands: Any) -> _Frames:
    """Return the rows of a table of text, whose columns have the types that all of their cells have together."""
    import pandas as pd

    header = true_or_false("header", header)
    how: dict[str, Any] = {
        **signs_of(source, separator, decimal, thousands),
        "header": None, "encoding": "utf-8-sig", "skipinitialspace": True, "skip_blank_lines": False,
    }  # fmt: skip
    with _parsing_text():
        # pandas itself would rename the second of two columns of one name.
        top = pd.read_csv(source, nrows=1, dtype=str, keep_default_na=False, **how).iloc[0].tolist()
    names = [str(name).strip() for name in top] if header else [str(j + 1) for j in range(len(top))]
    if header and all(is_number(name) for name in names):
        raise InputError("has numbers where the names of the columns should be: header = false if its first line is an example")
    if len(names) == 1 and separator is None and (other := next((sign for sign in ";\t|" if sign in str(top[0])), None)):
        raise InputError(f"has one column only: its cells are separated by {other!r}, so give separator = {other!r}")
    how |= {"skiprows": int(header), "low_memory": False}

    def frames(rows: int, types: Mapping[int, str]) -> Iterator[Any]:
        with _parsing_text():
            reader = pd.read_csv(source, **how, chunksize=rows, dtype=dict(types))
        with reader:
            while True:
                with _parsing_text():
                    frame = next(reader, None)
                if frame is None:
                    return
                if frame.shape[1] != len(names):
                    raise InputError(f"has {plural(len(names), 'column')} in line 1, but {frame.shape[1]} in line 2")
                frame.columns = names
                yield frame

    found = repeated(lambda: frames(rows_of(size, len(names)), {}), size is None)
    kinds: list[set[str]] = [set() for _ in names]
    n, read = 0, 0
    for frame in found():
        for j, own in enumerate(kinds):
            own.add(_kind(frame.iloc[:, j]))
        filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
        n = read + int(filled[-1]) + 1 if len(filled) else n
        read += len(frame)
    types = {j: kind for j, own in enumerate(kinds) if (kind := _common_type(names[j], own)) is not None}

    def of(rows: int) -> Iterator[Any]:
        return found() if size is None else frames(rows, types)

    return _Frames(n, len(names), of, lambda row: f"line {row + 1 + header}")


@contextmanager
def _parsing_text() -> Iterator[None]:
    import pandas as pd

    with parsing("a table"):
        try:
            yield
        except pd.errors.EmptyDataError:
            raise InputError("has no line of data") from None


def signs_of(source: Path, separator: Any, decimal: Any, thousands: Any) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` for what separates cells, decimals and thousands."""
    usual = "\t" if unpacked_name(source).suffix.lower() == ".tsv" else ","
    cells = separator if separator is not None else ";" if usual == decimal else usual
    signs = {"separator": cells, "decimal": decimal, "thousands": thousands}
    for name, sign in signs.items():
        if not (sign is None and name == "thousands") and (not isinstance(sign, str) or len(sign) != 1):
            raise InputError(name, sign, "one character")
    if decimal == thousands:
        raise InputError(f"decimal and thousands are both {decimal!r}")
    return {"sep": cells, "decimal": decimal, "thousands": thousands}


def _kind(column: Any) -> str:
    """Return what pandas has found in the cells of a column."""
    import pandas as pd

    kind = column.dtype.kind
    if kind == "f":
        return "empty" if column.isna().all() else "float"
    if kind == "O" and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return "truth"
    return {"i": "int", "u": "unsigned", "b": "truth"}.get(kind, "text")


def _common_type(name: str, kinds: set[str]) -> str | None:
    """Return the type of a column whose parts are of these kinds, None where pandas finds it in each part as in the whole.

    Numbers are read by another rule where a column has whole numbers alone, and a word makes words of all cells.
    """
    if len(kinds) == 1 or kinds in ({"text", "empty"}, {"truth", "empty"}):
        return None
    if "unsigned" in kinds:
        raise InputError(f"column '{name}' has whole numbers beyond 2^63 in some rows only: write them with a decimal point")
    return "float64" if kinds <= {"int", "float", "empty"} else "str"
