"""Listed results as typed tables for other programs: Parquet or CSV."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError, not_written
from bench_mtl.core.files import folder_beside, is_dir
from bench_mtl.core.text import csv_cell
from bench_mtl.results.database import Store
from bench_mtl.results.files import made_folder

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("runs", "samples", "measures", "environments", "patterns", "rungs", "places")

FORMATS = ("parquet", "csv")

#: Rows that are in memory at a time.
_CHUNK = 50_000


def export(folder: Path, form: str, out: Path | None = None) -> dict[Path, int]:
    """Write the listed runs of the results in `folder` and what belongs to them, a file a table; return the files with their rows.

    The columns are those of `Store.columns`. Whole numbers stay whole beside nulls, times are timestamps, floats in CSV are the same number
    when they are read again. Texts are as they are in Parquet, and as `bench_mtl.core.text.csv_cell` gives them in CSV. `form` is "parquet"
    or "csv", `out` is `folder`/export by default. Files of an earlier export are replaced once all new ones are complete, and are as they
    were where it raises InputError: the folder has no readable results, or the files cannot be written.
    """
    one_of("the format", form, FORMATS)
    target = folder / "export" if out is None else out
    if target.resolve() == folder.resolve():
        raise InputError(f"--out: {target} is the results folder itself, whose report has files of these names: choose another one")
    paths = {table: target / f"{table}.{form}" for table in TABLES}
    with Store.open(folder) as store, store.snapshot(), made_folder(target):
        for path in paths.values():
            if is_dir("output file", path):
                raise InputError(f"the export cannot be written: {path} is a folder")
        try:
            with folder_beside(target / "export") as beside:
                rows = {path: _write(store, table, form, beside / path.name) for table, path in paths.items()}
                for path in paths.values():
                    os.replace(beside / path.name, path)
        except OSError as error:
            raise not_written(f"the export cannot be written to {target}", error) from None
    return rows


def _write(store: Store, table: str, form: str, path: Path) -> int:
    """Write one table to `path`, chunk by chunk; returns its number of rows."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    types = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    kinds = store.columns(table).items()
    schema = pa.schema([(name, pa.timestamp("s", tz="UTC") if name == "started" else types[kind]) for name, kind in kinds])
    rows = 0
    with path.open("wb") as file:
        # Texts are quoted and nulls are not, which tells an empty text from a null.
        writer = parquet.ParquetWriter(file, schema) if form == "parquet" else csv.CSVWriter(file, schema)
        with writer:
            for chunk in store.chunks(table, _CHUNK):
                columns = zip(kinds, zip(*chunk, strict=True), strict=True)
                content = pa.Table.from_arrays([pa.array(values, types[kind]) for (_, kind), values in columns], [*schema.names]).cast(
                    schema
                )
                writer.write_table(without_formulas(content) if form == "csv" else content)
                rows += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return rows


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose texts are as `bench_mtl.core.text.csv_cell` gives them, for CSV."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):  # labels that many rows share
            field = field.with_type(field.type.value_type)
            table = table.set_column(place, field, table.column(place).cast(field.type))
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = [None if text is None else csv_cell(text) for text in table.column(place).to_pylist()]
            table = table.set_column(place, field, pa.array(texts, field.type))
    return table
