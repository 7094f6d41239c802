"""The driver: limits, samples, stopping tests, clocks, judgements, and solvers that misbehave."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from yielding import SHORT, Watched, Yielding, hinge

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Certificate, Iterate, Limits, Sample, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import _after, run, stalled_since
from bench_mtl.engine.proofs import proven_gap
from bench_mtl.engine.registry import Registry
from bench_mtl.engine.stopping import ByWork
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem, Solver
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.conic import Conic
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient


def test_an_infeasible_iterate_is_repaired_and_its_distance_shown(problem: L1InfHinge, faults: Registry) -> None:
    record = run(problem, faults.solver("faulty", {"fault": "far"}), limits=SHORT)
    assert record.status is Status.INACCURATE
    assert record.samples[-1].certificate.infeasibility > 1e8
    assert problem.infeasibility(record.solution) < 1e-12


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({"size": 0.0}, Status.WRONG, "a feasible point has"),
        ({"size": 1.0}, Status.WRONG, "violates the constraint by"),
        ({"size": 0.0, "claims": False}, Status.INACCURATE, ""),  # no claim, no lie
    ],
)
def test_a_false_claim_of_optimality_is_refuted(
    problem: L1InfHinge, faults: Registry, options: dict[str, Any], status: Status, words: str
) -> None:
    record = run(problem, faults.solver("liar", options))
    assert record.status is status
    assert words in record.reason
    assert len(record.samples) == 2, "a tighter tolerance might have made the claim good"


def test_what_yields_nothing_or_does_not_fit_says_so(problem: L1InfHinge, faults: Registry) -> None:
    record = run(problem, faults.solver("silent"), limits=SHORT)
    assert (record.status, record.reason) == (Status.ERROR, "the solver yielded no iterate")
    record = run(problem, AcceleratedGradient())
    assert record.status is Status.SKIPPED
    assert record.reason == f"accelerated_gradient needs smooth; l1inf_hinge offers {', '.join(sorted(L1InfHinge.offers))}"
    assert run(problem, Conic(), start=problem.zero()).status is Status.SKIPPED


def test_limits_end_a_run(problem: L1InfHinge, faults: Registry) -> None:
    endless = faults.solver("faulty", {"fault": "none"})
    by_iterations = run(problem, endless, limits=Limits(seconds=None, iterations=17))
    assert by_iterations.status is Status.INACCURATE
    assert by_iterations.samples[-1].step == 17
    by_work = run(problem, endless, limits=Limits(seconds=None, work=9.0))
    assert by_work.samples[-1].work == 9.0
    by_time = run(problem, endless, limits=Limits(seconds=0.05))
    assert by_time.status is Status.TIMEOUT
    assert 0.05 <= by_time.times.solve < 1.0


def test_whoever_is_shown_the_samples_may_end_the_run(problem: L1InfHinge) -> None:
    shown: list[Sample] = []
    ended = run(problem, ProjectedSubgradient(), limits=SHORT, on_sample=lambda sample: shown.append(sample) or len(shown) == 3)
    assert (ended.status, len(ended.samples)) == (Status.INACCURATE, 3)
    assert ended.reason.startswith("the callback ended it, relative gap")
    answered = run(problem, Ladder(("point", "point", "point")), on_sample=lambda sample: True)
    assert (answered.status, len(answered.samples)) == (Status.INACCURATE, 1)
    assert "the callback ended it" in answered.reason


#: What a slow certificate takes, seconds: more than a busy machine adds to what takes no time.
JUDGING = 0.1


class SlowToJudge(L1InfHinge):
    """Takes its time for every certificate."""

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        time.sleep(JUDGING)
        return super().dual_bound(point, dual)


def test_the_stopping_tests_of_an_iterative_solver_are_charged_and_the_certificates_of_others_are_not() -> None:
    slow, limits = hinge(SlowToJudge), Limits(seconds=None, iterations=10)
    record = run(slow, ProjectedSubgradient(), limits=limits)
    assert JUDGING <= record.times.test <= record.times.solve == record.samples[-1].seconds
    assert record.times.certify < JUDGING
    traced = run(slow, ProjectedSubgradient(), limits=limits, traced=True)
    assert traced.times.certify > 10 * JUDGING
    assert traced.times.test == 0.0
    assert traced.times.solve < JUDGING
    record = run(slow, Prepared(), limits=Limits(seconds=None))
    assert record.times.certify >= JUDGING
    assert record.times.test == 0.0
    assert 0.02 <= record.samples[-1].seconds == record.times.solve < 0.02 + JUDGING


def test_a_solver_that_states_its_gap_is_tested_when_that_meets_the_target(problem: L1InfHinge) -> None:
    """And where the claim is false it has to promise half of it next."""
    solved = run(problem, Conic(backend="ECOS"))
    claims = [1.0, math.inf, math.nan, 1e-3, 1e-6, 9e-7, 5e-7, 1e-9]

    def make(problem: Problem) -> Iterator[Iterate]:
        for step, claim in enumerate(claims):
            is_true = step == len(claims) - 1
            yield Iterate(*(solved.solution, solved.dual) if is_true else (problem.zero(), None), step, claim=claim)  # type: ignore[misc]
        raise AssertionError("it is stopped before")

    record = run(problem, Yielding(make=make), tolerance=1e-6, limits=SHORT)
    assert record.status is Status.VERIFIED, record.reason
    assert [sample.step for sample in record.samples] == [4, 6, 7]


@pytest.mark.parametrize("passes", [40, 400, 4000])
def test_stopping_tests_take_little_of_a_long_run(passes: int) -> None:
    """A tenth of a long run, besides a few at its beginning. Each iterate is a pass over the data, and no gap falls."""
    rule, tests = ByWork(1e-6, 10**9), 0  # of so large data a certificate is two passes
    for step in range(passes):
        iterate = Iterate(np.zeros(1), step=step, work=float(step))
        if rule.is_due(iterate):
            tests += 1
            rule.note(iterate, 1.0)
    assert 0.5 * math.sqrt(passes / 2) <= tests <= 6.0 + 0.1 * passes / 2


def test_a_claim_that_is_never_made_does_not_keep_a_run_from_its_end() -> None:
    rule = ByWork(1e-6, 10**9)
    careful = Iterate(np.zeros(1), work=1000.0, claim=1e-5)
    rule.note(careful, 1e-5)
    assert not rule.is_due(careful._replace(work=1900.0))
    assert rule.is_due(careful._replace(work=2000.0))


def test_the_answer_does_not_depend_on_how_fast_the_machine_is(problem: L1InfHinge) -> None:
    class Slow(L1InfHinge):
        def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
            time.sleep(0.001)
            return super().value_and_subgradient(point)

    records = [run(each, ProjectedSubgradient(), tolerance=0.1, limits=SHORT) for each in (problem, hinge(Slow))]
    assert [sample.step for sample in records[0].samples] == [sample.step for sample in records[1].samples]


@pytest.mark.parametrize("solver", [ProjectedSubgradient(), Conic(backend="ECOS")], ids=lambda solver: solver.name)
def test_the_deadline_holds_for_the_solver_and_not_for_certificates(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a watcher would kill a process whose answer takes long to certify."""
    deadline, certifying, solving = Watched(), [], []

    class Seen(L1InfHinge):
        def dual_bound(self, point: Array, dual: Array | None) -> float:
            certifying.append(deadline.value)
            return super().dual_bound(point, dual)

    work = "steps" if isinstance(solver, IterativeSolver) else "solve"
    original = getattr(type(solver), work)

    def seen(self: Solver, *arguments: Any) -> Any:
        solving.append(deadline.value)
        if work == "solve":
            return original(self, *arguments)
        return (iterate for iterate in original(self, *arguments) if solving.append(deadline.value) is None)

    monkeypatch.setattr(type(solver), work, seen)
    record = run(hinge(Seen), solver, limits=Limits(seconds=30.0, iterations=10), deadline=deadline, traced=True)
    assert len(certifying) >= len(record.samples) > 0
    assert not any(certifying)
    assert len(solving) >= 1
    assert all(value > time.monotonic() - 30.0 for value in solving)
    assert deadline.value == 0.0


