"""No clock counts what is compiled, and what a run compiles is compiled before."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from yielding import Watched, hinge

from bench_mtl.core.types import Array, Iterate, Limits, Status
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.clock import Clock
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient


def compile_for(seconds: float) -> None:
    """Do as Numba does when it compiles."""
    with global_compiler_lock:
        time.sleep(seconds)


def test_the_clock_stands_while_something_is_compiled() -> None:
    deadline, during = Watched(), []
    clock, began = Clock(10.0, deadline), time.monotonic()
    with clock.running():
        time.sleep(0.01)
        with global_compiler_lock:
            during.append((deadline.value, deadline.compiling))
            compile_for(0.2)  # one inside another counts once
        left = deadline.value - time.monotonic()
    beside = time.monotonic() - began - 0.2  # what there was but compiling, and waiting for a processor where that is busy
    assert during == [(0.0, math.inf)]
    assert 0.01 <= clock.elapsed <= beside + 1e-3
    assert 0.2 <= clock.compiling == deadline.compiling
    assert 10.0 - beside - 1e-3 <= left <= 10.0
    assert deadline.value == 0.0


@dataclass(frozen=True)
class Compiles(IterativeSolver):
    """Compiles in its first step for longer than it may run."""

    name = "compiles"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        compile_for(0.6)
        return ProjectedSubgradient().steps(problem, start)


class CompilesAsItLooks(ProjectedSubgradient):
    """Compiles where it says whether it can run."""

    name = "compiles_as_it_looks"

    def incompatibility(self, problem: Problem) -> str | None:
        compile_for(0.4)
        return super().incompatibility(problem)


def test_a_look_at_the_problem_is_not_charged_for_what_it_compiles() -> None:
    assert run(hinge(), CompilesAsItLooks(), limits=Limits(iterations=3)).samples[0].seconds < 0.35


def test_a_run_may_compile_for_longer_than_its_limit() -> None:
    problem = next(L1InfHinge.examples(np.random.default_rng(0)))
    record = run(problem, Compiles(), limits=Limits(seconds=0.5, iterations=5))
    assert record.status is Status.INACCURATE, record.reason
    assert record.times.compile >= 0.6
    assert record.times.solve < 0.5
    assert dict(record.info)["compiled while the clock stood"]
    assert record.samples[-1].counted >= 0.6


def test_a_run_is_rehearsed_once_and_again_in_a_fork_and_never_fails_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Fussy(ProjectedSubgradient):
        def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
            seen.append("tiny" if problem.dimensions["n"] < 50 else "large")
            if seen[-1] == "tiny":
                raise ValueError("only large instances")
            return super().steps(problem, start)

    monkeypatch.setattr(Fussy, "__module__", "bench_mtl.solvers.fussy")  # a plug-in is rehearsed where it has compiled functions
    problem = L1InfHinge(synthetic_l1inf(tasks=2, features=5, examples=40), radius=1.0)
    rehearsals = []
    for process in (1, 1, 2, 2):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        seen.clear()
        record = run(problem, Fussy(), limits=Limits(iterations=3))
        assert record.status is Status.INACCURATE, record.reason
        assert seen.pop() == "large"
        assert set(seen) <= {"tiny"}
        rehearsals.append(len(seen))
    assert rehearsals[0] > 0
    assert rehearsals[1:] == [0, 1, 0]
