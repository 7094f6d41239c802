"""Reader of tables whose columns are features and what is to be learned: CSV, TSV, Parquet and .npy files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.errors import InputError, plural
from bench_mtl.data.readers.common import is_number, naming, parsing, readable_file, unpacked_name
from bench_mtl.data.selection import Selection, Table
from bench_mtl.model.frames import Columns, chosen_columns
from bench_mtl.model.task_data import TaskData

#: How the names of files of text end, and what separates their cells.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET, NPY = ".parquet", ".npy"
_WITHOUT_TEXT = {PARQUET: "a Parquet file", NPY: "a .npy file"}
#: Options of tables of text.
_TEXT = {"header": True, "separator": None, "decimal": ".", "thousands": None}


def read_tabular(
    path: str | Path,
    *,
    labels: Columns | None = None,
    targets: Columns | None = None,
    class_column: str | None = None,
    task: str | None = None,
    drop: str | Sequence[str] = (),
    impute: str | None = None,
    header: bool = True,
    separator: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    most_frequent: int | None = None,
    classes: str | None = None,
    examples: int | None = None,
    held_out: int = 0,
    seed: int = 0,
) -> TaskData:
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
        is_text = source.suffix.lower() not in _WITHOUT_TEXT
        options = {"header": header, "separator": separator, "decimal": decimal, "thousands": thousands}
        frame = TextLayout.of(source, **options).frame() if is_text else _other_frame(source, options)
        first = 2 if header else 1
        chosen = chosen_columns(
            frame, labels=labels, targets=targets, class_column=class_column, task=task, drop=drop, impute=impute,
            place=lambda row: f"line {row + first}" if is_text else f"row {row + 1}",
        )  # fmt: skip
        table = Table(chosen.X, chosen.targets, chosen.are_labels, chosen.task, notes=chosen.notes)
        return selection.of(table, unpacked_name(source).stem)


class TextLayout(NamedTuple):
    """How a table of text is read."""

    source: Path
    names: list[str]
    """Of the columns."""
    how: dict[str, Any]
    """Arguments of `pandas.read_csv` but the number of rows; what it gives has no names yet."""

    @classmethod
    def of(cls, source: Path, header: Any = True, separator: Any = None, decimal: Any = ".", thousands: Any = None) -> TextLayout:
        """Look at the first line of a file.

        Raises
        ------
        InputError : options of other types, no line, numbers for names, one column in a line with other separators.
        """
        import pandas as pd

        header = true_or_false("header", header)
        how: dict[str, Any] = {
            **signs_of(source, separator, decimal, thousands),
            "header": None, "encoding": "utf-8-sig", "skipinitialspace": True, "skip_blank_lines": False,
        }  # fmt: skip
        with cls._parsing():
            # pandas itself would rename the second of two columns of one name.
            top = pd.read_csv(source, nrows=1, dtype=str, keep_default_na=False, **how).iloc[0].tolist()
        names = [str(name).strip() for name in top] if header else [str(j + 1) for j in range(len(top))]
        if header and all(is_number(name) for name in names):
            raise InputError("has numbers where the names of the columns should be: header = false if its first line is an example")
        if len(names) == 1 and separator is None and (other := next((sign for sign in ";\t|" if sign in str(top[0])), None)):
            raise InputError(f"has one column only: its cells are separated by {other!r}, so give separator = {other!r}")
        return cls(source, names, {**how, "skiprows": int(header), "low_memory": False})

    def frame(self) -> Any:
        """Return all of it, but for empty lines at the end."""
        import pandas as pd

        with self._parsing():
            frame = self.named(pd.read_csv(self.source, **self.how))
        return frame.loc[: frame.dropna(how="all").index.max()]

    def frames(self, rows: int, types: Mapping[int, str]) -> Iterator[Any]:
        """Yield so many rows at a time, with the empty lines at the end, and some columns of given types."""
        import pandas as pd

        with self._parsing():
            reader = pd.read_csv(self.source, **self.how, chunksize=rows, dtype=dict(types))
        with reader:
            while True:
                with self._parsing():
                    try:
                        frame = next(reader)
                    except StopIteration:
                        return
                yield self.named(frame)

    def named(self, frame: Any) -> Any:
        """Return a frame whose columns have their names.

        Raises
        ------
        InputError : there are others than in the first line.
        """
        if frame.shape[1] != len(self.names):
            raise InputError(f"has {plural(len(self.names), 'column')} in line 1, but {frame.shape[1]} in line 2")
        frame.columns = self.names
        return frame

    @staticmethod
    @contextmanager
    def _parsing() -> Iterator[None]:
        import pandas as pd

        with parsing("a table"):
            try:
                yield
            except pd.errors.EmptyDataError:
                raise InputError("has no line of data") from None


def signs_of(source: Path, separator: Any, decimal: Any, thousands: Any) -> dict[str, Any]:
    """Return the arguments of `pandas.read_csv` for what separates cells, decimals and thousands.

    Raises
    ------
    InputError : one that is not one character; the same for decimals and thousands.
    """
    usual = SEPARATORS.get(unpacked_name(source).suffix.lower(), ",")
    cells = separator if separator is not None else ";" if usual == decimal else usual
    signs = {"separator": cells, "decimal": decimal, "thousands": thousands}
    for name, sign in signs.items():
        if not (sign is None and name == "thousands") and (not isinstance(sign, str) or len(sign) != 1):
            raise InputError(f"{name} must be one character, not {sign!r}")
    if decimal == thousands:
        raise InputError(f"decimal and thousands are both {decimal!r}")
    return {"sep": cells, "decimal": decimal, "thousands": thousands}


def _other_frame(source: Path, options: Mapping[str, Any]) -> Any:
    import pandas as pd

    require_no_text_options(source, **options)
    if source.suffix.lower() == NPY:
        return array_frame(mapped_columns(source))
    with parsing("a Parquet file"):
        return pd.read_parquet(source)


def mapped_columns(source: Path) -> NDArray[Any]:
    """Return the array of a .npy file, mapped into memory: a row an example, and columns that are called "1", "2", ...

    Raises
    ------
    InputError : not such a file, no matrix, or one of other things than numbers.
    """
    with parsing("a .npy file"):
        columns = np.load(source, mmap_mode="r", allow_pickle=False)
    if not isinstance(columns, np.ndarray) or columns.ndim != 2 or columns.dtype.kind not in "biuf":
        shown = f"{columns.dtype} of shape {columns.shape}" if isinstance(columns, np.ndarray) else "several arrays"
        raise InputError(f"must hold a matrix of numbers, a row an example, not {shown}")
    return np.asarray(columns)


def array_frame(columns: NDArray[Any]) -> Any:
    """Return columns of numbers as a table."""
    import pandas as pd

    return pd.DataFrame(columns, columns=[str(j + 1) for j in range(columns.shape[1])])


def require_no_text_options(source: Path, **options: object) -> None:
    """Raise InputError where an option of tables of text is given."""
    for name, value in options.items():
        if value != _TEXT[name]:
            raise InputError(f"{name} is for tables of text, and this is {_WITHOUT_TEXT[source.suffix.lower()]}")