@dataclass(frozen=True)
class Prepared(OneShotSolver):
    """Takes some time, and says how much of it was its set-up; what makes its answer whole takes more."""

    setup: float = 0.0
    finishes: bool = False
    name = "prepared"
    requires = frozenset()
    tolerances = (1e-6,)

    def solve(self, program: Problem, tolerance: float, seconds: float | None) -> Answer:
        time.sleep(0.02)
        answer = Answer(Iterate(program.zero()), False, "", setup_seconds=self.setup)
        return replace(answer, finish=partial(self.finish, program)) if self.finishes else answer

    def finish(self, program: Problem) -> Iterate:
        time.sleep(0.5)
        return Iterate(program.zero(), np.zeros(program.dual_shape), 7)


@pytest.mark.parametrize(("said", "true"), [(0.015, 0.015), (0.0, 0.0), (-1.0, 0.0), (math.nan, 0.0), (1e3, None), (math.inf, 0.0)])
def test_what_a_one_shot_solver_says_of_its_time_counts_as_far_as_it_can_be_true(
    problem: L1InfHinge, said: float, true: float | None
) -> None:
    """Setting up is no solving; 1e3 s are more than there was."""
    record = run(problem, Prepared(setup=said))
    assert record.samples[-1].seconds == pytest.approx(record.times.setup + record.times.solve, rel=1e-12)  # a difference is rounded
    assert record.samples[-1].seconds >= 0.02
    assert record.times.setup == (record.samples[-1].seconds if true is None else true)


