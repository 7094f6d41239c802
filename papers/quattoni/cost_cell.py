"""What a cell of `quattoni-cost` computes: the time or the memory of a projection, the steps to an accuracy, or the time of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench_mtl import Problem, Status, make_problem
from bench_mtl.data import synthetic_l1inf
from bench_mtl.projections import norm_l1inf, project_l1_ball, project_l1inf_ball
from bench_mtl.runner import Found
from papers import Array, Matrix
from papers.quattoni.cost_memory import peak_bytes
from papers.solve_to_gap import registry, solve_to_gap

#: What a cell is about.
TIME, MEMORY, STEPS, ITERATION = "time of a projection", "memory of a projection", "steps to an accuracy", "time of a step"

#: The papers' algorithm, which sorts and merges, and Newton's method.
MERGE, NEWTON = "merge", "newton"
METHODS = (MERGE, NEWTON)
#: The algorithms of Duchi et al. (ICML 2008, figures 2 and 1), onto the l1 ball, of all entries as a vector.
PIVOT, SORT = "pivot", "sort"
L1_METHODS = (PIVOT, SORT)

#: What grows where steps are timed.
AXES = ("examples", "features", "tasks")

#: The radius over the norm of the matrix that is projected.
SHARE = 0.1
SQUARE, TASKS_60, FEATURES_200, HEAVY, SPARSE = "square", "60 tasks", "200 features", "heavy tails", "sparse"
MATRICES = (SQUARE, TASKS_60, FEATURES_200, HEAVY, SPARSE)

#: Tasks, features and examples a task of the synthetic set, where it is not them that grow; the first two are those of the paper.
BASE: Mapping[str, int] = {"tasks": 60, "features": 200, "examples": 40}

#: The step sizes of the paper, how long each is tried, and the steps of the chosen one.
ETAS = (0.1, 1.0, 10.0, 100.0)
TRIAL, LENGTH = 200, 20_000
#: Relative accuracies.
LADDER = (1e-1, 5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5)
#: To which the optimum is proven, and seconds on the solver's clock.
_TARGET, _SECONDS = 1e-7, 120.0

_NO_PROOF = "a measurement of this machine"


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Measure what the settings say on one draw, in one thread."""
    return _PARTS[settings["part"]](settings)


# The projection.


def dimensions(matrix: str, size: int) -> tuple[int, int]:
    """Return rows and columns of a matrix of about `size` entries; those of a sparse matrix that are not 0 are counted."""
    if matrix == TASKS_60:
        return max(1, round(size / 60)), 60
    if matrix == FEATURES_200:
        return 200, max(1, round(size / 200))
    side = round(math.sqrt(size))
    return side, side


def drawn(matrix: str, size: int, seed: int) -> Matrix:
    """Return a random matrix: N(0, 1), or Student's t with 2 degrees of freedom ("heavy tails"), or a tenth of N(0, 1) ("sparse")."""
    generator = np.random.default_rng(seed)
    d, m = dimensions(matrix, size)
    if matrix == HEAVY:
        return generator.standard_t(2.0, (d, m))
    values = generator.standard_normal((d, m))
    if matrix != SPARSE:
        return values
    from scipy.sparse import csr_array

    columns = 10 * np.arange(m) + generator.integers(0, 10, (d, m))  # one of every ten
    return csr_array((values.ravel(), columns.ravel(), np.arange(d + 1) * m), shape=(d, 10 * m))


def _time(settings: Mapping[str, Any]) -> Found:
    A, method = drawn(settings["matrix"], settings["size"], settings["seed"]), settings["method"]
    project: Callable[..., object] = project_l1inf_ball
    norm: Callable[[Any], float] = norm_l1inf
    if method in L1_METHODS:
        A, project, norm = A.ravel() if isinstance(A, np.ndarray) else A.data, project_l1_ball, lambda v: float(np.abs(v).sum())
    radius = SHARE * norm(A)
    project(A[:2], 0.5 * norm(A[:2]), method=method)  # compiled code is loaded
    out = np.empty_like(A) if isinstance(A, np.ndarray) else None
    best = fastest(lambda: project(A, radius, method=method, out=out))
    entries = A.size if isinstance(A, np.ndarray) else A.nnz
    return Found({"entries": int(entries), "best_seconds": best}, Status.INACCURATE, _NO_PROOF)


