"""Every solver on data at the edge of what a problem can be: it proves its target there, or is on the list of those that cannot."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from test_pairs import SLOW_PAIRS, VARIANTS

from bench_mtl import Problem, TaskData, load_registry, run
from bench_mtl.core.types import PEER_PREFIX, Array, Limits, Status, Tolerance
from bench_mtl.validation.conformance import PAIR_TARGET

REGISTRY = load_registry()

UNITS = {"tiny": 1e-8, "huge": 1e8}

#: Examples of three tasks by what is odd about them, from ordinary ones.
ODD: dict[str, Callable[[Array], Array]] = {
    "one feature": lambda X: X[:, :1],
    "one example": lambda X: X[:1],
    "fewer examples than features": lambda X: X[:3],
    "examples twice": lambda X: X[np.arange(len(X)) // 2],
    "features twice": lambda X: X[:, np.arange(X.shape[1]) // 2],
    "features that are 0": lambda X: X * (np.arange(X.shape[1]) % 2),
    "features of unlike size": lambda X: X * 10.0 ** np.linspace(-2.0, 2.0, X.shape[1]),
    "nothing but 0": lambda X: 0.0 * X,
    "tiny": lambda X: UNITS["tiny"] * X,
    "huge": lambda X: UNITS["huge"] * X,
}

#: What else may be odd: of the tasks, the targets and the bound.
OTHERS = (
    "one task", "own examples", "one target", "sparse",
    "radius 0", "radius that does not bind", "penalty that leaves nothing", "weak penalty",
)  # fmt: skip
EDGES = (*ODD, *OTHERS)

#: Problems with the kind of their targets and a bound, which is a radius in units of the data, or a share of the largest penalty.
PROBLEMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "l1inf_hinge, radius": ("l1inf_hinge", "labels", {"radius": 0.5}),
    "l1inf_hinge": ("l1inf_hinge", "labels", {"penalty": "0.1 max"}),
    "l1inf_glm, radius": ("l1inf_glm", "real", {"radius": 0.5}),
    "l1inf_glm, logistic": ("l1inf_glm", "labels", {"penalty": "0.1 max", "loss": "logistic"}),
    "l1_ball_glm": ("l1_ball_glm", "real", {"penalty": "0.1 max"}),
    "l1_ball_glm, radius": ("l1_ball_glm", "real", {"radius": 0.5}),
    "l1_ball_glm, nonnegative": ("l1_ball_glm", "real", {"radius": 0.5, "nonneg": True}),
    "l1_ball_glm, logistic": ("l1_ball_glm", "labels", {"radius": 0.5, "loss": "logistic"}),
    "l1_ball_glm, multiclass": ("l1_ball_glm", "classes", {"penalty": "0.1 max", "loss": "multiclass"}),
    "l12_hinge": ("l12_hinge", "labels", {"penalty": "0.1 max"}),
    "l12_hinge, radius": ("l12_hinge", "labels", {"radius": 0.5}),
    "l12_glm": ("l12_glm", "labels", {"penalty": "0.1 max", "loss": "logistic"}),
    "trace_norm_glm, radius": ("trace_norm_glm", "real", {"radius": 0.5}),
    "sparse_low_rank": ("sparse_low_rank", "real", {"penalty": 1.0, "radius": 0.5}),
    "ball_hinge": ("ball_hinge", "labels", {"radius": 0.5}),
    "ball_hinge, l2": ("ball_hinge", "labels", {"radius": 0.5, "norm": "l2"}),
    "ridge_hinge": ("ridge_hinge", "labels", {"ridge": 0.1}),
    "task_relationships": ("task_relationships", "real", {"ridge": 0.1, "coupling": 0.1}),
    "group_boosting": ("group_boosting", "learners", {"nu": "0.1 max"}),
    "portfolio": ("portfolio", "prices", {}),
}


#: Steps of these are of a size that the user gives, or of random examples: at the edge they need not get far, but they do not fail.
ROUGH = ("pegasos", "projected_gradient", "sparse_online", "stochastic_gradient", "stochastic_subgradient")
UNLIKE = ("projected_subgradient", "accelerated_gradient", "smoothed_gradient", "exponentiated_gradient", "pdhg")
#: HiGHS takes what is below its tolerances for 0; and first-order steps are many where a loss of few examples is all but 0.
MISSES = {
    ("generated_lp", "tiny"), ("conic", "huge"), ("smoothed_gradient", "weak penalty"),
    ("smoothed_gradient", "own examples"),
    *((name, "radius that does not bind") for name in ("accelerated_gradient", "accelerator_gradient", "conic", "exponentiated_gradient")),
    *(("projected_subgradient", edge) for edge in ("tiny", "huge", "weak penalty")),
    *((name, "features of unlike size") for name in UNLIKE),
}  # fmt: skip


@lru_cache(maxsize=512)
def problem_of(case: str, edge: str) -> Problem | None:
    """Return the problem on odd data; None where it has no such edge."""
    name, kind, parameters = PROBLEMS[case]
    parameters = bounds_of(name, parameters, edge)
    data = None if parameters is None else data_of(kind, edge)
    return None if data is None or parameters is None else REGISTRY.problem(name).from_data(data, **parameters)


def bounds_of(name: str, parameters: dict[str, Any], edge: str) -> dict[str, Any] | None:
    """Return the parameters in the units of the data; None where the edge is of a bound that is not there."""
    unit = UNITS.get(edge, 1.0)
    result = {key: value / unit if key == "radius" else value for key, value in parameters.items()}
    if "penalty" in edge:
        shares = [key for key, value in parameters.items() if isinstance(value, str) and value.endswith(" max")]
        return {**result, shares[0]: "2 max" if edge == "penalty that leaves nothing" else "0.01 max"} if shares else None
    if edge.startswith("radius"):
        return {**result, "radius": 0.0 if edge == "radius 0" else 50.0} if "radius" in parameters else None
    power = {"sparse_low_rank": 1, "ridge_hinge": 2, "task_relationships": 2}.get(name, 0)
    return {key: value * unit**power if isinstance(value, float) and key != "radius" else value for key, value in result.items()}


def data_of(kind: str, edge: str) -> TaskData | None:
    """Return odd data; None where targets of this kind cannot be such."""
    rng, m = np.random.default_rng(0), 1 if edge == "one task" else 3
    X = ODD.get(edge, np.asarray)(rng.standard_normal((12, 6)))
    scores = X @ rng.standard_normal((X.shape[1], m)) / UNITS.get(edge, 1.0) + 0.5 * rng.standard_normal((len(X), m))
    if edge == "sparse":
        X = X * (np.arange(6) < 4) * (np.arange(12) % 3 > 0)[:, None]
    if kind == "prices":
        is_none = edge in ("one task", "own examples", "one target", "sparse", "nothing but 0")
        return None if is_none else TaskData.shared(np.exp(0.1 * X / UNITS.get(edge, 1.0)) * UNITS.get(edge, 1.0), np.ones(len(X)))
    if kind in ("classes", "learners") and edge in ("one task", "one example", "own examples"):
        return None
    targets = {"real": scores, "labels": np.sign(scores)}.get(kind, 2.0 * np.eye(m)[scores.argmax(axis=1)] - 1.0)
    targets = targets[:1].repeat(len(X), axis=0) if edge == "one target" else targets
    wrap: Any = sp.csr_array if edge == "sparse" else np.asarray
    X = np.sign(X) if kind == "learners" else X
    if edge == "own examples":
        return TaskData.per_task([wrap(X[k : 9 + k]) for k in range(3)], [targets[k : 9 + k, k] for k in range(3)])
    return TaskData.shared(wrap(X), targets)


SOLVERS = [name for name in REGISTRY.solvers if not name.startswith(PEER_PREFIX)]


def check_edge(name: str, edge: str, cases: Callable[[list[str]], list[str]]) -> None:
    """Hold a solver to its target on the chosen of those problems with this edge that it takes."""
    solver, declared = REGISTRY.solver(name), VARIANTS.get(name, [({}, PAIR_TARGET)])[0][1]
    problems = {
        case: problem for case in PROBLEMS if (problem := problem_of(case, edge)) is not None and solver.incompatibility(problem) is None
    }
    if not problems:
        pytest.skip(f"{name} takes no problem with {edge}")
    may_miss = name in ROUGH or (name, edge) in MISSES
    for case in cases(list(problems)):
        target = max(declared, 1e-8, SLOW_PAIRS.get((PROBLEMS[case][0], name), 0.0))
        record = run(
            problems[case], solver, tolerance=Tolerance(target), limits=Limits(seconds=30.0, iterations=1000 if may_miss else 20_000)
        )
        assert not record.status.is_failure, f"{case}: {record.reason}"
        assert record.status is Status.VERIFIED or may_miss, f"{case}: {record.reason}"


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", SOLVERS)
def test_at_the_edge_a_solver_proves_its_target(name: str, edge: str) -> None:
    """On one problem, by turns; the others are slow. What JAX compiles for a problem takes seconds, and serves several edges."""
    turn = EDGES.index(edge) // (6 if name.startswith("accelerator") else 1)
    check_edge(name, edge, lambda cases: cases[turn % len(cases) :][:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_on_all_problems_too(name: str) -> None:
    for edge in EDGES:
        check_edge(name, edge, lambda cases: cases)
