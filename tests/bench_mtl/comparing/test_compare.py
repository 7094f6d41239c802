"""`compare`: solvers on problems in memory, each run with its row."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bench_mtl import BenchError, Comparison, InputError, Iterate, IterativeSolver, Limits, Status, TaskData, compare, load_registry, run
from bench_mtl.comparing.instances import InMemory, filed, pickled, plain_parameters
from bench_mtl.core.types import Array
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.problems import L1BallGLM, L1InfGLM, L1InfHinge, SparseLowRank, TraceNormGLM
from bench_mtl.report.check import check_report, suite_report
from bench_mtl.solvers import Conic, ProjectedSubgradient

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


@dataclass(frozen=True)
class Stubborn(IterativeSolver):
    """Stays where it begins."""

    name: ClassVar[str] = "stubborn"
    requires: ClassVar[frozenset[Capability]] = frozenset()
    number: int = 3

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in range(self.number):
            yield Iterate(problem.start_point(), step=step)


def hinge(radius: float) -> L1InfHinge:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    return L1InfHinge(TaskData.shared(X, np.sign(X @ rng.standard_normal((4, 2))), name="tiny"), radius=radius)


@pytest.fixture(scope="module")
def problem() -> L1InfHinge:
    return hinge(1.0)


@pytest.fixture(scope="module")
def inline(problem: L1InfHinge) -> Comparison:
    solvers = ["projected_subgradient", Conic(backend="CLARABEL"), "partial_minimisation"]
    return compare(problem, solvers, targets=[1e-1, 1e-3], limits=10, isolation="inline")


def test_every_solver_has_a_row_for_every_target(inline: Comparison) -> None:
    frame = inline.frame()
    solvers = ("projected_subgradient", "clarabel", "partial_minimisation")
    assert list(zip(frame["solver"], frame["target"], strict=True)) == [(solver, target) for solver in solvers for target in (0.1, 0.001)]
    by_solver = frame.groupby("solver")["status"].first()
    assert by_solver["clarabel"] == Status.VERIFIED
    assert by_solver["partial_minimisation"] == Status.SKIPPED
    proven = frame["seconds"].notna()
    assert (frame.loc[proven, "relative_gap"] <= frame.loc[proven, "target"]).all()
    assert (frame.loc[frame["status"] == Status.VERIFIED, "seconds"] > 0).all()


def test_what_is_proven_is_what_run_proves(problem: L1InfHinge, inline: Comparison) -> None:
    alone = run(problem, Conic(backend="CLARABEL"), tolerance=1e-6, limits=10).best
    samples = inline.samples()
    assert set(samples["solver"]) == {"projected_subgradient", "clarabel"}
    assert set(samples["problem"]) == set(inline.problems) == {"l1inf_hinge"}
    assert (samples["dual"] <= alone.primal).all()
    assert (samples["primal"] >= alone.dual).all()


def test_a_plot_has_a_line_for_every_solver_that_proves_something(inline: Comparison) -> None:
    from matplotlib.figure import Figure

    ax = inline.plot(ax=Figure().subplots())
    assert "clarabel" in inline._repr_html_()
    labels = [label.split(" ")[0] for label in ax.get_legend_handles_labels()[1]]
    assert labels == ["projected_subgradient", "clarabel"]
    with pytest.raises(InputError, match="problem must be one of l1inf_hinge, not 'hinge': did you mean 'l1inf_hinge'"):
        inline.plot("hinge")


def test_a_report_is_written_once_with_its_results(inline: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mdd"):
        inline.report(tmp_path / "new", formats=["mdd"])
    text = inline.report(tmp_path / "new", formats=["md"])
    assert text == tmp_path / "new" / "report.md"
    assert "clarabel" in text.read_text()
    assert (tmp_path / "new" / "results.sqlite").is_file()
    assert "\n> **All runs were certified in the process of their solver alone** (isolation inline)" in text.read_text()
    assert check_report(tmp_path / "new", suite_report)[0] == []
    with pytest.raises(InputError, match="holds results already"):
        inline.report(tmp_path / "new")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.md").write_text("my own")
    with pytest.raises(InputError, match=r"report\.md"):
        inline.report(tmp_path / "mine")


def test_solvers_run_in_processes_of_their_own_and_are_certified_in_another(problem: L1InfHinge, tmp_path: Path) -> None:
    """Also those of a plug-in folder, and what one does to its process harms nobody."""
    said: list[str] = []
    registry = load_registry(PLUGINS)
    solvers = {"honest": "projected_subgradient", "dies": registry.solver("faulty", {"fault": "aborts"})}
    found = compare(
        {"mine": problem}, solvers, targets=0.1, limits=10, plugins=PLUGINS, out=tmp_path / "kept", progress=said.append
    )  # fmt: skip
    status = found.frame().set_index("solver")["status"]
    assert status["honest"] == Status.VERIFIED
    assert status["dies"] == Status.CRASHED
    assert [line.split(":")[0] for line in said] == [
        f"[{place}/4] mine | {who}" for place, who in enumerate(["honest", "honest", "dies", "dies"], 1)
    ]
    again: list[str] = []
    compare({"mine": problem}, {"honest": "projected_subgradient"}, targets=0.1, limits=10, out=tmp_path / "kept", progress=again.append)
    assert again == [f"2 of 2 cases done already, with rows in {tmp_path / 'kept'}"]


def test_a_problem_whose_file_is_changed_is_not_built(problem: L1InfHinge, tmp_path: Path) -> None:
    path = tmp_path / "0.pickle"
    instance = filed(pickled("mine", problem), path, InMemory("l1inf_hinge", "mine", {}, {}, None, source_digest(L1InfHinge)))
    rebuilt = instance.build(load_registry(), None)
    zero = np.zeros((4, 2))
    assert rebuilt.certify(Iterate(zero)) == problem.certify(Iterate(zero))
    path.write_bytes(path.read_bytes() + b".")
    with pytest.raises(BenchError, match="has been changed"):
        instance.build(load_registry(), None)
    path.unlink()
    with pytest.raises(BenchError, match="cannot be read"):
        instance.build(load_registry(), None)


def test_a_solver_of_a_script_runs_in_its_process_only(problem: L1InfHinge) -> None:
    found = compare([problem, hinge(0.5)], Stubborn(), targets=0.01, isolation="inline")
    assert list(found.frame()["problem"]) == ["l1inf_hinge 1", "l1inf_hinge 2"]
    assert set(found.frame()["status"]) == {Status.INACCURATE}
    with pytest.raises(InputError, match=r"^problem must be one of l1inf_hinge 1, l1inf_hinge 2"):
        found.plot()
    with pytest.raises(InputError, match=r"solver Stubborn is not installed, .* save it as FOLDER/solvers/stubborn\.py"):
        compare(problem, Stubborn())


def test_what_a_problem_has_computed_of_itself_makes_no_other_problem(tmp_path: Path) -> None:
    problem = hinge(1.0)
    before = pickled("mine", problem)
    said: list[str] = []
    for _ in range(2):
        compare(problem, Stubborn(), targets=0.5, isolation="inline", out=tmp_path / "kept", progress=said.append)
    runs = ["[1/2] l1inf_hinge | stubborn", "[2/2] l1inf_hinge | stubborn"]  # the second for its curve
    assert [line.split(":")[0].split(", ")[0] for line in said] == [*runs, "2 of 2 cases done already"]
    assert "column_norms" in vars(problem.design)  # it has computed something
    assert pickled("mine", problem) == before


def test_it_can_be_called_from_a_thread(problem: L1InfHinge) -> None:
    found: list[Comparison] = []
    thread = threading.Thread(
        target=lambda: found.append(compare(problem, "projected_subgradient", targets=0.5, isolation="inline"))
    )  # fmt: skip
    thread.start()
    thread.join()
    assert list(found[0].frame()["status"]) == [Status.VERIFIED]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problems": "l1inf_hinge"}, "^problems must be a Problem, such as "),
        ({"problems": [1]}, r"^problems\[0\] must be a Problem"),
        ({"problems": {1: None}}, "^problems: labels must be words, not 1"),
        ({"solvers": []}, "^solvers must hold at least one solver"),
        ({"solvers": [ProjectedSubgradient]}, r"^solvers\[0\] must be a Solver, such as Auto\(\), .* not the class ProjectedSubgradient"),
        ({"solvers": ["projected_subgradent"]}, "did you mean 'projected_subgradient'"),
        ({"solvers": [ProjectedSubgradient(), "projected_subgradient"]}, "^solvers: two are labelled 'projected_subgradient'"),
        ({"solvers": {"a": "projected_subgradient", "b": ProjectedSubgradient()}}, "^two cases are the same run: .* a' and .* b'"),
        ({"targets": []}, r"^targets must be relative gaps, above 0 and at most 1, not \[\]"),
        ({"threads": 10_000}, "^threads must be at most "),
        ({"isolation": "thread"}, "^isolation must be one of process, inline"),
        ({"solvers": Stubborn(np.ones(2)), "isolation": "inline"}, "option number of solver 'stubborn'"),  # type: ignore[arg-type]
        ({"plugins": "nowhere"}, "^plug-in folder nowhere does not exist"),
    ],
)
def test_a_mistake_in_the_call_raises_at_once(problem: L1InfHinge, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare(**({"problems": problem, "solvers": "projected_subgradient"} | arguments))


def test_problems_with_points_of_two_parts_are_compared_too_within_limits() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 4))
    problem = SparseLowRank(TaskData.shared(X, X @ rng.standard_normal((4, 3))), penalty=0.1, radius=1.0)
    found = compare(problem, ["admm", "projected_gradient"], targets=1e-3, limits=10, isolation="inline")
    assert set(found.frame()["status"]) == {Status.VERIFIED}
    few = compare(problem, "admm", targets=1e-12, limits=Limits(iterations=5), isolation="inline")
    assert (few.frame()["status"].iloc[0], few.samples()["step"].max()) == (Status.INACCURATE, 5)


def test_rows_of_problems_in_memory_show_their_ridge_and_cone() -> None:
    rng = np.random.default_rng(0)
    data = TaskData.shared(rng.standard_normal((9, 3)), rng.standard_normal((9, 2)))
    for cls, options in ((L1InfGLM, {"nonnegative": True}), (TraceNormGLM, {}), (L1BallGLM, {"nonneg": True})):
        shown = plain_parameters(cls(data, penalty=0.5, ridge=0.25, **options))  # type: ignore[arg-type]
        assert options | {"penalty": 0.5, "ridge": 0.25} == {name: shown.get(name) for name in (*options, "penalty", "ridge")}
    factors = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(L1InfGLM(data, penalty=0.5, feature_factors=factors).feature_factors, factors)


def test_a_problem_has_the_same_bytes_in_every_process() -> None:
    """Also one that holds sets of words, whose order differs from process to process."""
    script = """
import hashlib
import numpy as np
from bench_mtl.comparing.instances import _dumped
from bench_mtl.data import TaskData
from bench_mtl.problems.group_boosting import GroupBoosting
problem = GroupBoosting(TaskData.shared(np.eye(4), 2.0 * np.eye(2)[[0, 1, 0, 1]] - 1.0), penalty=0.1)
problem.words = {"one", "two", "three", "four", frozenset({"five", "six"})}
print(hashlib.sha256(_dumped(problem)).hexdigest())
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
