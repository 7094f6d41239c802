"""`l1_working_set` against celer and skglm, on the lasso and on sparse logistic regression, to the same proven gaps.

The peers minimise our objective: `Lasso(alpha=penalty / n)` of both ours over n, celer's `LogisticRegression(C=1 / (n penalty))` ours over
the penalty, skglm's `SparseLogisticRegression(alpha=penalty)` ours itself. They have no intercept and their favourite layout of X, made off
the clock. Each climbs a ladder of tolerances; its time for a gap is that of `fit` at the loosest tolerance whose `coef_` our problem
certifies to it, as if that were known. Ours is the solver's own time, without certificates, up to the first iterate that closes the gap
between the best objective and the best bound so far. A peer has eight seconds for a fit. All run in turns on one thread; a figure is the
median of the rounds.

A path is one of 100 penalties from the largest down to a hundredth of it, each certified to 1e-4, ours from its neighbour's solution by
`regularisation_path`; `celer_path` at the loosest tolerance at which all of its points are.

Run by `python -m benchmarks.l1_peers` (ten minutes; needs the extra `peers`; real data from BENCH_MTL_DATA where they are there).
`--only` takes the beginning of names, `--path` the paths alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.regularisation_path import regularisation_path
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.solvers.l1_working_set import L1WorkingSet

GAPS = (1e-4, 1e-6, 1e-8)
SHARES = (0.1, 0.01, 0.003)
LOSSES = ("squared", "logistic")
TOLERANCES = tuple(10.0**-exponent for exponent in range(1, 15))

#: Values of a path, down to this share of the largest, and the gap that each is certified to.
PATH_VALUES, PATH_END, PATH_GAP = 100, 0.01, 1e-4

#: A fit of a peer that takes so many seconds does not count, and is its last; a run of ours has no more iterates than these.
_LONGEST, _MOST_ITERATES = 8.0, 200

Fit = Callable[[float], Array]


def designs() -> Iterator[tuple[str, Any, Array]]:
    """Names, X and real targets."""
    yield "gaussian 500 x 5000", *_gaussian(500, 5000, 0.0, 0)
    yield "gaussian 500 x 5000, correlation 0.5", *_gaussian(500, 5000, 0.5, 1)
    yield "gaussian 2000 x 500, correlation 0.5", *_gaussian(2000, 500, 0.5, 2)
    rng = np.random.default_rng(5)
    X: Any = sp.random_array((8000, 2000), density=0.01, rng=rng, format="csr")
    X.data[:] = np.abs(rng.standard_normal(X.nnz))
    yield "sparse 8000 x 2000", X, _targets(X, 100, rng)
    text = _text()
    if text is not None:
        yield "rcv1sub1", *text


def _gaussian(n: int, d: int, correlation: float, seed: int) -> tuple[Array, Array]:
    """Normal entries, each column correlated with the one before."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    return X, _targets(X, 50, rng)


def _targets(X: Any, non_zeros: int, rng: np.random.Generator) -> Array:
    w = np.zeros(X.shape[1])
    w[rng.choice(len(w), non_zeros, replace=False)] = rng.standard_normal(non_zeros)
    t = X @ w
    return np.asarray(t + 0.3 * np.std(t) * rng.standard_normal(len(t)))


def _text() -> tuple[Any, Array] | None:
    """Return rcv1sub1 with its most frequent label; None where its file is not there."""
    from bench_mtl.core.errors import BenchError
    from bench_mtl.data.catalogue import load, spec_of

    try:
        data = load(spec_of("rcv1sub1"))
    except BenchError:
        return None
    k = int((data.targets > 0.0).sum(axis=0).argmax())
    return data.design.block(0), np.where(data.targets[:, k] > 0.0, 1.0, -1.0)


def data_of(X: Any, y: Array, loss: str) -> TaskData:
    """Return the data, for a logistic loss with labels."""
    return TaskData.shared(X, (y if loss == "squared" else np.where(y > 0.0, 1.0, -1.0))[:, None])


