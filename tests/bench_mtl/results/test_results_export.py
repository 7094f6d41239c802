"""Exported tables against what a store returns, and what belongs to a run against what was stored."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import case, fill, in_python, outcome, suite
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import csv, parquet

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import csv_cell
from bench_mtl.core.types import Array, Certificate, Ending, Place, Rung, Sample, Status
from bench_mtl.results import Outcome, Store
from bench_mtl.results.export import FORMATS, TABLES, export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge
from bench_mtl.results.view import View

#: Everything but the not-a-number, which no certificate has.
REALS = st.floats(allow_nan=False)


def require_equal(folder: Path, out: Path) -> list[int]:
    """Assert that what is exported is what the store returns, to the last bit, in both formats; return the numbers of rows."""
    counts, files = export(folder, "parquet", out), export(folder, "csv", out)
    assert [path.name for path in (*counts, *files)] == [f"{name}.{form}" for form in FORMATS for name in TABLES]
    assert list(counts.values()) == list(files.values())
    read = {path.stem: parquet.read_table(path) for path in counts}
    for path in files:
        table = read[path.stem]
        options = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, column_types=table.schema)
        rows = csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options).to_pylist()
        texts = [{key: csv_cell(each) if isinstance(each, str) else each for key, each in row.items()} for row in table.to_pylist()]
        assert repr(rows) == repr(texts)  # as text, because -0.0 is equal to 0.0
    with Store.open(folder) as store:
        for name, table in read.items():
            exported = [
                tuple(each.isoformat() if isinstance(each, datetime) else each for each in row.values()) for row in table.to_pylist()
            ]
            assert repr(exported) == repr([row for chunk in store.chunks(name, 2) for row in chunk])
    return list(counts.values())


NAMES = st.sampled_from(["non-zeros", "held-out error", 'ä b, "c"', "0"])
FINITE = st.floats(allow_nan=False, allow_infinity=False)
MEASURES = st.dictionaries(NAMES, FINITE, max_size=3).map(lambda measures: tuple(measures.items()))
# A frame has whole numbers beside nulls as floats.
SAMPLES = st.builds(
    Sample, REALS, st.integers(0, 2**53), REALS, st.builds(Certificate, REALS, REALS, REALS), st.none() | REALS, measures=MEASURES
).filter(lambda sample: not math.isnan(sample.certificate.relative_gap))  # fmt: skip
MATRICES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([0.0, 1.0, -2.0, 1e-8]))


def ran(
    samples: Sequence[Sample], solution: dict[str, Array], rungs: Sequence[Rung] = (), places: Sequence[Place] = (),
    status: Status = Status.ERROR, reason: str = "",
) -> Outcome:  # fmt: skip
    made = outcome(samples, status, reason, solution=solution)
    return replace(made, record=replace(made.record, rungs=tuple(rungs), places=tuple(places)))


def measured(name: str, value: float) -> list[Sample]:
    return [Sample(0.1, 1, 1.0, Certificate(1.0, 0.5, 0.0), measures=((name, value),))]


RUNS = st.lists(
    st.builds(
        ran,
        st.lists(SAMPLES, max_size=3),
        st.dictionaries(st.sampled_from(["P", "Q", "ä b"]), MATRICES, max_size=2),
        st.lists(st.builds(Rung, FINITE, FINITE, st.sampled_from(list(Ending)), st.none() | FINITE), max_size=2),
        st.lists(st.builds(Place, st.text(max_size=3), st.integers(0, 9), st.just("Mine.steps"), st.text(max_size=3)), max_size=2),
        st.sampled_from(list(Status)),
        st.text(max_size=20),
    ),
    max_size=3,
)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(None if value != value else value for value in row) for row in frame.astype(object).itertuples(index=False)]


@given(runs=RUNS)
def test_what_is_stored_is_read_merged_and_exported_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, runs: list[Outcome]) -> None:
    folder = fill(tmp_path_factory.mktemp("results"), dict(enumerate(runs)))
    merge([folder, folder], folder / "merged")
    records = [(number, run.record) for number, run in enumerate(runs, start=1)]
    measures = [
        (number, place, *measure)
        for number, of in records
        for place, sample in enumerate(of.samples)
        for measure in sorted(sample.measures)
    ]
    rungs = [
        (number, place, rung.asked, rung.seconds, rung.setup, str(rung.ending))
        for number, of in records
        for place, rung in enumerate(of.rungs)
    ]
    patterns = [
        (number, part.part, part.nonzeros, part.rank, (part.rows, part.columns), part.bits)
        for number, run in enumerate(runs, start=1)
        for part in sorted(run.patterns, key=lambda part: part.part)
    ]
    for each in (folder, folder / "merged"):
        with Store.open(each) as store:
            assert (rows(store.measures()), rows(store.rungs())) == (measures, rungs)
            assert store.places() == {number: of.places for number, of in records if of.places}
            assert [astuple(pattern) for pattern in store.patterns()] == patterns
    require_equal(folder, folder / "export")


def test_what_is_listed_is_exported_in_its_order_in_place_of_the_export_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.results.export._CHUNK", 2)  # rows are written in parts
    solutions: list[dict[str, Array]] = [{"W": np.eye(3)}, {"P": np.eye(3), "Q": np.ones((3, 2))}, {}, {"W": np.eye(2, 201)[:, 1:]}]
    fill(tmp_path, {number: outcome(solution=solution) for number, solution in enumerate(solutions)})
    (out := tmp_path / "a" / "b").mkdir(parents=True)
    (out / "mine.txt").write_text("mine")
    assert require_equal(tmp_path, out) == [4, 12, 0, 1, 4, 0, 0]
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1)])
        assert require_equal(tmp_path, out) == [2, 6, 0, 1, 3, 0, 0]  # while a run writes
    assert len(list(out.iterdir())) == len(TABLES) * len(FORMATS) + 1


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
import resource
from bench_mtl.core.errors import IncompleteError
from bench_mtl.results.export import export
from bench_mtl.results.merge import merge
import pyarrow.csv, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for write in (lambda out: export(folder, "csv", out), lambda out: export(folder, "parquet", out), lambda out: merge([folder] * 2, out)):
    for out in ("merged" if "merge" in write.__code__.co_names else "export", "new/deep"):
        try:
            write(folder / out)
        except IncompleteError as error:
            print(error)
"""


