"""What every problem and every problem-solver pair must do; run by the tests and by `bench-mtl validate`.

Each check takes a tiny instance and returns None, or raises AssertionError with what went wrong and by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, pairwise

import numpy as np

from bench_mtl.core.types import Array, Certificate, Iterate, Limits, Proof, Record, Sample, Status, Tolerance
from bench_mtl.enclosures import Enclosure, certify
from bench_mtl.engine.checkpoint import with_plain_state
from bench_mtl.engine.driver import OnIterate, run
from bench_mtl.engine.places import place_text
from bench_mtl.engine.proofs import certify_proof
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.model.protocols import Capability, Form, IterativeSolver, NotOfferedError, Problem, Solver
from bench_mtl.validation.tiny_instances import in_memory

#: A problem must agree with CVXPY to this share of its objective on tiny instances.
REFERENCE_TOLERANCE = 1e-6
#: What every fitting solver must prove on a tiny instance within `PAIR_LIMITS`.
PAIR_TARGET = 0.05
PAIR_LIMITS = Limits(seconds=60.0, iterations=60_000)

_ROUNDING = 1e-9

#: So many iterates of a run that goes on from a state are compared.
_STEPS_RESUMED = 8
#: A solver has so many iterates to state that its gap meets the target, which may be this much larger when it is certified; so many more
#: that state it are certified too.
_STEPS_TO_A_CLAIM, _ABOUT, _MORE_CLAIMS = 100, 1.01, 5


#: Solvers of operators alone, how many steps one takes towards an optimum at most, how often bounds are looked at under way, and how many
#: points are drawn there.
_GENERAL = ("accelerated_gradient", "pdhg", "smoothed_gradient", "projected_subgradient")
_STEPS_TO_THE_OPTIMUM, _LOOKED_AT, _DRAWN = 3000, 25, 100


def check_gradient(problem: Problem, rng: np.random.Generator) -> None:
    """The gradient agrees with central differences of the smooth part along random directions."""
    point = rng.standard_normal(problem.point_shape)
    value, gradient = problem.value_and_gradient(point)
    assert np.isclose(value, problem.smooth_value(point), rtol=1e-12), "value_and_gradient and smooth_value differ"
    for _ in range(5):
        direction = rng.standard_normal(problem.point_shape)
        step = 1e-5
        ahead, behind = problem.smooth_value(point + step * direction), problem.smooth_value(point - step * direction)
        slope = (ahead - behind) / (2 * step)
        expected = float((gradient * direction).sum())
        assert np.isclose(slope, expected, rtol=1e-5, atol=1e-6 * (1 + abs(value))), f"slope {slope:g}, gradient says {expected:g}"


def check_lipschitz(problem: Problem, rng: np.random.Generator) -> None:
    """The quadratic upper model with the Lipschitz constant holds between random points; without one, no constant holds."""
    if not problem.gradient_is_lipschitz:
        _check_unbounded_curvature(problem, rng)
        return
    L = problem.lipschitz()
    for _ in range(10):
        a, b = rng.standard_normal((2, *problem.point_shape))
        value, gradient = problem.value_and_gradient(a)
        model = value + float((gradient * (b - a)).sum()) + 0.5 * L * float(((b - a) ** 2).sum())
        assert problem.smooth_value(b) <= model * (1 + _ROUNDING) + _ROUNDING, "f exceeds its quadratic model"


def _check_unbounded_curvature(problem: Problem, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, *problem.point_shape))

    def steepness(scale: float) -> float:
        change = problem.value_and_gradient(scale * a)[1] - problem.value_and_gradient(scale * b)[1]
        return float(np.linalg.norm(change)) / (scale * float(np.linalg.norm(a - b)))

    assert steepness(20.0) > 10.0 * steepness(1.0), "no Lipschitz constant is offered, but the gradient seems to have one"


def check_subgradient(problem: Problem, rng: np.random.Generator) -> None:
    """The subgradient inequality holds between random points."""
    for _ in range(10):
        a, b = rng.standard_normal((2, *problem.point_shape))
        value, subgradient, _ = problem.value_and_subgradient(a)
        other = problem.value_and_subgradient(b)[0]
        plane = value + float((subgradient * (b - a)).sum())
        assert other >= plane - _ROUNDING * (1 + abs(plane)), f"subgradient plane {plane:g} above the value {other:g}"


def check_prox(problem: Problem, rng: np.random.Generator) -> None:
    """No feasible point nearby has a lower prox objective, and the result is feasible."""
    point, step = rng.standard_normal(problem.point_shape), float(rng.uniform(0.1, 2.0))
    best = problem.prox(point, step)
    assert problem.infeasibility(best) <= _ROUNDING, f"prox is infeasible by {problem.infeasibility(best):g}"

    def objective(z: Array) -> float:
        return 0.5 * float(((z - point) ** 2).sum()) + step * problem.prox_value(z)

    for size in (1e-3, 1e-2, 1e-1, 1.0):
        other = problem.repair(best + size * rng.standard_normal(problem.point_shape))
        assert objective(best) <= objective(other) * (1 + _ROUNDING) + _ROUNDING, f"a point at distance {size:g} beats the prox"


def check_smoothed(problem: Problem, rng: np.random.Generator) -> None:
    """The smoothed value lies below the true one, nears it, has the gradient it says, and is below its quadratic model."""
    for smoothing in (1e-3, 0.3):
        L = problem.smoothed_lipschitz(smoothing)
        for _ in range(5):
            a, b = rng.standard_normal((2, *problem.point_shape))
            value, gradient, dual = problem.smoothed(a, smoothing)
            true = problem.value_and_subgradient(a)[0]
            assert value <= true * (1 + _ROUNDING) + _ROUNDING, f"smoothed value {value:g} above the true one {true:g}"
            assert problem.smoothed(a, 1e-12)[0] >= true - 1e-9 * (1 + abs(true)), "the smoothed value does not near the true one"
            assert dual.shape == problem.dual_shape, f"dual of shape {dual.shape}, not {problem.dual_shape}"
            model = value + float((gradient * (b - a)).sum()) + 0.5 * L * float(((b - a) ** 2).sum())
            other = problem.smoothed(b, smoothing)[0]
            plane = value + float((gradient * (b - a)).sum())
            assert plane - _ROUNDING * (1 + abs(plane)) <= other <= model * (1 + _ROUNDING) + _ROUNDING, "not between plane and model"


def check_lmo(problem: Problem, rng: np.random.Generator) -> None:
    """The oracle's point is feasible, and no feasible point found at random has a lower product with the direction."""
    direction = rng.standard_normal(problem.point_shape)
    try:
        vertex = problem.lmo(direction)
    except NotOfferedError:
        far = 1e9 * rng.standard_normal((20, *problem.point_shape))
        points = (*far, *np.abs(far), *-np.abs(far))
        assert any(problem.infeasibility(point) == 0.0 for point in points), "no oracle, but the set seems bounded"
        return
    assert problem.infeasibility(vertex) <= _ROUNDING, f"the oracle's point is infeasible by {problem.infeasibility(vertex):g}"
    lowest = float((direction * vertex).sum())
    others = [rng.standard_normal(problem.point_shape) for _ in range(20)] + [-direction]
    for other in others:
        product = float((direction * problem.repair(10.0 * other)).sum())
        assert lowest <= product + _ROUNDING * (1 + abs(product)), f"a feasible point has {product:g}, the oracle's {lowest:g}"


