"""What runs leave behind besides samples: what their problems measure, and the patterns of their solutions, which may cost nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
from runs import HINGE, PLUGINS, TINY, Executing, cases_of, problems, run_suite, suite_of

from bench_mtl.core import designs
from bench_mtl.core.types import Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY, parts
from bench_mtl.results import Pattern, Store
from bench_mtl.runner import InlineExecutor, Setting, process


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_what_is_measured_in_a_run_is_stored_with_its_samples(tmp_path: Path, shared: Executing, isolation: str) -> None:
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
    suite = suite_of('name = "projected_subgradient"', problems=HINGE, limits="iterations = 2", top="repetitions = 3")
    run_suite(tmp_path, suite, executor=InlineExecutor(Setting(1, PLUGINS)))
    assert made.count((0, (6, 5))) > 3, "one of each task's columns a run, and as many as it takes to build the problem"


#: How a suite makes problems of one part and of two, and what solves them the same way every time.
TASKS = 'data = { name = "synthetic_l1inf", tasks = 3, features = 9, examples = 8 }\nparameters = '
PROBLEMS = {
    "dirty_model": (TASKS + '{ lambda_b = "0.2 max", lambda_s = "0.3 max" }', "accelerated_gradient"),
    "l1inf_hinge": (TASKS + "{ radius = 2.0 }", "projected_subgradient"),
    "portfolio": ('data = { name = "synthetic_market", periods = 40, assets = 6 }', "accelerated_gradient"),
}


def patterns_in(folder: Path) -> dict[str, list[Pattern]]:
    """By the labels of problem and solver."""
    with Store.open(folder) as store:
        runs, patterns = store.runs(), store.patterns()
    labels = (runs["problem_label"] + " | " + runs["solver_label"]).tolist()
    return {label: [each for each in patterns if each.run_id == id_] for label, id_ in zip(labels, runs["id"], strict=True)}


def require_pattern(pattern: Pattern, matrix: np.ndarray) -> None:
    sizes = np.abs(matrix)
    assert np.array_equal(pattern.mask, sizes > NEGLIGIBLE_ENTRY * sizes.max())
    assert pattern.nonzeros == np.count_nonzero(matrix)
    values = np.linalg.svd(matrix, compute_uv=False)
    assert pattern.rank == np.count_nonzero(values > NEGLIGIBLE_ENTRY * values[0])


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_run_leaves_the_pattern_of_its_solution(tmp_path: Path, shared: Executing, isolation: str) -> None:
    registry = load_registry(None)
    tables = "\n".join(f'[[problems]]\nname = "{name}"\nlabel = "{name}"\n{text}' for name, (text, _) in PROBLEMS.items())
    solvers = [
        f'name = "{each}"\nproblems = {json.dumps([name for name, (_, solved_by) in PROBLEMS.items() if solved_by == each])}'
        for each in sorted({solved_by for _, solved_by in PROBLEMS.values()})
    ]
    suite = suite_of(*solvers, problems=tables, limits="seconds = 60.0, iterations = 300")
    run_suite(tmp_path, suite, executor=shared if isolation == "process" else InlineExecutor(Setting(1, PLUGINS)))
    for case, (label, left) in zip(cases_of(suite), patterns_in(tmp_path).items(), strict=True):
        problem = case.instance.build(registry, None)
        solution = run(
            problem, registry.solver(case.solver, case.options), tolerance=Tolerance(case.target), limits=case.limits, traced=True
        ).solution
        assert solution.any(), label  # type: ignore[union-attr]
        assert [pattern.part for pattern in left] == list(problem.parts), label
        for pattern, matrix in zip(left, parts(solution, problem.parts).values(), strict=True):
            require_pattern(pattern, matrix)


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_pattern_that_cannot_be_made_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Executing, isolation: str
) -> None:
    names = ["raise", "exit", "many", "none", "surrogate", "number", "nothing", "good"]
    if isolation == "process":
        names = ["abort", "hang", *names]
        monkeypatch.setattr(process, "_AFTER_RECORD_SECONDS", 1.5)
    suite = suite_of('name = "projected_gradient"', problems=problems("parted", "names", *names))
    runs = run_suite(tmp_path, suite, executor=shared if isolation == "process" else InlineExecutor(Setting(1, PLUGINS)))
    assert runs["problem_label"].tolist() == names
    assert set(runs["status"]) == {"verified"}
    found = {label.split(" | ")[0]: [pattern.part for pattern in patterns] for label, patterns in patterns_in(tmp_path).items()}
    assert found == {name: ["B"] if name in ("good", "nothing") else [] for name in names} | {"nothing": ["W"]}


def test_a_pattern_is_on_no_clock_and_in_no_memory(tmp_path: Path, shared: Executing) -> None:
    limits = "seconds = 20.0, off_clock_seconds = 0.7, memory_gib = 0.35"
    suite = suite_of('name = "projected_gradient"', problems=problems("parted", "names", "good", "hog"), limits=limits)
    runs = run_suite(tmp_path, suite, executor=shared).set_index("problem_label")
    assert runs["status"].tolist() == ["verified", "verified"]
    assert runs.loc["hog", "wall_seconds"] < 0.7
    # Half of what the pattern takes: how much of a short run is seen depends on when it is looked at.
    assert runs.loc["hog", "peak_memory_mib"] - runs.loc["good", "peak_memory_mib"] < 128
    assert [len(patterns) for patterns in patterns_in(tmp_path).values()] == [1, 1]
