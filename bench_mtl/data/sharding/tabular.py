"""Tables in blocks: what `read_tabular` makes of a CSV, TSV or Parquet file, or of a .npy array of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import parsing
from bench_mtl.data.readers.tabular import NPY, PARQUET, TextLayout, array_frame, mapped_columns, require_no_text_options
from bench_mtl.data.selection import Selection, most_frequent_note
from bench_mtl.data.selection import most_frequent as most_frequent_columns
from bench_mtl.data.sharding.blocks import Blocks, rows_of
from bench_mtl.model.frames import Chosen, Columns, Values, chosen_columns, different_values, joined_values


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
            own = frame.iloc[: self.n_rows - start]
            if len(own):
                yield own, lambda row, start=start: self.place(start + row)  # type: ignore[misc]
            start += len(frame)


def table_blocks(
    source: Path,
    block_bytes: int,
    *,
    labels: Columns | None = None,
    targets: Columns | None = None,
    class_column: str | None = None,
    drop: str | Sequence[str] = (),
    most_frequent: int | None = None,
    **text: Any,
) -> Blocks:
    """Return the rows of a table in blocks. Passes before look for types, labels and classes; `read_tabular` explains the options.

    Raises
    ------
    InputError : as `read_tabular` does.
    """
    Selection.among_columns(most_frequent, None, None, 0, 0)
    learned: dict[str, Any] = {"labels": labels, "targets": targets, "class_column": class_column, "drop": drop}
    frames = _frames(source, block_bytes, **text)
    if frames.n_rows == 0:
        raise InputError("has no row")
    values: Values = {}
    if labels is not None or class_column is not None:
        for frame, place in frames.numbered(rows_of(block_bytes, frames.n_columns)):
            values = joined_values(values, different_values(frame, **learned, place=place))

    def chosen(rows: int) -> Iterator[Chosen]:
        for frame, place in frames.numbered(rows):
            yield chosen_columns(frame, **learned, place=place, values=values)

    first = next(chosen(1))
    d, m, notes = first.X.shape[1], first.targets.shape[1], first.notes
    rows = rows_of(block_bytes, max(frames.n_columns, m))
    kept: Any = slice(None)
    if most_frequent is not None:
        if not first.are_labels:
            raise InputError("labels cannot be chosen: the targets are real numbers")
        frequency = sum(np.count_nonzero(part.targets == 1.0, axis=0) for part in chosen(rows))
        kept = most_frequent_columns(np.asarray(frequency), most_frequent)
        notes, m = (*notes, most_frequent_note(most_frequent, m)), len(kept)

    def parts() -> Iterator[tuple[Matrix, Array]]:
        for part in chosen(rows):
            yield part.X, part.targets[:, kept]

    return Blocks(frames.n_rows, d, m, parts(), notes)


def _frames(source: Path, block_bytes: int, **text: Any) -> _Frames:
    suffix = source.suffix.lower()
    if suffix == PARQUET:
        require_no_text_options(source, **text)
        return _parquet(source)
    if suffix == NPY:
        require_no_text_options(source, **text)
        columns = mapped_columns(source)
        starts = len(columns)
        return _Frames(
            starts,
            columns.shape[1],
            lambda rows: (array_frame(columns[start : start + rows]) for start in range(0, starts, rows)),
            lambda row: f"row {row + 1}",
        )
    return _text(TextLayout.of(source, **text), block_bytes, 2 if text.get("header", True) else 1)


def _parquet(source: Path) -> _Frames:
    with parsing("a Parquet file"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(source, memory_map=True, pre_buffer=False) as file:
            n, width = file.metadata.num_rows, file.metadata.num_columns

    def of(rows: int) -> Iterator[Any]:
        import pyarrow as pa

        with parsing("a Parquet file"), pq.ParquetFile(source, memory_map=True, pre_buffer=False) as file:
            for batch in file.iter_batches(rows, use_threads=False):
                yield pa.Table.from_batches([batch], file.schema_arrow).to_pandas()

    return _Frames(n, width, of, lambda row: f"row {row + 1}")


def _text(layout: TextLayout, block_bytes: int, first: int) -> _Frames:
    """Return the rows of a table of text, whose columns have the types that all of their cells have together."""
    kinds: list[set[str]] = [set() for _ in layout.names]
    n, read = 0, 0
    for frame in layout.frames(rows_of(block_bytes, len(layout.names)), {}):
        for j, found in enumerate(kinds):
            found.add(_kind(frame.iloc[:, j]))
        filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
        n = read + int(filled[-1]) + 1 if len(filled) else n
        read += len(frame)
    types = {j: kind for j, found in enumerate(kinds) if (kind := _common_type(layout.names[j], found)) is not None}
    return _Frames(n, len(layout.names), lambda rows: layout.frames(rows, types), lambda row: f"line {row + first}")


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