def peers(problem: L1BallGLM) -> dict[str, Fit]:
    """What fits a problem to a tolerance, by name."""
    import celer
    import skglm

    X, y, penalty = _by_columns(problem), problem.fit.targets[:, 0], problem.penalty
    assert penalty is not None
    n = len(y)
    options: dict[str, Any] = {"fit_intercept": False, "max_iter": 200}
    if problem.fit.loss.name == "squared":
        return {
            "celer": lambda tol: celer.Lasso(alpha=penalty / n, tol=tol, **options).fit(X, y).coef_,
            "skglm": lambda tol: skglm.Lasso(alpha=penalty / n, tol=tol, **options).fit(X, y).coef_,
        }
    return {
        "celer": lambda tol: celer.LogisticRegression(C=1.0 / (n * penalty), tol=tol, **options).fit(X, y).coef_[0],
        "skglm": lambda tol: skglm.SparseLogisticRegression(alpha=penalty, tol=tol, **options).fit(X, y).coef_.ravel(),
    }


def _by_columns(problem: L1BallGLM) -> Any:
    X = problem.design.block(0)
    if not is_sparse(X):
        return np.asfortranarray(X)
    X = sp.csc_matrix(X)
    return sp.csc_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def measure(problem: L1BallGLM, rounds: int) -> dict[str, dict[float, float]]:
    """Seconds by name and proven gap; inf where a gap is not reached."""
    found = peers(problem)
    rungs = {name: _rungs(problem, fit) for name, fit in found.items()}
    _ours(problem)  # compiled, and memory touched
    times: dict[str, dict[float, list[float]]] = {name: {gap: [] for gap in GAPS} for name in ("ours", *found)}
    for _ in range(rounds):
        for gap, seconds in _ours(problem).items():
            times["ours"][gap].append(seconds)
        for name, fit in found.items():
            timed = {tolerance: _timed(fit, tolerance)[0] for tolerance in set(rungs[name].values())}
            for gap in GAPS:
                times[name][gap].append(timed[rungs[name][gap]] if gap in rungs[name] else np.inf)
    return {name: {gap: statistics.median(samples) for gap, samples in of.items()} for name, of in times.items()}


def _rungs(problem: L1BallGLM, fit: Fit) -> dict[float, float]:
    """The loosest tolerance of every gap that a peer proves."""
    rungs: dict[float, float] = {}
    _timed(fit, TOLERANCES[0])  # compiled
    for tolerance in TOLERANCES:
        seconds, w = _timed(fit, tolerance)
        gap = _gap(problem, w[:, None]) if seconds < _LONGEST else np.inf
        rungs |= {target: tolerance for target in GAPS if gap <= target and target not in rungs}
        if len(rungs) == len(GAPS) or seconds >= _LONGEST:
            break
    return rungs