def check_declared_forms(problem: Problem, rng: np.random.Generator) -> None:
    """Every form of the instance is of a kind that the class declares."""
    for form in problem.make_forms():
        assert type(form) in problem.forms, f"{type(form).__name__} is not among the declared forms"


def check_weak_duality(problem: Problem, rng: np.random.Generator) -> None:
    """No lower bound, from any dual point, exceeds any feasible objective."""
    bounds, objectives = [], []
    for scale in (0.0, 1e-3, 0.1, 1.0, 10.0):
        point = problem.repair(scale * rng.standard_normal(problem.point_shape))
        objectives.append(problem.objective(point))
        bounds.append(problem.dual_bound(point, None))
        for shape in problem.dual_shapes:
            bounds.extend(problem.dual_bound(point, scale * rng.standard_normal(shape)) for _ in range(5))
    sizes = (1e-320, 1e-310, 1e-100, 1e-20, 1e20, 1e100)
    extremes = [scale * rng.standard_normal(shape) for shape in problem.dual_shapes for scale in sizes]
    bounds.extend(problem.dual_bound(problem.start_point(), dual) for dual in extremes)
    highest, lowest = max(bounds), min(objectives)
    assert highest <= lowest + _ROUNDING * (1 + abs(lowest)), f"lower bound {highest:g} above objective {lowest:g}"