def test_a_full_disk_leaves_an_export_and_a_folder_to_merge_into_as_they_were(tmp_path: Path) -> None:
    fill(tmp_path, range(50))
    before = {path: path.read_bytes() for form in FORMATS for path in export(tmp_path, form)}
    assert min(len(content) for path, content in before.items() if path.stem == "samples") > 3000
    (tmp_path / "merged").mkdir()
    result = in_python(TOO_LARGE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert [result.stdout.count(f"; what was {word} before remains") for word in ("there", "stored")] == [4, 2]
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*")} == before
    assert not (tmp_path / "new").exists()


def test_only_parts_of_listed_and_selected_runs_are_read(tmp_path: Path) -> None:
    fill(tmp_path, {number: ran(measured("a", 1.0 + number), {"W": np.eye(number + 1)}) for number in range(4)})
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1, solver="other"), case(0)])
        assert rows(store.measures()) == [(1, 0, "a", 1.0), (2, 0, "a", 2.0), (4, 0, "a", 4.0)]
        assert [pattern.run_id for pattern in store.patterns()] == [1, 2, 4]  # while a run writes
        chosen = read_results(tmp_path, View(select=("solver=other",)))
        assert rows(chosen.measures) == [(2, 0, "a", 2.0)]
        store.plan([case(0)], force=True)
        assert (store.measures().empty, store.patterns()) == (True, ())
        store.add(case(0), ran(measured("a", 9.0), {}, [], [Place("mine.py", 1, "f", "x")]), 1)
        assert (rows(store.measures()), list(store.places())) == ([(5, 0, "a", 9.0)], [5])


def test_a_row_and_its_parts_are_stored_together_or_not_at_all(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    twice = outcome(solution={"W": np.eye(2)})
    with Store.create(tmp_path, suite()) as store:
        with pytest.raises(InputError):
            store.add(case(1), replace(twice, patterns=twice.patterns * 2), store.add_environment({}))
        assert (len(store.runs()), store.patterns()) == (1, ())
