"""Exported tables against what a store returns."""

from __future__ import annotations

import json
import math
import os
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
        frames = {"runs": store.runs(), "samples": store.samples(), "measures": store.measures(), "rungs": store.rungs()}
        expected = {name: columns(frame, store.columns(name)) for name, frame in frames.items()}
        environments, patterns = store.environments(), store.patterns()
    if any(path.suffix == ".csv" for path in files):
        texts = {name: [csv_cell(value) if isinstance(value, str) else value for value in of] for name, of in expected["runs"].items()}
        expected["runs"] = texts
    for name, of in expected.items():
        assert repr(read[name]) == repr(of)  # as text, because -0.0 is equal to 0.0
    shapes = [(each.run_id, each.part, *each.shape, each.nonzeros, each.rank) for each in patterns]
    assert list(zip(*read["patterns"].values(), strict=True)) == shapes
    assert [time.isoformat() for time in read["environments"]["started"]] == [row.pop("started") for row in environments]
    assert read["environments"]["id"] == [row.pop("id") for row in environments]
    assert [json.loads(text) for text in read["environments"]["description"]] == environments
    assert [len(next(iter(read[path.stem].values()))) for path in files] == list(files.values())


@st.composite
def runs(draw: st.DrawFn) -> dict[int, Any]:
    # A frame has whole numbers beside nulls as floats.
    samples = st.builds(Sample, REALS, st.integers(0, 2**53), REALS, st.builds(Certificate, REALS, REALS, REALS), st.none() | REALS)
    finite = st.lists(samples.filter(lambda sample: not math.isnan(sample.certificate.relative_gap)), max_size=4)
    ended = st.builds(outcome, finite, st.sampled_from(list(Status)), st.text(max_size=20))
    return dict(enumerate(draw(st.lists(ended, max_size=4))))


@given(ended=runs())
@pytest.mark.parametrize("form", FORMATS)
def test_an_export_holds_what_the_store_returns(tmp_path_factory: pytest.TempPathFactory, form: str, ended: dict[int, Any]) -> None:
    folder = fill(tmp_path_factory.mktemp("results"), ended)
    require_equal(folder, export(folder, form))


@pytest.mark.parametrize("form", FORMATS)
def test_only_what_is_listed_is_exported_in_its_order(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.results.export._CHUNK", 2)  # rows are written in parts
    solutions: list[dict[str, Array]] = [{"W": np.eye(3)}, {"P": np.eye(3), "Q": np.ones((3, 2))}, {}, {"W": np.eye(2, 201)[:, 1:]}]
    fill(tmp_path, {number: outcome(solution=solution) for number, solution in enumerate(solutions)}, plan=[case(3), case(1)])
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1)])
    files = export(tmp_path, form, tmp_path / "a" / "b")
    assert list(files.values()) == [2, 6, 0, 1, 3, 0, 0]
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [f"a/b/{name}.{form}" for name in TABLES]
    require_equal(tmp_path, files)


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
    (tmp_path / "file").write_text("x")
    (tmp_path / "taken" / "samples.csv").mkdir(parents=True)
    for of, form, out, words in (
        (folder, "xlsx", None, "the format must be one of parquet, csv, not 'xlsx'"),
        (folder, "csv", folder / ".." / "results", "is the results folder itself"),
        (tmp_path / "nothing", "csv", tmp_path / "out", "no results in"),
        (folder, "csv", tmp_path / "file" / "below", "cannot be written"),
        (folder, "csv", tmp_path / "taken", "samples.csv is a folder"),
    ):
        with pytest.raises(InputError, match=words):
            export(of, form, out)
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
    before = {path: path.read_bytes() for form in FORMATS for path in export(tmp_path, form)}
    assert min(len(content) for path, content in before.items() if path.stem == "samples") > 3000
    result = in_python(TOO_LARGE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(f": {os.strerror(27)}; what was there before is kept") == 4
    assert {path: path.read_bytes() for path in tmp_path.glob("export/*")} == before
    assert not (tmp_path / "new").exists()


def test_the_command_line_stays_light() -> None:
    script = "import sys, bench_mtl.cli; print([name for name in ('pyarrow', 'pandas', 'numpy', 'sqlite3') if name in sys.modules])"
    assert in_python(script).stdout.strip() == "[]"