def check_repair(problem: Problem, rng: np.random.Generator) -> None:
    """Repair gives a feasible point, does nothing to a feasible one, and changes no input."""
    for scale in (1e-6, 1.0, 1e6):
        point = scale * rng.standard_normal(problem.point_shape)
        before = point.copy()
        repaired = problem.repair(point)
        assert np.array_equal(point, before), "repair changed its input"
        assert problem.infeasibility(repaired) <= _ROUNDING, f"still infeasible by {problem.infeasibility(repaired):g}"
        again = problem.repair(repaired)
        assert np.allclose(again, repaired, rtol=1e-9, atol=1e-12 * scale), "repairing twice moves the point"


def check_against_cvxpy(problem: Problem, rng: np.random.Generator) -> None:
    """Every conic form has the problem's own optimum, by a proven enclosure of it too, and its recovered dual point proves it.

    Of examples in shards no model can be made; that of the same in memory has to have the same optimum and the same dual points.
    """
    for form in problem.conic_forms:
        enclosure, value, solution = _modelled(in_memory(problem), form)
        certificate = problem.certify(solution)
        allowed, rounding = REFERENCE_TOLERANCE * max(1.0, abs(value)), _ROUNDING * (1.0 + abs(value))
        assert certificate.dual <= enclosure.upper + rounding, (
            f"{form}: dual bound {certificate.dual!r}, above a value of {enclosure.upper!r}"
        )
        assert enclosure.lower <= certificate.primal + rounding, f"{form}: objective {certificate.primal!r}, below {enclosure.lower!r}"
        assert abs(certificate.primal - value) <= allowed, f"{form}: objective {certificate.primal:.9g}, CVXPY says {value:.9g}"
        assert abs(certificate.dual - value) <= allowed, f"{form}: dual bound {certificate.dual:.9g}, CVXPY says {value:.9g}"


@lru_cache(maxsize=512)
def _modelled(problem: Problem, form: str) -> tuple[Enclosure, float, Iterate]:
    """Solve a conic form of one of `tiny_instances`: its enclosure, its value, and what is recovered of its solution."""
    model = problem.to_cvxpy(form)
    enclosure = certify(model.problem, solver="CLARABEL", judge="answer")  # which knows nothing of the problem's own bounds
    return enclosure, float(model.problem.value), Iterate(*model.recover())


