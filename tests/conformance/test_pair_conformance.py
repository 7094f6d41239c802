"""Every solver on every problem that it fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem, Solver
from bench_mtl.validation.conformance import PAIR_TARGET, check_iterates, check_pair, check_resumes
from bench_mtl.validation.tiny_instances import all_instances, sharded_instances, tiny_instances

REGISTRY = load_registry()

#: Options to try besides the defaults, and the gap that a solver must prove where it can do better than the papers'.
VARIANTS: dict[str, list[tuple[dict[str, object], float]]] = {
    "adaptive_sample_size": [({}, 1e-6), ({"growth": 1.5}, 1e-6), ({"first": 1.0}, 1e-6)],
    "alternating_relationships": [({}, PAIR_TARGET), ({"perturbation": 1e-3}, 1e-3)],
    "auto": [({}, 1e-8), ({"memory_gib": 1e-9}, 1e-6)],
    "conic": [
        *(({"backend": backend}, 1e-7) for backend in ("ECOS", "SCS", "CLARABEL", "HIGHS", "PDLP", "OSQP", "PIQP", "QOCO", "MOREAU")),
        ({"backend": "CVXOPT"}, 1e-6),
        ({"backend": "CVXOPT", "method": "robust"}, 1e-6),
        ({"backend": "SDPA"}, 1e-5),
        *(({"backend": "HIGHS", "method": method}, 1e-7) for method in ("simplex", "ipx", "hipo", "pdlp", "hipdlp")),
        ({"backend": "SCS", "method": "tuned"}, 1e-7),
        ({"backend": "CLARABEL", "form": "nuclear_norm"}, 1e-7),
        ({"backend": "SCS", "form": "sdp"}, 1e-7),
    ],
    "interior_point": [({}, 1e-8)],
    "working_set": [({}, 1e-8), ({"first": 1}, 1e-8)],
    "admm": [({}, 1e-7), ({"relaxation": 1.0, "penalty": 5.0}, 1e-6)],
    "consensus_admm": [({}, 1e-6), ({"blocks": 5, "workers": 2}, 1e-4)],
    "pdhg": [({}, 1e-9), ({"polish": False}, 1e-8), ({"variant": "average"}, 1e-6), ({"step_rule": "norm"}, 1e-6)],
    "block_coordinate": [({}, 1e-6)],
    "partial_minimisation": [({}, 1e-9)],
    "coordinate_descent": [({}, 1e-9), ({"gram": "never"}, 1e-9)],
    "frank_wolfe_smooth": [
        ({}, 1e-7),
        ({"variant": "away"}, 1e-7),
        ({"variant": "plain"}, 1e-2),
        ({"step_rule": "backtracking"}, 1e-7),
    ],
    "frank_wolfe_trace": [({}, 1e-2)],
    "projected_gradient": [
        ({}, 1e-4),
        ({"step_rule": "line_search", "initial_lipschitz": 0.01}, 1e-4),
        *(({"projection": method}, 1e-4) for method in ("newton", "filter", "pivot", "sort")),
    ],
    "accelerated_gradient": [
        ({}, 1e-5),
        ({"restart": "gradient"}, 1e-9),
        ({"step_rule": "line_search", "initial_lipschitz": 0.01}, 1e-5),
        ({"restart": "gradient", "projection": "sort"}, 1e-9),
    ],
    "dual_coordinate_ascent": [({}, 1e-9), ({"shrinking": False}, 1e-9)],
    "exponentiated_gradient": [({}, 1e-4), ({"step_rule": "sqrt"}, 1e-2), ({"batch": 5}, PAIR_TARGET)],
    "face_newton": [({}, 1e-9), ({"most_active": 3}, 1e-6)],
    "frank_wolfe": [({}, 1e-7), ({"variant": "away"}, 1e-6), ({"variant": "plain"}, PAIR_TARGET)],
    "l1_working_set": [({}, 1e-9), ({"first": 1, "growth": 1.2}, 1e-9)],
    "multiboost_group": [({}, 1e-9), ({"columns": 1}, 1e-9)],
    "multiboost_l1": [({}, 1e-9), ({"columns": 1}, 1e-9)],
    "peer_celer": [({}, 1e-9)],
    "peer_cyanure": [({}, 1e-9)],
    "peer_skglm": [({}, 1e-9)],
    "peer_sklearn": [({}, 1e-9), ({"method": "saga"}, 1e-9)],
    "peer_spams": [({}, 1e-9), ({"method": "lars"}, 1e-9)],
    "pegasos": [
        ({}, PAIR_TARGET),
        ({"batch": 5, "averaging": "all"}, PAIR_TARGET),
        ({"projection": False, "averaging": "last"}, PAIR_TARGET),
    ],
    "scs_spectral": [({}, 1e-6)],
    "sparse_online": [({}, 0.02), ({"storage": "tree"}, 0.02)],
    "spectral_gradient": [({}, 1e-9)],
    "stochastic_gradient": [({}, 0.03), ({"batch": 10, "averaging": "last"}, 0.03)],
    "stochastic_subgradient": [({"batch": 50}, PAIR_TARGET)],
    "simplex_newton": [({}, 1e-10), ({"largest": 3}, 1e-6)],
    "smoothed_gradient": [({}, 1e-6), ({"step_rule": "lipschitz"}, 1e-3)],
}

#: The least gaps to ask of a solver on a problem: from corner to corner of a round set progress is slow, as 1 / steps, the smoothing of
#: hinges under a round norm has to become tiny, and every step of ADMM on scores of classes is an inner solve
#: (tests/solvers/test_admm_group.py asks for more).
SLOW_PAIRS = {
    ("trace_norm_glm", "frank_wolfe_smooth"): 1e-2,
    ("l12_glm", "frank_wolfe_smooth"): 1e-4,
    ("l12_hinge", "frank_wolfe"): PAIR_TARGET,
    ("l12_hinge", "smoothed_gradient"): 1e-4,
    ("l12_hinge", "auto"): 1e-4,  # which is the one before
    ("l12_hinge", "adaptive_sample_size"): 1e-4,  # which ends as it does
    ("group_boosting", "admm"): 1e-5,
}

#: Of seconds, though with their defaults: the first is among the fast with other options, the second compiles in every process anew.
LONG = ("group_boosting-consensus_admm", "l1_ball_glm-peer_skglm")


def fitting(problem: type[Problem], solver: Solver) -> list[Problem]:
    return [tiny for tiny in all_instances(problem, 0) if solver.incompatibility(tiny) is None]


def pairs() -> Iterator[object]:
    """Every solver with its defaults on every problem, and with other options on the first problem that they fit. The rest is slow.

    Of the generic solvers, all that are soon done count as defaults.
    """
    seen: set[str] = set()
    for problem_name, problem in REGISTRY.problems.items():
        for solver_name in REGISTRY.solvers:
            for options, target in VARIANTS.get(solver_name, [({}, PAIR_TARGET)]):
                solver = REGISTRY.solver(solver_name, options)
                if fitting(problem, solver):
                    variant = "-".join([solver_name, *map(str, options.values())])
                    name = f"{problem_name}-{variant}"
                    is_default = not options or (set(options) == {"backend"} and options["backend"] != "SCS")
                    slow = name in LONG or not (is_default or variant not in seen)
                    seen.add(variant)
                    least = max(target, SLOW_PAIRS.get((problem_name, solver_name), 0.0))
                    yield pytest.param(problem, solver, least, id=name, marks=[pytest.mark.slow] if slow else [])


PAIRS = list(pairs())
ITERATIVE = [pair for pair in PAIRS if isinstance(pair.values[1], IterativeSolver)]  # type: ignore[attr-defined]


def few(problem: type[Problem], solver: Solver, part: int) -> list[Problem]:
    """Return of the instances that a solver fits the first, the last and one between them; of those in shards one of these three."""
    found = [tiny for tiny in tiny_instances(problem, 0) if solver.incompatibility(tiny) is None]
    sharded = [tiny for tiny in sharded_instances(problem, 0) if solver.incompatibility(tiny) is None]
    return (found if len(found) < 4 else _three(found)) + (_three(sharded)[part : part + 1] if sharded else [])


def _three(found: list[Problem]) -> list[Problem]:
    return [found[0], found[len(found) // 2], found[-1]]


def asked(tiny: Problem, solver: Any, target: float) -> float:
    """Return the gap to ask for: hinges are hard to smooth, and more so with best intercepts. In shards `auto` smooths them, too."""
    has_no_sets = solver.name == "auto" and (solver.memory_gib < 1e-6 or (tiny.is_in_shards and Capability.SMOOTH not in tiny.offers))
    if solver.name != "smoothed_gradient" and not has_no_sets:
        return target
    return max(target, 1e-4 if any(form.has_intercept for form in tiny.make_forms()) else 1e-6)


@pytest.mark.parametrize(("problem", "solver", "target"), PAIRS)
def test_reaches_a_certified_target(problem: type[Problem], solver: Solver, target: float) -> None:
    reached = [check_pair(tiny, solver, target=asked(tiny, solver, target)) for tiny in few(problem, solver, 0)]
    if not isinstance(solver, IterativeSolver):  # whose iterates are compared one by one
        assert check_pair(few(problem, solver, 0)[0], solver, target=target) == reached[0]


@pytest.mark.parametrize(("problem", "solver", "target"), ITERATIVE)
def test_iterates_are_reproducible_and_counted(problem: type[Problem], solver: IterativeSolver, target: float) -> None:
    for tiny in few(problem, solver, 1):
        check_iterates(tiny, solver, steps=20)


@pytest.mark.parametrize(("problem", "solver", "target"), ITERATIVE)
def test_resumes_from_a_given_start(problem: type[Problem], solver: IterativeSolver, target: float) -> None:
    for tiny in few(problem, solver, 2):
        check_resumes(tiny, solver)


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "solver", "target"), PAIRS)
def test_every_instance_with_every_option(problem: type[Problem], solver: Solver, target: float) -> None:
    """The whole product, of which the tests above take a part; of the instances in shards three."""
    sharded = [tiny for tiny in sharded_instances(problem, 0) if solver.incompatibility(tiny) is None]
    for tiny in [*(tiny for tiny in fitting(problem, solver) if not tiny.is_in_shards), *(_three(sharded) if sharded else [])]:
        reached = check_pair(tiny, solver, target=asked(tiny, solver, target))
        if isinstance(solver, IterativeSolver):
            check_iterates(tiny, solver)
            check_resumes(tiny, solver)
        else:
            assert check_pair(tiny, solver, target=asked(tiny, solver, target)) == reached


def test_every_solver_that_is_installed_fits_something() -> None:
    tested = {parameter.values[1].name for parameter in PAIRS}  # type: ignore[attr-defined]
    assert tested == {name for name in REGISTRY.solvers if REGISTRY.solver(name).version != "not installed"}