def test_what_makes_an_answer_whole_is_not_on_the_clock_of_its_solver(problem: L1InfHinge) -> None:
    """Nor on its limit, which ends here before it does."""
    record = run(problem, Prepared(finishes=True), limits=Limits(seconds=0.4))
    assert record.status != "timeout"
    assert 0.02 <= record.samples[-1].seconds == record.times.solve < 0.5 <= record.times.certify
    assert record.samples[-1].step == 7
    assert record.counted == pytest.approx(record.times.build + record.times.compile + record.times.solve)


QUARTER, HALF = 10.0**0.25, 10.0**0.5


@pytest.mark.parametrize(
    ("gap", "then"),
    [
        (1.06e-3, [1e-3 / QUARTER, 1e-4]),  # 6 % above a target
        (1.9e-3, [1e-3 / HALF, 1e-4]),
        (0.9e-3, [1e-4]),
        (9.9e-2, [1e-3 / HALF, 1e-4]),
        (2e-1, [1e-4]),
    ],
)
def test_the_tolerance_after_a_near_miss_is_close_by(gap: float, then: list[float]) -> None:
    assert _after(1e-3, gap, [1e-2, 1e-3], [1e-4]) == pytest.approx(then)
    assert _after(1e-3, gap, [1e-2, 1e-3], []) == [], "no tolerance is tried below those of the solver"
    assert _after(1e-3, gap, [1e-2, 1e-3], [1e-3 / QUARTER]) == [1e-3 / QUARTER], "which is close already"


@pytest.mark.parametrize("last", [1, 22, 30, 100])
def test_the_last_iterate_of_a_solver_that_ends_is_certified(problem: L1InfHinge, last: int) -> None:
    """Whether its step is one of those that are sampled or not."""
    solved = run(problem, Conic(backend="ECOS"))
    iterates = [Iterate(problem.zero(), None, step) for step in range(last)]
    record = run(problem, Yielding(*iterates, Iterate(solved.solution, solved.dual, last)), limits=SHORT, traced=True)  # type: ignore[arg-type]
    assert (record.samples[-1].step, record.status) == (last, Status.VERIFIED), record.reason
    assert (len(record.samples) <= last) == (last > 22), "later steps are sampled more and more rarely"