def check_optimum(problem: Problem, rng: np.random.Generator) -> None:
    """Around the optimum, where false bounds show, none is above an objective: those of a solver, which goes on until bounds close or
    cross, and those of points and dual points that are drawn near its last ones.

    Problems with a conic model are held to that instead.
    """
    solvers = [] if Capability.CONIC in problem.offers else fitting(load_registry(), _GENERAL, problem)
    if not solvers:
        return
    solver = solvers[0]
    scale, highest, lowest = problem.scale(), -np.inf, np.inf
    point, dual = problem.start_point(), None
    for number, iterate in enumerate(islice(solver.steps(problem), _STEPS_TO_THE_OPTIMUM)):
        if number % _LOOKED_AT == 0:
            point, dual = problem.repair(iterate.primal), iterate.dual
            objective, bounds = problem.bounds(point, [] if dual is None else [dual])
            lowest, highest = min(lowest, objective), max(highest, *bounds, problem.dual_bound(point, None))
            if lowest - highest <= _ROUNDING * abs(lowest):
                break
    dual = problem.dual_at(point) if dual is None else dual
    for size in 10.0 ** rng.uniform(-8.0, 0.0, _DRAWN):
        moved = problem.repair(point + size * np.abs(point).max() * rng.standard_normal(point.shape))
        lowest, highest = min(lowest, problem.objective(moved)), max(highest, problem.dual_bound(moved, None))
        if dual is not None:
            other = dual + size * np.abs(dual).max() * rng.standard_normal(dual.shape)
            highest = max(highest, problem.dual_bound(point, other))
    allowed = _ROUNDING * (abs(lowest) + abs(scale))
    assert highest <= lowest + allowed, f"near the optimum a lower bound is {highest:.9g}, and an objective {lowest:.9g} ({solver.label})"


def fitting(registry: Registry, names: Sequence[str], problem: Problem) -> list[IterativeSolver]:
    """Return those of these solvers that a registry has and a problem fits."""
    solvers = [registry.solver(name) for name in names if name in registry.solvers]
    return [solver for solver in solvers if isinstance(solver, IterativeSolver) and solver.incompatibility(problem) is None]


@dataclass(frozen=True)
class ProblemCheck:
    """A check, and the capability or the form without which it means nothing."""

    what: str
    check: Callable[[Problem, np.random.Generator], None]
    needs: Capability | type[Form] | None = None

    def applies_to(self, problem: Problem) -> bool:
        """Return whether this instance has what is checked."""
        if self.needs is None or isinstance(self.needs, Capability):
            return self.needs is None or self.needs in problem.offers
        return problem.has_form(self.needs)


_PROBLEM_CHECKS = (
    ProblemCheck("gradient", check_gradient, Capability.SMOOTH),
    ProblemCheck("Lipschitz constant", check_lipschitz, Capability.SMOOTH),
    ProblemCheck("subgradient", check_subgradient, Capability.SUBGRADIENT),
    ProblemCheck("prox", check_prox, Capability.PROX),
    ProblemCheck("smoothing", check_smoothed, Capability.SMOOTHED),
    ProblemCheck("linear minimisation", check_lmo, Capability.LMO),
    ProblemCheck("declared forms", check_declared_forms),
    ProblemCheck("weak duality", check_weak_duality),
    ProblemCheck("repair", check_repair),
    ProblemCheck("agrees with CVXPY", check_against_cvxpy, Capability.CONIC),
    ProblemCheck("bounds near the optimum", check_optimum),
)


def problem_checks(problem: type[Problem]) -> list[ProblemCheck]:
    """Return the checks of the capabilities that the class offers, and of the forms that it declares, whatever these are."""
    own = [check for check in _PROBLEM_CHECKS if check.needs is None or check.needs in problem.offers]
    return own + [ProblemCheck(kind.__name__, partial(_check_form, kind), kind) for kind in problem.forms]


def _check_form(kind: type[Form], problem: Problem, rng: np.random.Generator) -> None:
    problem.form(kind).check(problem, rng)


def check_pair(problem: Problem, solver: Solver, *, target: float = PAIR_TARGET) -> Certificate:
    """The solver proves `target` on the problem, inside the reference optimum's enclosure, and leaves the problem as it was."""
    return _proven(problem, solver, target)[0]


