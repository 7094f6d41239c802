"""What a problem measures, from the process of a run into the results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import PLUGINS, TINY, cases_of, problems, run_suite, suite_of

from bench_mtl.core import designs
from bench_mtl.core.types import Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, Setting


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_what_is_measured_in_a_run_is_stored_with_its_samples(
    tmp_path: Path, shared: AbstractContextManager[Executor], isolation: str
) -> None:
    suite = suite_of('name = "projected_gradient"', problems=problems("measured", "fault", "none", "nan", "raises") + TINY)
    executor = shared if isolation == "process" else InlineExecutor(Setting(1, PLUGINS))
    runs = run_suite(tmp_path, suite, executor=executor).set_index("problem_label")
    assert runs["status"].to_dict() == {"none": "verified", "nan": "error", "raises": "error", "tiny": "verified"}
    assert "measures: 'distance' must be a finite number, not nan" in runs.loc["nan", "reason"]
    assert "RuntimeError: no measures" in runs.loc["raises", "reason"]
    registry, case = load_registry(PLUGINS), cases_of(suite)[0]
    problem = case.instance.build(registry, None)
    record = run(problem, registry.solver(case.solver, case.options), tolerance=Tolerance(case.target), limits=case.limits, traced=True)
    expected = [(number, name, value) for number, sample in enumerate(record.samples) for name, value in sorted(sample.measures)]
    assert len(expected) == 2 * len(record.samples) > 0
    with Store.open(tmp_path) as store:
        found = store.measures()
    assert set(found["run_id"]) == {runs.loc["none", "id"]}
    assert list(found.drop(columns="run_id").itertuples(index=False, name=None)) == expected


def test_every_run_computes_the_norms_of_its_data_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in every certificate, and so in what a user waits for."""
    made: list[tuple[int, tuple[int, ...]]] = []
    norms = designs.line_norms
    monkeypatch.setattr(designs, "line_norms", lambda X, axis: made.append((axis, X.shape)) or norms(X, axis))
    hinge = TINY.replace('"box"', '"l1inf_hinge"').replace("bound = 0.5", "radius = 1.0")
    suite = suite_of('name = "projected_subgradient"', problems=hinge, limits="iterations = 2", top="repetitions = 3")
    run_suite(tmp_path, suite, executor=InlineExecutor(Setting(1, PLUGINS)))
    assert made.count((0, (6, 5))) > 3, "one of each task's columns a run, and as many as it takes to build the problem"