def _timed(fit: Fit, tolerance: float) -> tuple[float, Array]:
    """Return the seconds of a fit, and its coefficients."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is seen from the gap
        w = fit(tolerance)
    return time.perf_counter() - began, w


def _gap(problem: L1BallGLM, W: Array) -> float:
    value = problem.objective(W)
    return (value - problem.dual_bound(W, None)) / value


def _ours(problem: L1BallGLM) -> dict[float, float]:
    """Seconds of the solver up to the first iterate that proves each gap."""
    seconds, value, bound, found = 0.0, np.inf, 0.0, dict.fromkeys(GAPS, np.inf)
    steps = L1WorkingSet().steps(problem)
    for _ in range(_MOST_ITERATES):
        began = time.perf_counter()
        iterate = next(steps, None)
        seconds += time.perf_counter() - began
        if iterate is None:
            break
        certificate = problem.certify(iterate)
        value, bound = min(value, certificate.primal), max(bound, certificate.dual)
        for gap in GAPS:
            if value - bound <= gap * value:
                found[gap] = min(found[gap], seconds)
        if found[min(GAPS)] < np.inf:
            break
    return found


def measure_path(X: Any, y: Array, rounds: int) -> dict[str, float]:
    """Seconds of a path by name, ours also for its hardest value alone, and by `celer_path`."""
    from celer import celer_path

    data = data_of(X, y, "squared")
    first = L1BallGLM(data, penalty="1 max")
    top = first.penalty
    assert top is not None
    values = top * np.geomspace(1.0, PATH_END, PATH_VALUES)
    problems = {float(value): L1BallGLM(data, penalty=float(value)) for value in values}
    tolerance, solver = Tolerance(PATH_GAP), L1WorkingSet()

    def ours(chosen: list[float]) -> float:
        points = regularisation_path(problems.__getitem__, chosen, solver, tolerance=tolerance)
        assert all(point.record.status == "verified" for point in points), "a value of the path is not certified"
        return sum(point.record.times.solve for point in points)

    columns, n = _by_columns(first), len(y)

    def theirs(tol: float) -> tuple[float, Array]:
        return _timed(lambda tol: celer_path(columns, y, "lasso", alphas=values / n, tol=tol, max_iter=200)[1], tol)

    ours(list(problems)[:2])
    hardest = max(list(problems)[-5:], key=lambda value: ours([value]))
    proven = (
        tol for tol in TOLERANCES if all(_gap(*each) <= PATH_GAP for each in zip(problems.values(), _points(theirs(tol)[1]), strict=True))
    )
    rung = next(proven, None)
    times: dict[str, list[float]] = {"ours": [], "hardest alone": [], "celer_path": []}
    for _ in range(rounds):
        times["ours"].append(ours(list(problems)))
        times["hardest alone"].append(ours([hardest]))
        times["celer_path"].append(np.inf if rung is None else theirs(rung)[0])
    return {name: statistics.median(samples) for name, samples in times.items()}


def _points(coefficients: Array) -> list[Array]:
    return [w[:, None] for w in coefficients.T]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="beginning of the names of designs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--path", action="store_true", help="measure the paths alone")
    options = parser.parse_args()
    chosen = [found for found in designs() if found[0].startswith(options.only)]
    with threadpool_limits(1):
        if not options.path:
            _print_problems(chosen, options.rounds)
        print("\n| path | ours, s | hardest value alone, s | celer_path, s |\n| --- | --- | --- | --- |")
        for name, X, y in chosen:
            path = measure_path(X, y, options.rounds)
            print(f"| {name} | {path['ours']:.3f} | {path['hardest alone']:.3f} | {path['celer_path']:.3f} |", flush=True)


def _print_problems(chosen: list[tuple[str, Any, Array]], rounds: int) -> None:
    print("| data | loss | penalty | gap | ours, s | celer, s | skglm, s | ours / best |\n|" + " --- |" * 8)
    ratios: dict[tuple[str, float], list[float]] = {}
    for name, X, y in chosen:
        for loss in LOSSES:
            data = data_of(X, y, loss)
            for share in SHARES:
                times = measure(L1BallGLM(data, loss=loss, penalty=f"{share} max"), rounds)
                for gap in GAPS:
                    ours, *others = (times[who][gap] for who in ("ours", "celer", "skglm"))
                    ratios.setdefault((loss, gap), []).append(ours / min(others))
                    cells = " | ".join(f"{seconds:.4f}" for seconds in (ours, *others))
                    print(f"| {name} | {loss} | {share} | {gap:g} | {cells} | {ours / min(others):.2f} |", flush=True)
    print("\n| loss | gap | geometric mean | largest |\n| --- | --- | --- | --- |")
    for (loss, gap), of in ratios.items():
        print(f"| {loss} | {gap:g} | {float(np.exp(np.mean(np.log(of)))):.2f} | {max(of):.2f} |")


if __name__ == "__main__":
    main()