def check_run(problem: Problem, solver: Solver, *, target: float = PAIR_TARGET, steps: int = 20) -> Certificate:
    """`check_pair`, and of an iterative solver `check_iterates`, of which its run is one of the two compared; a run that is started at its
    solution is as good from its first sample on, and leaves the start alone.
    """
    noted: list[Iterate] = []

    def note(iterate: Iterate) -> None:
        if len(noted) < steps:
            noted.append(_copied(iterate))

    if not isinstance(solver, IterativeSolver):
        return check_pair(problem, solver, target=target)
    certificate, solution = _proven(problem, solver, target, note)
    check_iterates(problem, solver.aimed_at(target), steps=steps, noted=noted)
    _check_claims(problem, solver.aimed_at(target), target)
    _check_start(problem, solver, solution, certificate)
    return certificate


def _proven(problem: Problem, solver: Solver, target: float, on_iterate: OnIterate | None = None) -> tuple[Certificate, Array]:
    """Check a run to `target`, and return what it has proven, and its solution."""
    probe = np.random.default_rng(0).standard_normal(problem.point_shape)
    before = problem.certify(Iterate(probe))
    solver.warm_up()
    shown: list[Proof | Sample] = []
    record = run(
        problem,
        solver,
        tolerance=Tolerance(target),
        limits=PAIR_LIMITS,
        on_sample=shown.append,
        on_proof=lambda proof, _: shown.append(proof),
        on_iterate=on_iterate,
    )
    assert problem.certify(Iterate(probe)) == before, "the solver changed the problem"
    where = f" ({place_text(record.places)})" if record.places else ""
    assert record.status is Status.VERIFIED, f"{record.status}: {record.reason}{where}"
    certificate = record.best
    assert certificate is not None
    assert record.solution is not None
    assert problem.infeasibility(record.solution) <= _ROUNDING, "the solution handed over is infeasible"
    _check_proofs(problem, record, target, shown)
    reference = _reference(in_memory(problem))
    if reference is not None:
        slack = REFERENCE_TOLERANCE * max(1.0, abs(reference))
        assert certificate.dual - slack <= reference <= certificate.primal + slack, (
            f"optimum {reference:.9g} outside the proven [{certificate.dual:.9g}, {certificate.primal:.9g}]"
        )
    return certificate, record.solution


def _check_proofs(problem: Problem, record: Record, target: float, shown: list[Proof | Sample]) -> None:
    """What the record keeps proves the target again, and what was shown before a sample proves its enclosure."""
    assert record.solution is not None
    again = certify_proof(problem, Proof(record.solution, record.dual, record.bound_point))
    assert Tolerance(target).met_by(again, problem.scale()), f"certified again, solution and dual prove only {again}"
    for proof, sample in pairwise(shown):
        if isinstance(proof, Proof) and isinstance(sample, Sample):
            stated, proven = sample.certificate, certify_proof(problem, proof)
            slack = stated.rounding + proven.rounding + _ROUNDING * (abs(stated.primal) + 1e-6 * problem.scale())
            assert proven.primal <= stated.primal + slack, (
                f"objective {stated.primal:.17g} at step {sample.step}, again {proven.primal:.17g}"
            )
            assert proven.dual >= stated.dual - slack, f"bound {stated.dual:.17g} at step {sample.step}, again {proven.dual:.17g}"