def test_the_enclosure_only_tightens_and_the_solution_attains_it(problem: L1InfHinge) -> None:
    seen: list[Sample] = []
    record = run(problem, ProjectedSubgradient(), tolerance=Tolerance(1e-3), limits=SHORT, on_sample=seen.append)
    assert tuple(seen) == record.samples
    for before, after in itertools.pairwise(record.samples):
        assert after.certificate.primal <= before.certificate.primal
        assert after.certificate.dual >= before.certificate.dual
        assert after.seconds >= before.seconds
    assert problem.objective(record.solution) == pytest.approx(record.best.primal, rel=1e-12)


def test_verified_means_the_last_target_is_met(problem: L1InfHinge) -> None:
    record = run(problem, Conic(), tolerance=Tolerance(1e-6))
    assert record.status is Status.VERIFIED
    assert record.best.relative_gap <= 1e-6
    asked = [sample.asked for sample in record.samples]
    assert asked == sorted(asked, reverse=True), "the ladder, and half decades near the target"  # type: ignore[type-var]
    assert set(Conic().tolerances[:2]) <= set(asked)
    assert record.times.build > 0 < record.times.compile


def test_an_optimum_of_zero_can_be_verified() -> None:
    """Separable data with a large radius: no gap is small relative to an objective of zero, and the sentence says so."""
    zero = L1InfHinge(TaskData.shared(np.eye(4), np.array([[1.0, -1.0]] * 4)), radius=100.0)
    assert run(zero, Conic(backend="ECOS"), tolerance=Tolerance(1e-3)).status is Status.VERIFIED
    X = np.array([[1.0, 0.0], [-1.0, 0.5], [2.0, 1.0]])
    another = L1InfHinge(TaskData.shared(X, np.sign(X[:, :1])), radius=1e3)
    for problem, solver in ((zero, ProjectedSubgradient()), (another, SmoothedGradient())):
        record = run(problem, solver, limits=SHORT)
        assert record.status is Status.VERIFIED, record.reason
        assert record.reason.endswith("the optimum is almost 0") == (record.best.relative_gap > 1e-6)
    assert proven_gap(1.0, 1e-6, is_met=True).endswith("the optimum is almost 0")
    assert proven_gap(1.0, 1e-6) == "relative gap 1.0e+00 proven (target 1e-06)"


@dataclass(frozen=True)
class Ladder(OneShotSolver):
    """Answers, fails and times out as told, one word a tolerance."""

    words: tuple[str, ...] = ()
    name = "ladder"
    requires = frozenset()

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(10.0**-i for i in range(1, len(self.words) + 1))

    def solve(self, program: Problem, tolerance: float, seconds: float | None) -> Answer:
        word = self.words[round(-np.log10(tolerance)) - 1]
        if word == "raise":
            raise ZeroDivisionError
        point = Iterate(program.zero()) if word in ("point", "late", "claim") else None
        return Answer(point, word == "claim", word, out_of_time=word in ("late", "out"))


@pytest.mark.parametrize(
    ("words", "status", "samples"),
    [
        (("point", "fail"), Status.INACCURATE, 1),
        (("fail", "point"), Status.INACCURATE, 1),
        (("fail", "fail"), Status.ERROR, 0),
        (("point", "late", "point"), Status.TIMEOUT, 2),
        (("point", "out", "point"), Status.TIMEOUT, 1),
        (("point", "raise"), Status.ERROR, 1),
        (("point", "claim"), Status.WRONG, 2),
        (("fail", "claim", "fail"), Status.INACCURATE, 1),
    ],
)
def test_a_ladder_keeps_what_its_rungs_gave(problem: L1InfHinge, words: tuple[str, ...], status: Status, samples: int) -> None:
    record = run(problem, Ladder(words))
    assert (record.status, len(record.samples)) == (status, samples), record.reason


