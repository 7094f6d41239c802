"""What a run keeps proves what it says; arrays are read once, on the clock; a problem that contradicts itself is found out."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from yielding import SHORT, Yielding

from bench_mtl.core.types import Array, Certificate, Iterate, Proof, Record, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.proofs import certify_proof
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.conic import Conic


@pytest.fixture(scope="module")
def solved(problem: L1InfHinge) -> Iterate:
    record = run(problem, Conic(backend="ECOS"), tolerance=Tolerance(1e-7))
    return Iterate(record.solution, record.dual)


class Box1(Problem):
    """min of |x|'s sum over a vector of two entries, with bounds as they are told."""

    name = "told"
    offers = frozenset()
    point_shape = dual_shape = (2,)
    dimensions = {"n": 1, "d": 2, "m": 1}

    def __init__(self, *enclosures: tuple[float, float]) -> None:
        self.enclosures = enclosures

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Box1]:
        yield cls()

    def objective(self, point: Array) -> float:
        return self.enclosures[int(point[0])][1]

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self.enclosures[int(point[0])][0]

    def repair(self, point: Array) -> Array:
        return np.where(point == 1e3, 0.0, point)

    def infeasibility(self, point: Array) -> float:
        return 0.0

    def scale(self) -> float:
        return 1.0


def told(*enclosures: tuple[float, float]) -> Record:
    iterates = [Iterate(np.array([float(index), 0.0]), None, index) for index in range(len(enclosures))]
    return run(Box1(*enclosures), Yielding(*iterates), tolerance=Tolerance(1e-6), limits=SHORT, traced=True)


@pytest.mark.parametrize(
    "enclosures", [[(5.0, 10.0), (0.5, 2.0)], [(0.0, 1.0), (9.01e-8, 9e-8)], [(1e6, 1.0)]], ids=["later", "tiny", "at once"]
)
def test_the_enclosure_is_checked_after_every_tightening(enclosures: list[tuple[float, float]]) -> None:
    """A bound above a tiny objective is no rounding."""
    record = told(*enclosures)
    assert record.status is Status.ERROR
    assert "problem 'told' contradicts itself" in record.reason


@pytest.mark.parametrize("gap", [-1.0, -1e-5, -1e-9])
def test_no_negative_gap_meets_a_target_but_by_rounding(gap: float) -> None:
    assert not Tolerance(1e-6).met_by(Certificate(1e-3, 1e-3 - gap, 0.0), 1.0)
    assert Tolerance(1e-6).met_by(Certificate(1e-3, 1e-3 + 1e-14, 0.0), 1.0)
    assert not Tolerance(1e-6).met_by(Certificate(1.0, 1.0, 0.0, rounding=1e-5), 1.0)
    assert not Tolerance(1e-6).met_by(Certificate(math.inf, 1.0, 0.0), 1.0)


def test_bounds_that_overflow_prove_nothing_and_are_no_error() -> None:
    record = told((1.0, 10.0), (-math.inf, 10.0), (1.0, math.inf), (2.0, 2.0))
    assert record.status is Status.VERIFIED, record.reason
    assert all(math.isfinite(value) for sample in record.samples for value in sample.certificate)
    assert told((-math.inf, 1.0), (-math.inf, 1.0)).reason == "nothing is proven of any iterate: bounds overflow"
    assert told((math.nan, 1.0)).status is Status.ERROR
    assert told((math.inf, 1.0)).status is Status.ERROR


class Lazy:
    """An array that is computed, and changes, whenever it is looked at."""

    def __init__(self, shape: tuple[int, ...], seconds: float = 0.0) -> None:
        self.shape, self.seconds, self.asked = shape, seconds, 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.asked += 1
        time.sleep(self.seconds)
        return np.full(self.shape, 1e-3 * self.asked)


def test_what_a_lazy_array_computes_is_on_the_clock_once(problem: L1InfHinge) -> None:
    lazy = Lazy(problem.point_shape, 0.05)
    record = run(problem, Yielding(Iterate(lazy)), limits=SHORT)  # type: ignore[arg-type]
    assert lazy.asked == 1
    assert record.times.solve >= 0.05 > record.times.certify
    assert record.samples[-1].seconds >= 0.05
    assert problem.objective(record.solution) == record.samples[-1].certificate.primal


@pytest.mark.parametrize("kind", [complex, object, "U5"])
@pytest.mark.parametrize("where", ["primal", "dual"])
def test_arrays_of_no_real_numbers_are_errors(problem: L1InfHinge, kind: Any, where: str) -> None:
    odd = np.zeros(problem.point_shape if where == "primal" else problem.dual_shape).astype(kind)
    iterate = Iterate(odd) if where == "primal" else Iterate(problem.zero(), odd)
    record = run(problem, Yielding(iterate), limits=SHORT)
    assert record.status is Status.ERROR
    assert f"{where} point must be real numbers" in record.reason


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), SystemExit(1), BaseException("of all")], ids=repr)
def test_whatever_a_solver_raises_is_a_record(problem: L1InfHinge, error: BaseException) -> None:
    def make(problem: Problem) -> Iterator[Iterate]:
        yield Iterate(problem.zero())
        raise error

    record = run(problem, Yielding(make=make), limits=SHORT)
    assert (record.status, len(record.samples)) == (Status.ERROR, 1)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_the_user_reaches_the_user(problem: L1InfHinge, number: signal.Signals, catches: bool) -> None:
    """The command makes one of a termination too."""

    def make(problem: Problem) -> Iterator[Iterate]:
        yield Iterate(problem.zero())
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            if not catches:
                raise
        yield Iterate(problem.zero(), None, 1)

    before = signal.signal(number, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(problem, Yielding(make=make), limits=SHORT)
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)


def test_a_long_look_at_the_problem_is_charged(problem: L1InfHinge) -> None:
    class Looking(Yielding):
        def incompatibility(self, problem: Problem) -> str | None:
            time.sleep(0.2)
            return None

        def aimed_at(self, relative_gap: float) -> IterativeSolver:
            time.sleep(0.2)
            return self

    record = run(problem, Looking(Iterate(problem.zero())), limits=SHORT)
    assert record.samples[0].seconds >= 0.35 - 1e-3
    assert record.times.solve >= 0.35 - 1e-3


def test_the_bound_may_come_from_another_point_than_the_solution(problem: L1InfHinge, solved: Iterate) -> None:
    """First the dual point, with a bad point; then the solution, without its dual point."""
    record = run(problem, Yielding(Iterate(problem.zero(), solved.dual, 0), Iterate(solved.primal, None, 1)), limits=SHORT)
    assert record.status is Status.VERIFIED, record.reason
    assert problem.certify(Iterate(record.solution, record.dual)).relative_gap <= 1e-6


def test_a_bound_from_residuals_is_kept_even_where_a_problem_cannot_tell_its_dual_point() -> None:
    record = told((0.0, 2.0), (2.0, 9.0))  # point 0 has the objective, point 1 the bound
    assert record.status is Status.VERIFIED
    assert record.bound_point is not None
    assert record.dual is None
    assert certify_proof(Box1((0.0, 2.0), (2.0, 9.0)), Proof(record.solution, None, record.bound_point))[:2] == (2.0, 2.0)
