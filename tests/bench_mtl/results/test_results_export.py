"""Exported tables against what a store returns."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hand_made import MACHINE, case, fill, in_python, outcome, suite
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import csv_cell
from bench_mtl.core.types import Array, Certificate, Sample, Status
from bench_mtl.results import Store
from bench_mtl.results.export import FORMATS, TABLES, export

#: Everything but the not-a-number, which no certificate has.
REALS = st.floats(allow_nan=False)


TYPES = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}


def table(path: Path, kinds: dict[str, str]) -> pa.Table:
    """An exported table; a CSV file does not say of which kinds its columns are."""
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    types = {name: TYPES[kind] for name, kind in kinds.items()} | ({"started": pa.timestamp("s", "UTC")} if "started" in kinds else {})
    options = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, column_types=types)
    return csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options)


def columns(frame: pd.DataFrame, kinds: dict[str, str]) -> dict[str, list[Any]]:
    """The values of a frame, nulls as None; whole numbers beside them are floats there."""
    return {
        name: [None if value is None or value != value else int(value) if kind == "INTEGER" else value for value in frame[name].tolist()]
        for name, kind in kinds.items()
    }


def require_equal(folder: Path, files: dict[Path, int]) -> None:
    """Assert that the exported files are what the store returns, to the last bit."""
    with Store.open(folder) as store:
        read = {path.stem: table(path, store.columns(path.stem)).to_pydict() for path in files}
        # As text, because -0.0 is equal to 0.0.
        assert repr(read["samples"]) == repr(columns(store.samples(), store.columns("samples")))
        assert repr(read["measures"]) == repr(columns(store.measures(), store.columns("measures")))
        runs = columns(store.runs(), store.columns("runs"))
        if any(path.suffix == ".csv" for path in files):
            runs = {name: [csv_cell(value) if isinstance(value, str) else value for value in values] for name, values in runs.items()}
        assert repr(read["runs"]) == repr(runs)
        environments, patterns = store.environments(), store.patterns()
    shown = [(each.run_id, each.part, *each.shape, each.nonzeros, each.rank) for each in patterns]
    assert list(zip(*read["patterns"].values(), strict=True)) == shown
    assert list(read["patterns"]) == ["run_id", "part", "rows", "columns", "nonzeros", "rank"]
    assert [time.isoformat() for time in read["environments"]["started"]] == [row.pop("started") for row in environments]
    assert read["environments"]["id"] == [row.pop("id") for row in environments]
    assert [json.loads(text) for text in read["environments"]["description"]] == environments
    assert [len(next(iter(read[path.stem].values()))) for path in files] == list(files.values())


@st.composite
def runs(draw: st.DrawFn) -> dict[int, Any]:
    # A frame has whole numbers beside nulls as floats.
    samples = st.builds(Sample, REALS, st.integers(0, 2**53), REALS, st.builds(Certificate, REALS, REALS, REALS), st.none() | REALS)
    finite = st.lists(samples.filter(lambda sample: not math.isnan(sample.certificate.relative_gap)), max_size=4)
    made = st.builds(outcome, finite, st.sampled_from(list(Status)), st.text(max_size=20))
    return dict(enumerate(draw(st.lists(made, max_size=4))))


@given(made=runs())
@pytest.mark.parametrize("form", FORMATS)
def test_an_export_holds_what_the_store_returns(tmp_path_factory: pytest.TempPathFactory, form: str, made: dict[int, Any]) -> None:
    folder = tmp_path_factory.mktemp("results")
    fill(folder, made)
    require_equal(folder, export(folder, form))


@pytest.mark.parametrize("form", FORMATS)
def test_only_what_is_listed_is_exported_in_its_order(tmp_path: Path, form: str) -> None:
    solutions: list[dict[str, Array]] = [{"W": np.eye(3)}, {"P": np.eye(3), "Q": np.ones((3, 2))}, {}, {"W": np.eye(2, 201)[:, 1:]}]
    fill(tmp_path, {number: outcome(solution=solution) for number, solution in enumerate(solutions)}, plan=[case(3), case(1)])
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1)])
    files = export(tmp_path, form, tmp_path / "a" / "b")
    assert list(files.values()) == [2, 6, 0, 1, 3, 0, 0]
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [f"a/b/{name}.{form}" for name in TABLES]
    require_equal(tmp_path, files)


def test_types_are_kept(tmp_path: Path) -> None:
    files = export(fill(tmp_path, {0: outcome(), 1: outcome(0, Status.SKIPPED)}), "parquet")
    types = {path.stem: {field.name: str(field.type) for field in parquet.read_schema(path)} for path in files}
    assert types["environments"] == {"id": "int64", "started": "timestamp[ms, tz=UTC]", "description": "string"}
    assert (types["runs"]["iterations"], types["runs"]["primal"], types["runs"]["reason"]) == ("int64", "double", "string")
    assert (types["samples"]["iteration"], types["samples"]["asked_tolerance"]) == ("int64", "double")
    assert parquet.read_table(next(iter(files)))["iterations"].to_pylist() == [2, None]


def test_a_row_that_is_longer_than_a_chunk_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.results.export._CHUNK", 2)
    fill(tmp_path, range(5))
    for form in FORMATS:
        require_equal(tmp_path, export(tmp_path, form))


def test_an_export_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    out = tmp_path / "export"
    export(tmp_path, "csv")
    (out / "mine.txt").write_text("mine")
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(0), case(1)])
        store.add(case(1), outcome(), store.add_environment(MACHINE))
        assert list(export(tmp_path, "csv").values()) == [2, 6, 0, 1, 0, 0, 0]  # while a run writes
    assert sorted(path.name for path in out.iterdir()) == sorted([*(f"{table}.csv" for table in TABLES), "mine.txt"])


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    folder = fill(tmp_path / "results", [0])
    with pytest.raises(InputError, match="the format must be one of parquet, csv, not 'xlsx'"):
        export(folder, "xlsx")
    with pytest.raises(InputError, match="is the results folder itself"):
        export(folder, "csv", folder / ".." / "results")
    with pytest.raises(InputError, match="no results in"):
        export(tmp_path / "nothing", "csv", tmp_path / "out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        export(folder, "csv", tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        export(folder, "csv", tmp_path / "file" / "below")
    (tmp_path / "taken" / "samples.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"samples\.csv is a folder"):
        export(folder, "csv", tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "results", "results.sqlite", "samples.csv", "taken"]


TOO_LARGE = """
import resource, sys
from pathlib import Path
from bench_mtl.core.errors import IncompleteError
from bench_mtl.results.export import export
import pyarrow.csv, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for form in ("csv", "parquet"):
    for out in ("export", "new"):
        try:
            export(Path(sys.argv[1]), form, Path(sys.argv[1]) / out)
        except IncompleteError as error:
            print(error)
"""


def test_a_full_disk_leaves_the_export_before(tmp_path: Path) -> None:
    fill(tmp_path, range(50))
    files = [*export(tmp_path, "csv"), *export(tmp_path, "parquet")]
    before = {path: path.read_bytes() for path in files}
    assert min(len(content) for path, content in before.items() if path.stem == "samples") > 3000
    result = in_python(TOO_LARGE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"the export cannot be written to {tmp_path / out}: {os.strerror(27)}; what was there before is kept, and the same command can be"
        " given again"
        for _ in FORMATS
        for out in ("export", "new")
    ]
    assert {path: path.read_bytes() for path in tmp_path.glob("export/*")} == before
    assert not (tmp_path / "new").exists()


def test_the_command_line_stays_light() -> None:
    script = "import sys, bench_mtl.cli; print([name for name in ('pyarrow', 'pandas', 'numpy', 'sqlite3') if name in sys.modules])"
    result = in_python(script)
    assert isinstance(result, subprocess.CompletedProcess)
    assert result.stdout.strip() == "[]"