@dataclass(frozen=True)
class Known(OneShotSolver):
    """Hands in what another run has proven."""

    iterate: Iterate
    name = "known"
    requires = frozenset()
    tolerances = (1e-4,)

    def solve(self, program: Problem, tolerance: float, seconds: float | None) -> Answer:
        return Answer(self.iterate, True, "optimal")


@pytest.mark.parametrize(("grace", "status"), [(1e9, Status.VERIFIED), (0.0, Status.TIMEOUT)])
def test_a_late_answer_is_stored_and_not_verified(
    problem: L1InfHinge, monkeypatch: pytest.MonkeyPatch, grace: float, status: Status
) -> None:
    found = run(problem, Conic(backend="ECOS"), tolerance=1e-4)
    monkeypatch.setattr("bench_mtl.core.types.GRACE_SECONDS", grace)
    iterate = Iterate(found.solution, found.dual)
    for solver in (Known(iterate), Yielding(iterate)):
        record = run(problem, solver, tolerance=1e-4, limits=Limits(seconds=1e-12))
        assert record.status is status, record.reason
        assert record.best.relative_gap <= 1e-4


@pytest.mark.parametrize("size", [1e-3, 1e3])
@pytest.mark.parametrize("backend", ["ECOS", "SCS", "CLARABEL"])
def test_units_make_no_liar(size: float, backend: str) -> None:
    """X -> s X with C -> C / s is the same problem; a loose first tolerance must not end in `wrong`."""
    data = synthetic_l1inf(tasks=3, features=10, examples=12)
    blocks = [size * data.design.block(k) for k in range(3)]
    scaled = TaskData.per_task(blocks, [data.task(k)[1] for k in range(3)])
    record = run(L1InfHinge(scaled, radius=2.0 / size), Conic(backend=backend), tolerance=Tolerance(1e-4), limits=Limits(seconds=10.0))
    assert record.status is Status.VERIFIED, record.reason


def test_small_units_are_not_verified_for_nothing() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((9, 4)), rng.standard_normal((9, 2))
    for size in (1e-120, 1e-10, 1e10):
        problem = SparseLowRank(TaskData.shared(X, size * Y), penalty=0.5 * size, radius=0.2 * size)
        record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(1e-6), limits=SHORT)
        assert record.status is Status.VERIFIED
        assert record.best.relative_gap <= 1e-6
        assert record.samples[-1].step > 5


class Counted(L1InfHinge):
    """Measures what it is told to, and counts how often it repairs and measures."""

    def __init__(self, **measures: object) -> None:
        super().__init__(synthetic_l1inf(tasks=3, features=10, examples=12), radius=2.0)
        self.of: dict[str, object] = measures
        self.repaired = self.asked = 0

    def repair(self, point: Array) -> Array:
        self.repaired += 1
        return super().repair(point)

    def measures(self, point: Array) -> dict[str, float]:
        self.asked += 1
        assert self.infeasibility(point) < 1e-12
        return {"non-zeros": np.count_nonzero(point), "largest": np.abs(point).max(), **self.of}  # type: ignore[dict-item]


#: Yields worse and worse points, none of them feasible.
FAR = Yielding(make=lambda problem: (Iterate(np.full(problem.point_shape, -(10.0**step)), step=step) for step in range(1, 6)))


