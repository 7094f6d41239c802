"""What the driver hands over of a run that may be cut off, and how one goes on: states, steps and work, proofs, errors passed on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from yielding import Yielding, hinge

from bench_mtl.core.dask_cluster import ClusterLostError
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.types import Array, Iterate, Limits, Proof, Status
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient

_RNG = np.random.default_rng(0)
SPLIT = SparseLowRank(TaskData.shared(_RNG.standard_normal((20, 5)), _RNG.standard_normal((20, 4))), penalty=1.0, radius=0.5)


def limits(iterations: int) -> Limits:
    return Limits(seconds=60.0, iterations=iterations)


def test_a_run_from_a_state_counts_on_and_is_the_undisturbed_one() -> None:
    solver = AcceleratedGradient(gram="never")
    seen: list[Iterate] = []
    run(SPLIT, solver, tolerance=1e-14, limits=limits(60), on_iterate=seen.append)
    (start,) = (one for one in seen if one.step == 25)
    again: list[Iterate] = []
    record = run(SPLIT, solver, tolerance=1e-14, limits=limits(60), start=start, on_iterate=again.append)
    rest = seen[[one.step for one in seen].index(25) :]
    assert [(one.step, one.work) for one in again] == [(one.step, one.work) for one in rest]
    assert all(np.array_equal(one.primal, other.primal) for one, other in zip(again, rest, strict=True))
    assert (record.samples[0].step, record.samples[-1].step) == (25, 60)


def test_a_run_from_points_alone_counts_on_from_theirs(problem: L1InfHinge) -> None:
    start = next(one for one in PDHG().steps(problem) if one.step >= 40)._replace(state=None)
    record = run(problem, PDHG(), tolerance=1e-14, limits=limits(start.step + 100), start=start)
    assert record.samples[0].step == start.step
    assert record.samples[0].work >= start.work
    assert start.step + 100 <= record.samples[-1].step < start.step + 150


def test_a_start_may_be_a_list(problem: L1InfHinge) -> None:
    zeros: Any = problem.zero().tolist()
    assert run(problem, "auto", tolerance=1e-2, start=zeros).status is Status.VERIFIED
    assert run(problem, "auto", tolerance=1e-2, start=Iterate(zeros)).status is Status.VERIFIED


def test_a_solver_that_passes_over_a_state_is_found_out(problem: L1InfHinge) -> None:
    def make(problem: Problem) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0, 0.0)

    record = run(problem, Yielding(make=make), start=Iterate(problem.zero(), None, 7, 7.0, state={"x": 1.0}), limits=limits(10))
    assert record.status is Status.ERROR
    assert "was to go on from its state at step 7, and begins at step 0" in record.reason


def test_what_is_known_is_certified_anew_and_kept(problem: L1InfHinge) -> None:
    far = run(problem, PDHG(), tolerance=1e-9, limits=limits(20_000))
    known = Proof(far.solution, far.dual, far.bound_point)
    shown: list[Proof] = []
    weak = ProjectedSubgradient()
    record = run(problem, weak, tolerance=1e-12, limits=limits(5), known=known, on_proof=lambda proof, _: shown.append(proof))
    assert (record.best.primal, record.best.dual) == pytest.approx((far.best.primal, far.best.dual), rel=1e-12)
    assert np.array_equal(shown[0].point, far.solution)
    assert np.array_equal(record.solution, far.solution)
    enough = run(problem, weak, tolerance=1e-6, limits=limits(5), known=known)
    assert enough.status is Status.VERIFIED
    assert len(enough.samples) == 1


def test_a_false_proof_proves_what_its_points_do_and_no_more(problem: L1InfHinge) -> None:
    point = np.full(problem.point_shape, 1e3)
    record = run(problem, ProjectedSubgradient(), tolerance=1e-12, limits=limits(5), known=Proof(point, np.zeros(problem.dual_shape)))
    honest = run(problem, ProjectedSubgradient(), tolerance=1e-12, limits=limits(5))
    assert record.best.primal <= honest.best.primal
    assert problem.infeasibility(record.solution) <= 1e-9  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dual point must have shape"):
        run(problem, ProjectedSubgradient(), known=Proof(problem.zero(), np.zeros(3)))


@pytest.mark.parametrize("kind", [IncompleteError, ClusterLostError])
@pytest.mark.parametrize("where", ["steps", "problem", "incompatibility"])
def test_what_cannot_go_on_is_passed_on_or_recorded(kind: type[IncompleteError], where: str) -> None:
    class Lost(L1InfHinge):
        name = "lost_hinge"

        def infeasibility(self, point: Array) -> float:
            if where == "problem" and point.any():
                raise kind("gone")
            return super().infeasibility(point)

    class Losing(Yielding):
        def incompatibility(self, problem: Problem) -> str | None:
            if where == "incompatibility":
                raise kind("gone")
            return super().incompatibility(problem)

    def make(problem: Problem) -> Iterator[Iterate]:
        yield Iterate(problem.zero())
        if where == "steps":
            raise kind("gone")
        yield Iterate(problem.repair(np.ones(problem.point_shape)), None, 1, 1.0)

    problem = hinge(Lost)
    seen: list[Iterate] = []
    with pytest.raises(kind, match="gone"):
        run(problem, Losing(make=make), limits=limits(5), on_iterate=seen.append)
    assert [one.step for one in seen] == {"steps": [0], "problem": [0], "incompatibility": []}[where]
    record = run(problem, Losing(make=make), limits=limits(5), records_incomplete=True)
    assert (record.status, record.reason) == (Status.ERROR, f"{kind.__name__}: gone")
