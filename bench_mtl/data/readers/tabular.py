"""Reader of tables whose columns are features and what is to be learned: CSV, TSV and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.errors import InputError, plural
from bench_mtl.data.readers.common import is_number, naming, parsing, readable_file
from bench_mtl.data.selection import Selection, Table
from bench_mtl.model.frames import Columns, chosen_columns
from bench_mtl.model.task_data import TaskData

#: How the names of files of text end, and what separates their cells.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"


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
    most_frequent: int | None = None,
    classes: str | None = None,
    examples: int | None = None,
    held_out: int = 0,
    seed: int = 0,
) -> TaskData:
    """Tasks from a table in a file: a line an example, a column a feature or something to be learned.

    Parameters
    ----------
    path : a file that ends in .csv, .tsv or .parquet; text is UTF-8, with a point for decimals.
    labels, targets, class_column, task, drop, impute : which columns are what, as for `TaskData.from_frame`.
    header : whether the first line names the columns; without one their names are "1", "2", ... Not for Parquet.
    separator : what separates cells; None for a comma in .csv, a tab in .tsv.
    most_frequent, classes, examples, held_out, seed : as for `read_arff`.

    Raises
    ------
    InputError : anything but such a file; what `TaskData.from_frame` refuses, with the line of the file (of one whose cells hold
        no line breaks).
    """
    selection = Selection.among_columns(most_frequent, classes, examples, held_out, seed)
    source = readable_file(path)
    with naming(source):
        is_text = source.suffix.lower() != PARQUET
        frame = _text_frame(source, header, separator) if is_text else _parquet_frame(source, header, separator)
        first = 2 if header else 1
        chosen = chosen_columns(
            frame, labels=labels, targets=targets, class_column=class_column, task=task, drop=drop, impute=impute,
            place=lambda row: f"line {row + first}" if is_text else f"row {row + 1}",
        )  # fmt: skip
        return selection.of(Table(chosen.X, chosen.targets, chosen.are_labels, chosen.task, notes=chosen.notes), source.stem)


def _text_frame(source: Path, header: object, separator: object) -> Any:
    import pandas as pd

    true_or_false("header", header)
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
        raise InputError(f"separator must be one character, not {separator!r}")
    how: dict[str, Any] = {
        "sep": separator or SEPARATORS.get(source.suffix.lower(), ","),
        "header": None, "encoding": "utf-8-sig", "skipinitialspace": True, "skip_blank_lines": False,
    }  # fmt: skip
    with parsing("a table"):
        try:
            # pandas itself would rename the second of two columns of one name.
            top = pd.read_csv(source, nrows=1, dtype=str, keep_default_na=False, **how).iloc[0].tolist()
            frame = pd.read_csv(source, skiprows=int(header), low_memory=False, **how)
        except pd.errors.EmptyDataError:
            raise InputError("has no line of data") from None
    names = [str(name).strip() for name in top] if header else [str(j + 1) for j in range(len(top))]
    if header and all(is_number(name) for name in names):
        raise InputError("has numbers where the names of the columns should be: header = false if its first line is an example")
    if len(names) == 1 and separator is None and (other := next((sign for sign in ";\t|" if sign in str(top[0])), None)):
        raise InputError(f"has one column only: its cells are separated by {other!r}, so give separator = {other!r}")
    if frame.shape[1] != len(names):
        raise InputError(f"has {plural(len(names), 'column')} in line 1, but {frame.shape[1]} in line 2")
    frame.columns = names
    return frame.loc[: frame.dropna(how="all").index.max()]  # without empty lines at the end


def _parquet_frame(source: Path, header: object, separator: object) -> Any:
    import pandas as pd

    for name, given in (("header", header is not True), ("separator", separator is not None)):
        if given:
            raise InputError(f"{name} is for tables of text, and this is a Parquet file")
    with parsing("a Parquet file"):
        return pd.read_parquet(source)