def test_measures_are_of_each_samples_own_point_repaired_once() -> None:
    problem = Counted()
    record = run(problem, FAR, limits=SHORT, traced=True)
    assert (problem.asked, problem.repaired, len(record.samples)) == (5, 5, 5)
    assert len({sample.certificate.primal for sample in record.samples}) == 1, "the first point is the best"
    for sample in record.samples:
        repaired = problem.repair(np.full(problem.point_shape, -(10.0**sample.step)))
        assert dict(sample.measures) == {"non-zeros": 30.0, "largest": np.abs(repaired).max()}
        assert [type(value) for _, value in sample.measures] == [float, float]
    assert hash(record.samples[0]) == hash(record.samples[0])


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        *(({"a": value}, "'a' must be a finite number") for value in (float("nan"), "3", None)),
        *(({name: 1.0}, "a name must be a line of 1 to 100 characters") for name in ("", "two\nlines", "a" * 101, 7)),
        ({f"m{i}": 1.0 for i in range(49)}, "at most 50 are stored, but the problem has 51"),
    ],
    ids=range(8),
)
def test_a_measure_that_no_row_can_hold_is_named(measures: dict[str, object], words: str) -> None:
    problem = Counted()
    problem.of = measures
    record = run(problem, FAR, limits=SHORT)
    assert record.status is Status.ERROR
    assert f"measures: {words}" in record.reason
    assert record.samples == ()


def test_a_run_is_told_its_target_and_keeps_the_last_note(problem: L1InfHinge) -> None:
    class Talking(ProjectedSubgradient):
        said = "unaimed"

        def aimed_at(self, relative_gap: float) -> Talking:
            aimed = Talking()
            object.__setattr__(aimed, "said", f"aimed at {relative_gap:g}")
            return aimed

        def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
            for iterate in super().steps(problem, start):
                yield iterate._replace(note=self.said if iterate.step == 3 else "")

    record = run(problem, Talking(), tolerance=Tolerance(1e-9), limits=Limits(iterations=10))
    assert dict(record.info)["note"] == "aimed at 1e-09"


def test_a_solver_that_makes_no_progress_is_said_to_have_stalled(problem: L1InfHinge) -> None:
    def sample(step: int, gap: float) -> Sample:
        return Sample(0.1 * step, step, 1.0, Certificate(1.0, 1.0 - gap, 0.0))

    falling = [sample(step, 1.0 / (step + 1)) for step in range(0, 400, 10)]
    assert stalled_since(falling) is None
    stuck = [*falling[:5], *(sample(step, falling[4].certificate.gap * (1.0 - 1e-6 * step)) for step in range(50, 400, 10))]
    assert stalled_since(stuck) == 40
    assert stalled_since(stuck[:8]) is None  # too soon to tell
    assert stalled_since([]) is None
    standing = Yielding(make=lambda problem: (Iterate(problem.zero(), None, step) for step in itertools.count()))
    record = run(problem, standing, limits=Limits(iterations=100), traced=True)
    assert record.status is Status.INACCURATE
    assert record.reason.endswith("stalled: nothing tighter since step 0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problem": "l1inf_hinge"}, r"^problem must be a Problem, such as L1InfHinge\(data, radius=2.0\), not 'l1inf_hinge'$"),
        ({"solver": ProjectedSubgradient}, r"^solver must be a Solver, such as Auto\(\), .* not the class ProjectedSubgradient$"),
        ({"solver": "projected_subgradent"}, r"^unknown solver 'projected_subgradent': did you mean 'projected_subgradient'\?"),
        ({"tolerance": 0.0}, "^tolerance must be"),
        ({"tolerance": "1e-3"}, r"^tolerance must be a number, not '1e-3'$"),
        ({"limits": {"seconds": 1.0}}, "^limits must be a number"),
        ({"start": np.zeros(3)}, "shape"),
        ({"start": Iterate(np.zeros((10, 3)), np.zeros(3))}, "dual point must have shape"),
    ],
    ids=range(8),
)
def test_a_mistake_in_the_call_raises_at_once(problem: L1InfHinge, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(**({"problem": problem, "solver": ProjectedSubgradient()} | arguments))