def check_iterates(problem: Problem, solver: IterativeSolver, *, steps: int = 50, noted: Sequence[Iterate] = ()) -> None:
    """Two runs yield the same iterates, bit for bit; none is changed after it was yielded; steps begin at 0 or 1, and no count falls.

    From a state, made when the run is over, another one goes on bit for bit. `noted` are the first iterates of a run as they were when
    somebody saw them: it is one of the two runs where it is as long.
    """
    first, copies = [], []
    for iterate in islice(solver.steps(problem), steps):
        first.append(iterate)
        copies.append(_copied(iterate))
    assert first, "no iterate"
    assert first[0].step <= 1, f"the first step is {first[0].step}"
    assert len(noted) <= len(first), "runs of different lengths"
    _check_alike(first, noted)
    if len(noted) < len(first):
        second = list(islice(solver.steps(problem), steps))
        assert len(first) == len(second), "runs of different lengths"
        _check_alike(first, second)
    for before, after in pairwise(first):
        assert after.step > before.step, "steps do not increase"
        assert after.work >= before.work, "work decreases"
    for place in sorted({len(first) // 3, 2 * len(first) // 3}):
        _check_state(problem, solver, first, place)
    for i, (iterate, copy) in enumerate(zip(first, copies, strict=True)):
        assert _same_points(iterate, copy), f"iterate {i} was changed after it was yielded"


def _copied(iterate: Iterate) -> Iterate:
    return iterate._replace(primal=iterate.primal.copy(), dual=None if iterate.dual is None else iterate.dual.copy())


def _same_points(one: Iterate, other: Iterate) -> bool:
    if one.dual is None or other.dual is None:
        return one.dual is other.dual and np.array_equal(one.primal, other.primal)
    return np.array_equal(one.primal, other.primal) and np.array_equal(one.dual, other.dual)


def _check_alike(iterates: Sequence[Iterate], others: Sequence[Iterate]) -> None:
    """The iterates are those of another run, as far as that one goes."""
    for i, (a, b) in enumerate(zip(iterates, others, strict=False)):
        assert _same_points(a, b), f"iterate {i} differs between two runs"
        assert a.step == b.step, f"step count {i} differs"
        assert a.work == b.work, f"work count {i} differs"


def _check_state(problem: Problem, solver: IterativeSolver, iterates: list[Iterate], place: int) -> None:
    """From the state of an iterate, where it has one, a run begins with this iterate and goes on as it did."""
    start = with_plain_state(iterates[place])
    if start.state is None:
        return
    undisturbed = iterates[place : place + _STEPS_RESUMED]
    again = list(islice(solver.resume(problem, start), len(undisturbed)))
    assert len(again) == len(undisturbed), f"from the state of iterate {place} a run ends earlier"
    for i, (a, b) in enumerate(zip(again, undisturbed, strict=True), start=place):
        assert (a.step, a.work) == (b.step, b.work), f"from the state of iterate {place} the counts of iterate {i} are others"
        assert _same_points(a, b), f"from the state of iterate {place} iterate {i} is another"


def _check_claims(problem: Problem, solver: IterativeSolver, target: float) -> None:
    """The gaps that a solver states to meet its target do meet it, as certificates have it, but for a little rounding."""
    met = 0
    for number, iterate in enumerate(islice(solver.steps(problem), _STEPS_TO_A_CLAIM)):
        if iterate.claim is None and number:  # only the start may go without one: whoever states none is not asked for ever longer steps
            return
        if iterate.claim is not None and iterate.claim <= target:
            gap, met = problem.certify(iterate).relative_gap, met + 1
            assert gap <= _ABOUT * target + _ROUNDING, f"step {iterate.step} states a gap of {iterate.claim:.1e}, and {gap:.1e} is proven"
            if met > _MORE_CLAIMS:
                return


def _check_start(problem: Problem, solver: IterativeSolver, solution: Array, good: Certificate) -> None:
    start = solution.copy()
    again = run(problem, solver, tolerance=Tolerance(1e-15), limits=Limits(seconds=10.0, iterations=3), start=start)
    assert np.array_equal(start, solution), "the start was changed"
    assert again.best is not None, again.reason
    allowed = good.primal + _ROUNDING * (1.0 + abs(good.primal))
    assert again.best.primal <= allowed, f"objective {again.best.primal:g} from a start of {good.primal:g}"


@lru_cache(maxsize=512)
def _reference(problem: Problem) -> float | None:
    """Return the optimum by CVXPY and Clarabel, or None where the problem has no conic form; once for each of `tiny_instances`."""
    if Capability.CONIC not in problem.offers:
        return None
    model = problem.to_cvxpy(next(iter(problem.conic_forms)))
    return float(model.problem.solve(solver="CLARABEL"))
