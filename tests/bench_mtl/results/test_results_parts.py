"""What belongs to a run: measures, patterns, attempts and places are stored, read, merged, exported and superseded with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hand_made import MACHINE, case, fill, outcome, suite
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Certificate, Ending, Place, Rung, Sample, Status
from bench_mtl.results import Outcome, Store
from bench_mtl.results.export import export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge
from bench_mtl.results.view import View

Measures = dict[str, float]

NAMES = st.sampled_from(["non-zeros", "held-out error", 'ä b, "c"', "0"])
FINITE = st.floats(allow_nan=False, allow_infinity=False)
MATRICES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([0.0, 1.0, -2.0, 1e-8]))
RUNS = st.lists(
    st.tuples(
        st.lists(st.dictionaries(NAMES, FINITE, max_size=3), max_size=3),
        st.dictionaries(st.sampled_from(["P", "Q", "ä b"]), MATRICES, max_size=2),
        st.lists(st.builds(Rung, FINITE, FINITE, st.sampled_from(list(Ending)), st.none() | FINITE), max_size=2),
        st.lists(st.builds(Place, st.text(max_size=3), st.integers(0, 9), st.just("Mine.steps"), st.text(max_size=3)), max_size=2),
    ),
    max_size=3,
)


def ran(measures: list[Measures], solution: dict[str, Array], rungs: list[Rung], places: list[Place]) -> Outcome:
    samples = [Sample(0.1 * i, i, 1.0, Certificate(1.0, 0.5, 0.0), measures=tuple(of.items())) for i, of in enumerate(measures)]
    made = outcome(samples, Status.ERROR, solution=solution)
    return replace(made, record=replace(made.record, rungs=tuple(rungs), places=tuple(places)))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(None if value != value else value for value in row) for row in frame.astype(object).itertuples(index=False)]


@given(runs=RUNS)
def test_what_is_stored_is_read_merged_and_exported(tmp_path_factory: pytest.TempPathFactory, runs: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("results")
    fill(folder, {number: ran(*parts) for number, parts in enumerate(runs)})
    merge([folder, folder], folder / "merged")
    measures = [
        (number, place, name, value)
        for number, (of_run, *_) in enumerate(runs, start=1)
        for place, of_sample in enumerate(of_run)
        for name, value in sorted(of_sample.items())
    ]
    masks = [
        (number, part, (np.abs(matrix) > 1e-6 * np.abs(matrix).max()).tolist(), np.count_nonzero(matrix))
        for number, (_, solution, _, _) in enumerate(runs, start=1)
        for part, matrix in sorted(solution.items())
    ]
    rungs = [
        (number, place, rung.asked, rung.seconds, rung.setup, str(rung.ending))
        for number, (_, _, of_run, _) in enumerate(runs, start=1)
        for place, rung in enumerate(of_run)
    ]
    for each in (folder, folder / "merged"):
        with Store.open(each) as store:
            assert rows(store.measures()) == measures
            assert rows(store.rungs()) == rungs
            assert store.places() == {number: tuple(of_run) for number, (*_, of_run) in enumerate(runs, start=1) if of_run}
            assert [(part.run_id, part.part, part.mask.tolist(), part.nonzeros) for part in store.patterns()] == masks
    counts = export(folder, "parquet")
    assert rows(pd.read_parquet(folder / "export" / "measures.parquet")) == measures
    assert counts[folder / "export" / "rungs.parquet"] == len(rungs)


def test_only_parts_of_listed_and_selected_runs_are_read(tmp_path: Path) -> None:
    fill(tmp_path, {number: ran([{"a": 1.0 + number}], {"W": np.eye(number + 1)}, [], []) for number in range(4)})
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1, solver="other"), case(0)])
        assert rows(store.measures()) == [(1, 0, "a", 1.0), (2, 0, "a", 2.0), (4, 0, "a", 4.0)]
        assert [pattern.run_id for pattern in store.patterns()] == [1, 2, 4]  # while a run writes
        chosen = read_results(tmp_path, View(select=("solver=other",)))
        assert (rows(chosen.measures), [pattern.run_id for pattern in chosen.patterns]) == ([(2, 0, "a", 2.0)], [2])
        store.plan([case(0)], force=True)
        assert (store.measures().empty, store.patterns()) == (True, ())
        store.add(case(0), ran([{"a": 9.0}], {}, [], [Place("mine.py", 1, "f", "x")]), 1)
        assert (rows(store.measures()), list(store.places())) == ([(5, 0, "a", 9.0)], [5])


def test_a_measure_that_others_wrote_and_that_is_infinite_is_left_out(tmp_path: Path, rewritten: Callable[..., None]) -> None:
    fill(tmp_path, {0: ran([{"a": 1.0}], {}, [], [])})
    rewritten(tmp_path, "UPDATE measure SET value = 9e999")
    assert read_results(tmp_path).measures.empty


def test_a_row_and_its_parts_are_stored_together_or_not_at_all(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    twice = outcome(solution={"W": np.eye(2)})
    with Store.create(tmp_path, suite()) as store:
        with pytest.raises(InputError):
            store.add(case(1), replace(twice, patterns=twice.patterns * 2), store.add_environment(MACHINE))
        assert (len(store.runs()), store.patterns()) == (1, ())