def fastest(call: Callable[[], object], *, seconds: float = 0.3, least: int = 2, most: int = 1000) -> float:
    """Return the least processor time of a call that is repeated for so many seconds of it, `least` to `most` times.

    What else runs on the machine takes no part in it, as far as it leaves caches and memory alone.
    """
    best, spent = math.inf, 0.0
    for count in range(most):
        if count >= least and spent > seconds:
            break
        begun = process_time()
        call()
        each = process_time() - begun
        best, spent = min(best, each), spent + each
    return best


def _memory(settings: Mapping[str, Any]) -> Found:
    d, m = dimensions(settings["matrix"], settings["size"])
    peak = peak_bytes(d, m, settings["method"], SHARE, settings["seed"])
    return Found({"entries": d * m, "peak_bytes": peak}, Status.INACCURATE, _NO_PROOF)


# The projected subgradient method.


def _problem(settings: Mapping[str, Any]) -> tuple[Problem, float]:
    """Return the paper's synthetic problem and its radius, the norm of the true coefficients."""
    sizes = {name: settings.get(name, size) for name, size in BASE.items()}
    data = synthetic_l1inf(tasks=sizes["tasks"], features=sizes["features"], examples=sizes["examples"], seed=settings["seed"])
    return make_problem(registry().problem("l1inf_hinge"), data, {"radius": "truth"}), norm_l1inf(data.truth["W"])


def _steps(settings: Mapping[str, Any]) -> Found:
    problem, radius = _problem(settings)
    optimum = solve_to_gap(problem, "working_set", _TARGET, _SECONDS)
    eta0 = min(ETAS, key=lambda eta: min(objectives(problem, radius, eta, TRIAL)))
    values = objectives(problem, radius, eta0, LENGTH)
    found = {"eta0": eta0, "ladder": list(LADDER), "reached": first_within(values, optimum.bound, LADDER), "bound": optimum.bound}
    return Found(found | {"optimum_gap": optimum.relative_gap}, optimum.status, f"the optimum: {optimum.reason}")


def objectives(problem: Problem, radius: float, eta0: float, length: int) -> list[float]:
    """Return the objective before each step of W <- P(W - eta0 / sqrt(t) G), from W = 0."""
    W, values = problem.start_point(), []
    for t in range(1, length + 1):
        value, G, _ = problem.value_and_subgradient(W)
        values.append(value)
        W = project_l1inf_ball(W - eta0 / math.sqrt(t) * G, radius)
    return values


def first_within(values: Sequence[float], bound: float, ladder: Sequence[float]) -> list[int]:
    """Return the first t with a value after t steps of at most bound (1 + eps), for each eps in falling order, as far as there is one."""
    found: list[int] = []
    for t, value in enumerate(values):
        while len(found) < len(ladder) and value <= bound * (1.0 + ladder[len(found)]):
            found.append(t)
    return found


def _iteration(settings: Mapping[str, Any]) -> Found:
    """Time a step at a point that some steps have led to, and its parts."""
    problem, radius = _problem({settings["axis"]: settings["size"], "seed": settings["seed"]})
    eta = 10.0
    W = problem.start_point()
    for _ in range(2):
        W = project_l1inf_ball(W - eta * problem.value_and_subgradient(W)[1], radius)

    def step(method: str) -> Array:
        G = problem.value_and_subgradient(W)[1]
        moved: Array = project_l1inf_ball(W - eta * G, radius, method=method)
        return moved

    times = {f"step_{method}": fastest(lambda method=method: step(method)) for method in METHODS}  # type: ignore[misc]
    times["subgradient"] = fastest(lambda: problem.value_and_subgradient(W))
    return Found({"parameters": int(W.size)} | times, Status.INACCURATE, _NO_PROOF)


_PARTS: Mapping[str, Callable[[Mapping[str, Any]], Found]] = {TIME: _time, MEMORY: _memory, STEPS: _steps, ITERATION: _iteration}
