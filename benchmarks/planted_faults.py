"""Plant faults, one at a time, into a copy of the tree and count how many of them the test-suite catches.

Run it as ``python -m benchmarks.planted_faults``. Each fault replaces one snippet of one file by another that still compiles and makes some
result wrong. The tests that should notice it are run on the copy, and where they pass the whole suite. What is caught says how far green
tests can be trusted; a fault that survives asks for a test.
"""

from __future__ import annotations

import argparse
import filecmp
import importlib.util
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

#: The share of faults that is to be caught.
BAR = 0.9

#: What is said of tests that are stopped.
TIMED_OUT = "timed out"

#: Where a snippet is looked for when it is not in the file that the table names.
PACKAGES = ("bench_mtl", "problems", "solvers")

PROJECTIONS, DUAL_BOUNDS, SOLVERS, DRIVER, RUNNER, STORE = "projections", "dual bounds", "solvers", "driver", "runner", "store"
STATS, REPORT, DATA, METRICS, ESTIMATORS = "stats", "report", "data", "metrics", "estimators"
AREAS = (PROJECTIONS, DUAL_BOUNDS, SOLVERS, DRIVER, RUNNER, STORE, STATS, REPORT, DATA, METRICS, ESTIMATORS)


@dataclass(frozen=True)
class Fault:
    """A mistake that somebody could make."""

    name: str
    area: str
    """One of `AREAS`."""
    what: str
    """What is wrong then."""
    file: str
    """Relative to the root. Where the snippet is not in it, it is looked for in `PACKAGES`."""
    old: str
    """Occurs once in the file."""
    new: str
    tests: tuple[str, ...]
    """Files, folders or nodes that should catch it, relative to the root. What has moved is found by its name."""
    only: str = ""
    """A choice among these tests, as of ``pytest -k``."""


_TWINS = "tests/bench_mtl/projections/"
_PROMISES = ("tests/conformance/test_problem_conformance.py",)
_PAIRS = "tests/conformance/test_pair_conformance.py"
#: Derives every cell of the tables of reports again, by code of its own.
_ORACLE = "tests/bench_mtl/report/test_oracle.py"

FAULTS = (
    Fault(
        "l1-ball-loose-inside",
        PROJECTIONS,
        "vectors a little outside the l1 ball count as inside",
        "bench_mtl/projections/kernels/simplex.py",
        "inside = _pass(x, 0.0, 0.0, radius, absolute)[0] <= radius * tolerance",
        "inside = True",
        (_TWINS + "test_l1_ball.py",),
    ),
    Fault(
        "l1-ball-negative-kept",
        PROJECTIONS,
        "inside the non-negative ball negative entries stay",
        "bench_mtl/projections/kernels/simplex.py",
        "out[i] = x[i] if absolute or x[i] > 0 else 0",
        "out[i] = x[i]",
        (_TWINS + "test_l1_ball.py",),
    ),
    Fault(
        "l1-ball-float32-rounded-up",
        PROJECTIONS,
        "float32 results are rounded to the nearest and leave the ball",
        "bench_mtl/projections/simplex.py",
        "shrink = 1.0 - 2.0**-24 if ball and lines.dtype == np.float32 else 1.0",
        "shrink = 1.0",
        (_TWINS + "test_l1_ball.py",),
    ),
    Fault(
        "box-bound-not-scaled",
        PROJECTIONS,
        "vectors that are scaled down meet an upper bound that is not",
        "bench_mtl/projections/box_simplex.py",
        "lower * _SCALE, upper * _SCALE, np.empty(",
        "lower * _SCALE, upper, np.empty(",
        (_TWINS + "test_box_simplex.py",),
    ),
    Fault(
        "l1inf-early-exit",
        PROJECTIONS,
        "the search for theta ends while it still moves by a thousandth",
        "bench_mtl/projections/kernels/l1inf.py",
        "unsettled == 0 or change <= 2.0 * _U * theta else",
        "unsettled == 0 or change <= 1e-3 * theta else",
        (_TWINS + "test_l1inf_ball.py",),
        "twin",
    ),
    Fault(
        "l1inf-merge-last-breakpoint",
        PROJECTIONS,
        "the published algorithm takes a row for used up one breakpoint too early",
        "bench_mtl/projections/kernels/l1inf_merge.py",
        "last = k == start[i + 1] - start[i]",
        "last = k + 1 == start[i + 1] - start[i]",
        (_TWINS + "test_l1inf_ball.py",),
        "twin",
    ),
    Fault(
        "l1inf-last-lanes-not-searched",
        PROJECTIONS,
        "rows that do not fill a batch keep a level that is only a bound",
        "bench_mtl/projections/kernels/l1inf_passes.py",
        "if waiting >= LANES or (waiting > 0 and stop == state.shape[1]):",
        "if waiting >= LANES:",
        (_TWINS + "test_l1inf_ball.py",),
        "twin",
    ),
    Fault(
        "norms-lose-tails",
        PROJECTIONS,
        "norms of long rows leave out the last entries",
        "bench_mtl/projections/kernels/norms.py",
        "for start in range(0, x.size, LANES):",
        "for start in range(0, x.size - LANES + 1, LANES):",
        (_TWINS + "test_l2_ball.py", _TWINS + "test_l12_ball.py"),
    ),
    Fault(
        "trace-gram-costs-digits",
        PROJECTIONS,
        "a Gram matrix is trusted where squaring has cost most digits",
        "bench_mtl/projections/spectra.py",
        "_SMALLEST_GRAM_THRESHOLD = 1e-2",
        "_SMALLEST_GRAM_THRESHOLD = 1e-8",
        (_TWINS + "test_trace_ball.py",),
    ),
    Fault(
        "trace-certificate-unsound",
        PROJECTIONS,
        "the certificate of a Krylov space forgets what that has not seen",
        "bench_mtl/projections/spectra.py",
        "return float(following[:1] @ following[:1]) + unseen + 1e-13 * total",
        "return float(following[:1] @ following[:1]) + 1e-13 * total",
        (_TWINS + "test_trace_ball.py",),
    ),
    Fault(
        "trace-prox-zero-too-early",
        PROJECTIONS,
        "a weight below the largest singular value gives zero",
        "bench_mtl/projections/trace_ball.py",
        "if self.size == 0.0 or frobenius * (1 + 1e-12) <= self.size else None",
        "if self.size == 0.0 or frobenius * (1 + 1e-12) <= math.sqrt(n) * self.size else None",
        (_TWINS + "test_trace_ball.py",),
    ),
    Fault(
        "sparse-ball-dead-rise",
        PROJECTIONS,
        "entries that a projection has taken away come back with the other sign",
        "bench_mtl/projections/kernels/sparse_ball.py",
        "value = math.copysign(max(abs(stored[place]) - shift, 0.0), stored[place])",
        "value = math.copysign(1.0, stored[place]) * (abs(stored[place]) - shift)",
        (_TWINS + "test_sparse_ball.py",),
    ),
    Fault(
        "hinge-dual-not-clipped",
        DUAL_BOUNDS,
        "a dual point is scaled up beyond its box",
        "bench_mtl/model/forms/hinges.py",
        "return total * min(1.0, self.penalty / norm) if norm > 0.0 else total",
        "return total * self.penalty / norm if norm > 0.0 else total",
        ("tests/problems/test_hinge_problem.py",),
    ),
    Fault(
        "logistic-dual-negative",
        DUAL_BOUNDS,
        "dual points below 0 are not clipped, and count as 0 in the bound alone",
        "bench_mtl/model/losses.py",
        "return np.asarray(y * np.clip(y * dual, self.lower * w, self.upper * w))",
        "return np.asarray(y * np.minimum(y * dual, self.upper * w))",
        ("tests/bench_mtl/model/test_losses.py",),
    ),
    Fault(
        "squared-conjugate-without-weights",
        DUAL_BOUNDS,
        "the conjugate of the squared loss forgets the weights of the examples",
        "bench_mtl/model/losses.py",
        "(Interval.exact(dual).square() / w).sum()",
        "Interval.exact(dual).square().sum()",
        _PROMISES,
    ),
    Fault(
        "squared-hinge-conjugate",
        DUAL_BOUNDS,
        "the conjugate of the squared hinge is that of half of it",
        "bench_mtl/model/losses.py",
        "return u - 0.25 * u * u",
        "return u - 0.5 * u * u",
        _PROMISES,
    ),
    Fault(
        "group-dual-norms-swapped",
        DUAL_BOUNDS,
        "the dual norms of l1 and l-infinity are exchanged",
        "bench_mtl/model/forms/groups.py",
        'return np.asarray(above.sum(axis=1) if norm == "l1inf" else',
        'return np.asarray(above.sum(axis=1) if norm == "l1" else',
        _PROMISES,
    ),
    Fault(
        "group-bound-leaves-others-out",
        DUAL_BOUNDS,
        "weak learners outside the model do not make its bound smaller",
        "bench_mtl/model/forms/groups.py",
        "largest = max(largest, others(self.fit.residuals(U)))",
        "largest = min(largest, others(self.fit.residuals(U)))",
        ("tests/problems/test_group_boosting.py", "tests/bench_mtl/estimators/test_group_sparse_classifier.py"),
    ),
    Fault(
        "l1-support-of-one-task",
        DUAL_BOUNDS,
        "with a ball a task the support function is that of one of them",
        "bench_mtl/model/norms.py",
        'return float(largest.max() if self.balls == "all" else largest.sum())',
        "return float(largest.max())",
        _PROMISES,
    ),
    Fault(
        "relationships-half-a-conjugate",
        DUAL_BOUNDS,
        "the conjugate of the ridge has a factor 1/4 for 1/2",
        "problems/task_relationships.py",
        "filled = above.square().sum() * 0.5 / ridge",
        "filled = above.square().sum() * 0.25 / ridge",
        _PROMISES,
    ),
    Fault(
        "products-without-their-error",
        DUAL_BOUNDS,
        "a lower bound takes computed products for exact ones",
        "bench_mtl/core/designs.py",
        "error = self._column_norms * (gamma(terms + 8) * sizes)",
        "error = 0.0 * self._column_norms * (gamma(terms + 8) * sizes)",
        ("tests/bench_mtl/core/test_rounding.py",),
    ),
    Fault(
        "interval-rounds-inward",
        DUAL_BOUNDS,
        "the upper end of an interval is rounded down",
        "bench_mtl/core/rounding.py",
        "return x + abs(x) * _STEP",
        "return x - abs(x) * _STEP",
        ("tests/bench_mtl/core/test_rounding.py",),
    ),
    Fault(
        "repaired-point-outside",
        DUAL_BOUNDS,
        "a projection that rounding has left outside is taken for feasible",
        "bench_mtl/model/norms.py",
        "if size.upper <= radius:",
        "if size.lower <= radius:",
        ("tests/bench_mtl/validation/exact",),
    ),
    Fault(
        "spectral-norm-without-slack",
        DUAL_BOUNDS,
        "the computed largest singular value is taken for exact",
        "bench_mtl/core/spectral_bounds.py",
        "min(size, up(math.sqrt(up(up(square + moved) + slack))))",
        "min(size, math.sqrt(guess) * (1.0 - 1e-15))",
        ("tests/bench_mtl/core/test_spectral_bounds.py",),
    ),
    Fault(
        "portfolio-worst-corner",
        DUAL_BOUNDS,
        "in a box the support function is taken at the wrong corner",
        "problems/portfolio.py",
        "order = np.argsort(-middle",
        "order = np.argsort(middle",
        _PROMISES,
    ),
    Fault(
        "ridge-hinge-beyond-the-box",
        DUAL_BOUNDS,
        "the best multiple of a dual point may leave the box",
        "problems/ridge_hinge.py",
        "c = np.fmin(np.divide(",
        "c = np.fmax(np.divide(",
        _PROMISES,
    ),
    Fault(
        "dirty-dual-norm-min",
        DUAL_BOUNDS,
        "the dual norm of two penalties is the smaller one",
        "bench_mtl/model/regularisers.py",
        "min(limit for _, limit in found)",
        "max(limit for _, limit in found)",
        ("tests/problems/test_dirty_model.py",),
    ),
    Fault(
        "gradient-prox-without-step",
        SOLVERS,
        "the proximal step of gradient methods forgets the step size",
        "solvers/projected_gradient.py",
        "new = prox(point - gradient / L, 1.0 / L) if L > 0.0 else",
        "new = prox(point - gradient / L, 1.0) if L > 0.0 else",
        (_PAIRS,),
        "keeps_its_promises and l1inf_glm-projected_gradient",
    ),
    Fault(
        "gradient-stops-on-a-rise",
        SOLVERS,
        "the papers' stopping rule takes a rise of the objective for no change",
        "solvers/projected_gradient.py",
        "previous is not None and abs(previous - objective) < bound",
        "previous is not None and previous - objective < bound",
        ("tests/solvers/test_solver_algorithms.py", "tests/solvers/test_first_order_edges.py", "tests/solvers/test_gram_gradient.py"),
    ),
    Fault(
        "subgradient-average-unweighted",
        SOLVERS,
        "averaged dual points lack the step sizes that they are divided by",
        "solvers/projected_subgradient.py",
        "self._epoch[1] + eta * dual)",
        "self._epoch[1] + dual)",
        ("tests/solvers/test_solver_algorithms.py", "tests/solvers/test_first_order_edges.py"),
    ),
    Fault(
        "away-step-keeps-the-weight",
        SOLVERS,
        "an away step takes nothing from the weight of the corner it leaves",
        "solvers/atoms.py",
        "else max(0.0, self.weight(place) - gamma))",
        "else max(0.0, self.weight(place)))",
        (_PAIRS,),
        "keeps_its_promises and l1inf_hinge-frank_wolfe",
    ),
    Fault(
        "backtracking-too-long",
        SOLVERS,
        "steps of Frank-Wolfe by backtracking leave the feasible set",
        "solvers/frank_wolfe_smooth/losses.py",
        "np.minimum(longest, np.divide(gains, scaled,",
        "np.minimum(np.inf, np.divide(gains, scaled,",
        ("tests/solvers/test_frank_wolfe_smooth.py",),
    ),
    Fault(
        "pdhg-dual-without-labels",
        SOLVERS,
        "the dual point handed over lacks the signs of the labels",
        "solvers/pdhg/run.py",
        "(b * self.labels).reshape(self.form.labels.shape), self.steps",
        "b.reshape(self.form.labels.shape), self.steps",
        ("tests/solvers/test_pdhg.py",),
    ),
    Fault(
        "interior-point-to-the-boundary",
        SOLVERS,
        "steps go all the way to the boundary, whatever share is asked for",
        "solvers/interior_point/step.py",
        "return [(share / max(p, share), share / max(d, share)) for p, d in",
        "return [(1.0 / max(p, 1.0), 1.0 / max(d, 1.0)) for p, d in",
        ("tests/solvers/test_interior_point.py",),
    ),
    Fault(
        "admm-joint-penalty",
        SOLVERS,
        "the joint penalty of two copies is their mean",
        "solvers/admm/split.py",
        "return penalties[0] * penalties[1] / (penalties[0] + penalties[1])",
        "return 0.5 * (penalties[0] + penalties[1])",
        ("tests/solvers/test_admm.py",),
    ),
    Fault(
        "consensus-equal-shares",
        SOLVERS,
        "blocks of unequal sizes count alike",
        "solvers/consensus_admm/division.py",
        "classes=fit.classes[rows]), len(rows) / total)",
        "classes=fit.classes[rows]), 1.0 / len(self.rows))",
        ("tests/solvers/test_consensus_admm.py",),
    ),
    Fault(
        "block-coordinate-norm-for-square",
        SOLVERS,
        "the curvature is the norm of the design, not its square",
        "solvers/block_coordinate.py",
        "curvature = form.design.norm() ** 2",
        "curvature = form.design.norm()",
        ("tests/solvers/test_split_blocks.py",),
    ),
    Fault(
        "stochastic-seed-ignored",
        SOLVERS,
        "every seed draws the same examples",
        "solvers/stochastic_subgradient.py",
        'Order(examples.count, "random", self.seed), eta0',
        'Order(examples.count, "random", 0), eta0',
        ("tests/solvers/test_stochastic_subgradient.py",),
    ),
    Fault(
        "online-schedule-begins-anew",
        SOLVERS,
        "step sizes start large again at every portion of steps",
        "solvers/kernels/online.py",
        "eta = eta0 / math.sqrt(done + step + 1)",
        "eta = eta0 / math.sqrt(step + 1)",
        ("tests/solvers/test_sparse_online.py",),
    ),
    Fault(
        "pegasos-radius-squared",
        SOLVERS,
        "the ball has the square of its radius",
        "solvers/pegasos/solver.py",
        "radii = np.sqrt(examples.totals / regularisation) if",
        "radii = examples.totals / regularisation if",
        ("tests/solvers/test_pegasos.py",),
    ),
    Fault(
        "exponentiated-sign-of-prices",
        SOLVERS,
        "negative weights are moved by the price of positive ones",
        "solvers/exponentiated_gradient/weights.py",
        "parts = [g, -g] if self._form.signed else [g]",
        "parts = [g, g] if self._form.signed else [g]",
        ("tests/solvers/test_exponentiated_gradient.py",),
    ),
    Fault(
        "smoothing-never-below-a-thousandth",
        SOLVERS,
        "the smoothing stops falling long before the gap is closed",
        "solvers/smoothed_gradient.py",
        "_SMALLEST_SMOOTHING = 1e-13",
        "_SMALLEST_SMOOTHING = 1e-3",
        ("tests/solvers/test_smoothed_gradient.py",),
    ),
    Fault(
        "simplex-newton-gives-up",
        SOLVERS,
        "pairs that gain a thousandth count as gaining nothing",
        "solvers/simplex_newton.py",
        "_ROUNDING = 1e-15",
        "_ROUNDING = 1e-3",
        ("tests/solvers/test_simplex_newton.py",),
    ),
    Fault(
        "interpolation-by-the-largest-value",
        SOLVERS,
        "an interpolation is the answer although its trace norm is too large",
        "solvers/partial_minimisation/solver.py",
        "scipy.linalg.svdvals(half).sum() > tau",
        "scipy.linalg.svdvals(half).max() > tau",
        ("tests/solvers/test_partial_minimisation.py",),
    ),
    Fault(
        "spectral-weight-not-shrunk",
        SOLVERS,
        "the proximal weight is not scaled by what the ridge shrinks",
        "solvers/relationships/gradient.py",
        "shrink * step_size * form.coupling)",
        "step_size * form.coupling)",
        ("tests/solvers/test_relationships.py",),
    ),
    Fault(
        "conic-always-optimal",
        SOLVERS,
        "every answer of a generic solver claims to be optimal",
        "solvers/conic/solver.py",
        'is_optimal = status == "optimal"',
        "is_optimal = True",
        ("tests/solvers/test_conic.py",),
    ),
    Fault(
        "auto-counts-from-zero",
        SOLVERS,
        "the second method counts its steps from 0 again",
        "solvers/auto/hinges.py",
        "yield Iterate(iterate.primal, iterate.dual, last.step + iterate.step,",
        "yield Iterate(iterate.primal, iterate.dual, iterate.step,",
        ("tests/solvers/test_auto.py",),
    ),
    Fault(
        "multiboost-leaves-columns-out",
        SOLVERS,
        "columns that violate a little never join",
        "solvers/multiboost/working_set.py",
        "violations > nu * (1.0 + _ABOVE)",
        "violations > 1.5 * nu",
        ("tests/solvers/test_multiboost.py",),
        "not a_start_keeps_its_rows",
    ),
    Fault(
        "deadline-not-stopped",
        DRIVER,
        "the clock stops and its deadline does not: a worker dies while its answer is certified",
        "bench_mtl/engine/clock.py",
        "                self._deadline.value = 0.0",
        "                pass",
        ("tests/bench_mtl/engine/test_driver.py",),
    ),
    Fault(
        "setup-counts-as-solving",
        DRIVER,
        "the solving of a generic solver takes in its set-up",
        "bench_mtl/engine/driver.py",
        '"solve": seconds - setup}',
        '"solve": seconds}',
        ("tests/bench_mtl/engine/test_driver.py",),
    ),
    Fault(
        "iteration-limit-says-timeout",
        DRIVER,
        "a run that ends at an iteration limit has the status of one out of time",
        "bench_mtl/engine/driver.py",
        'session.record(Status.TIMEOUT if clock.is_spent else Status.INACCURATE, f"{stop}',
        'session.record(Status.TIMEOUT, f"{stop}',
        ("tests/bench_mtl/engine/test_driver.py",),
    ),
    Fault(
        "last-iterate-not-certified",
        DRIVER,
        "the last iterate of a solver that ends by itself is lost",
        "bench_mtl/engine/driver.py",
        "reached = unsampled is not None and sample(unsampled)",
        "reached = False",
        ("tests/bench_mtl/engine/test_driver.py",),
    ),
    Fault(
        "enclosure-widens",
        DRIVER,
        "of two lower bounds the lower one is kept",
        "bench_mtl/core/types.py",
        "primal, dual = min(self.primal, other.primal), max(self.dual, other.dual)",
        "primal, dual = min(self.primal, other.primal), min(self.dual, other.dual)",
        ("tests/bench_mtl/engine/test_driver.py",),
    ),
    Fault(
        "memory-limit-doubled",
        RUNNER,
        "a worker may take twice the memory that it is given",
        "bench_mtl/runner/process.py",
        "limits.memory_gib * 1024",
        "limits.memory_gib * 2048",
        ("tests/bench_mtl/runner/test_limits.py",),
        "memory",
    ),
    Fault(
        "peak-memory-is-the-last",
        RUNNER,
        "peak memory is what was seen last",
        "bench_mtl/runner/gathered.py",
        "self.peak_mib = max(self.peak_mib or 0.0, mib)",
        "self.peak_mib = mib",
        ("tests/bench_mtl/runner/test_gathered.py",),
    ),
    Fault(
        "killed-before-the-limit",
        RUNNER,
        "a worker is killed shortly before its time is over",
        "bench_mtl/runner/process.py",
        "now > deadline + GRACE_SECONDS",
        "now > deadline - GRACE_SECONDS",
        ("tests/bench_mtl/runner/test_limits.py", "tests/bench_mtl/runner/test_faults.py", "tests/bench_mtl/runner/test_leftovers.py"),
    ),
    Fault(
        "crash-is-no-failure",
        RUNNER,
        "crashed runs do not count as failed, and are not run again",
        "bench_mtl/core/types.py",
        "return self in (Status.WRONG, Status.CRASHED, Status.ERROR)",
        "return self in (Status.WRONG, Status.ERROR)",
        ("tests/bench_mtl/results/test_database.py",),
    ),
    Fault(
        "tampering-half-noticed",
        RUNNER,
        "a solver may change the problem as long as it leaves something as it was",
        "bench_mtl/runner/inprocess.py",
        "return all(now.get(name) == digest for name, digest in self.state.items())",
        "return any(now.get(name) == digest for name, digest in self.state.items())",
        ("tests/bench_mtl/runner/test_tampering.py",),
    ),
    Fault(
        "merge-takes-the-later",
        STORE,
        "of a case that two folders have the later one's row counts",
        "bench_mtl/results/merge.py",
        "winners.setdefault(row.key, (number, row.id))",
        "winners[row.key] = (number, row.id)",
        ("tests/bench_mtl/results/test_results_merge.py",),
    ),
    Fault(
        "key-without-limits",
        STORE,
        "a case with other limits passes for one that has been run",
        "bench_mtl/engine/suite.py",
        "self.target, vars(self.limits), self.threads,",
        "self.target, self.threads,",
        (
            "tests/bench_mtl/engine/test_suite.py",
            "tests/bench_mtl/runner/test_resume.py",
        ),
    ),
    Fault(
        "first-sample-not-stored",
        STORE,
        "the first sample of every run has no row",
        "bench_mtl/results/rows.py",
        "for number, sample in enumerate(samples):",
        "for number, sample in enumerate(samples[1:], start=1):",
        ("tests/bench_mtl/results/test_database.py",),
    ),
    Fault(
        "student-one-sided",
        STATS,
        "intervals have the quantile of a one-sided test",
        "bench_mtl/stats/arrays.py",
        "return float(stdtrit(len(values) - 1, 0.5 + 0.5 * confidence)",
        "return float(stdtrit(len(values) - 1, confidence)",
        ("tests/bench_mtl/stats/test_stats_intervals.py", _ORACLE),
    ),
    Fault(
        "geometric-mean-arithmetic",
        STATS,
        "the shifted geometric mean is the arithmetic one",
        "bench_mtl/stats/means.py",
        "return float(by * np.expm1(np.log1p(times / by).mean()))",
        "return float(times.mean())",
        ("tests/bench_mtl/stats/test_stats_means.py", _ORACLE),
    ),
    Fault(
        "holm-falls-again",
        STATS,
        "adjusted p-values may fall where p-values rise",
        "bench_mtl/stats/paired.py",
        "adjusted[tested[order]] = np.maximum.accumulate(steps)",
        "adjusted[tested[order]] = steps",
        ("tests/bench_mtl/stats/test_stats_paired.py", _ORACLE),
    ),
    Fault(
        "sign-test-swaps-wins",
        STATS,
        "with failures wins are counted as losses",
        "bench_mtl/stats/paired.py",
        "return Paired(SIGN, sign_test(wins, losses), wins, losses, ties)",
        "return Paired(SIGN, sign_test(wins, losses), losses, wins, ties)",
        ("tests/bench_mtl/stats/test_stats_paired.py", _ORACLE),
    ),
    Fault(
        "profile-of-the-solved",
        STATS,
        "instances that nobody solves leave the denominator of profiles",
        "bench_mtl/stats/profiles.py",
        "np.array(counts, dtype=np.float64) / len(values), len(values))",
        "np.array(counts, dtype=np.float64) / max(1, *map(len, solved)), len(values))",
        ("tests/bench_mtl/stats/test_stats_profiles.py",),
    ),
    Fault(
        "intervals-do-not-hold-together",
        STATS,
        "many intervals share no error among them",
        "bench_mtl/stats/ratios.py",
        "return 1.0 - (1.0 - confidence) / max(1, intervals)",
        "return confidence",
        ("tests/bench_mtl/stats/test_stats_ratios.py",),
    ),
    Fault(
        "exponent-one-freedom-too-many",
        STATS,
        "the interval of an exponent has n - 1 degrees of freedom",
        "bench_mtl/stats/fits.py",
        "half = float(stdtrit(len(x) - 2,",
        "half = float(stdtrit(len(x) - 1,",
        ("tests/bench_mtl/stats/test_stats_fits.py", _ORACLE),
    ),
    Fault(
        "time-of-the-slowest-sample",
        REPORT,
        "the time to a gap is that of the last sample below it",
        "bench_mtl/results/frames.py",
        'close.groupby("run_id")["seconds"].idxmin()',
        'close.groupby("run_id")["seconds"].idxmax()',
        ("tests/bench_mtl/report/test_report_tables.py", _ORACLE),
    ),
    Fault(
        "median-of-those-that-got-there",
        REPORT,
        "a median is given although some runs failed",
        "bench_mtl/report/tables/instances.py",
        'table[name] = values.where(table["reached"] == table["runs"])',
        "table[name] = values",
        ("tests/bench_mtl/report/test_report_instances.py", _ORACLE),
    ),
    Fault(
        "slowest-wins",
        REPORT,
        "solvers are sorted from the slowest on",
        "bench_mtl/report/tables/winners.py",
        "if column.solved.all()), key=_first_seconds)",
        "if column.solved.all()), key=_first_seconds, reverse=True)",
        ("tests/bench_mtl/report/test_report_tables.py", _ORACLE),
    ),
    Fault(
        "pair-the-other-way-round",
        REPORT,
        "wins of the solver are counted for the reference",
        "bench_mtl/report/tables/pairs.py",
        "paired_test(solver.seconds[both], reference.seconds[both])",
        "paired_test(reference.seconds[both], solver.seconds[both])",
        ("tests/bench_mtl/report/test_report_comparisons.py", _ORACLE),
    ),
    Fault(
        "bound-the-wrong-way",
        REPORT,
        "where the solver has failed its ratio is called a lower bound",
        "bench_mtl/report/tables/pairs.py",
        "at_least=failed[0] and not failed[1],",
        "at_least=failed[1] and not failed[0],",
        ("tests/bench_mtl/report/test_report_comparisons.py", _ORACLE),
    ),
    Fault(
        "contradiction-not-seen",
        REPORT,
        "the weakest lower bound of an instance passes for its best",
        "bench_mtl/results/enclosures.py",
        'of_instance["dual"].transform("max")',
        'of_instance["dual"].transform("min")',
        ("tests/bench_mtl/report/test_report_tables.py", _ORACLE),
    ),
    Fault(
        "front-holds-the-dominated",
        REPORT,
        "points that another one equals in one way and beats in the other are on the front",
        "bench_mtl/report/figures/pareto.py",
        "any(x <= own[0] and y <= own[1] and (x, y) != own",
        "any(x < own[0] and y < own[1] and (x, y) != own",
        ("tests/bench_mtl/report/test_report_pareto.py",),
    ),
    Fault(
        "targets-tight-to-loose",
        REPORT,
        "targets are in the reverse order",
        "bench_mtl/results/loading.py",
        'tuple(sorted(set(view.targets or json.loads(meta["targets"])), reverse=True))',
        'tuple(sorted(set(view.targets or json.loads(meta["targets"]))))',
        ("tests/bench_mtl/report/test_report_view.py", "tests/bench_mtl/report/test_report_tables.py", _ORACLE),
    ),
    Fault(
        "same-called-faster",
        REPORT,
        "a comparison that shows nothing is called faster",
        "bench_mtl/results/comparison.py",
        "if ratio.high < 1.0 / bound:",
        "if ratio.high < bound:",
        ("tests/bench_mtl/results/test_comparison.py",),
    ),
    Fault(
        "held-out-example-trained-on",
        DATA,
        "one example is both for training and held out",
        "bench_mtl/data/sampling.py",
        "np.sort(order[n_training : n_training + n_held_out])",
        "np.sort(order[max(0, n_training - 1) : n_training + n_held_out - 1])",
        (
            "tests/bench_mtl/data/test_catalogue.py",
            "tests/bench_mtl/data/test_selection.py",
        ),
    ),
    Fault(
        "rarest-labels-kept",
        DATA,
        "of many labels the least frequent ones are kept",
        "bench_mtl/data/selection.py",
        'np.argsort(-frequency, kind="stable")[:count]',
        'np.argsort(frequency, kind="stable")[:count]',
        ("tests/bench_mtl/data/test_read_libsvm.py",),
    ),
    Fault(
        "held-out-drawn-as-test",
        DATA,
        "held-out examples are those of the split for tests",
        "bench_mtl/data/synthetic/common.py",
        "np.random.SeedSequence(seed, spawn_key=(2,))",
        "np.random.SeedSequence(seed, spawn_key=(1,))",
        ("tests/bench_mtl/data/test_synthetic_linear.py", "tests/bench_mtl/data/test_synthetic.py"),
    ),
    Fault(
        "held-out-statistics",
        DATA,
        "held-out examples are standardised by their own statistics",
        "bench_mtl/data/preprocess/__init__.py",
        "_transformed(data.held_out, fitted, _pooled(data.held_out), name)",
        "_transformed(data.held_out, step(data, _pooled(data.held_out)), _pooled(data.held_out), name)",
        ("tests/bench_mtl/data/test_preprocess_held_out.py",),
    ),
    Fault(
        "auc-weighed-by-examples",
        METRICS,
        "the AUC of many tasks is weighed by all examples, not by the positive ones",
        "bench_mtl/metrics/ranking.py",
        "weight=lambda task: float(task.positive.sum())",
        "weight=lambda task: float(len(task.positive))",
        ("tests/bench_mtl/metrics/test_metrics.py",),
    ),
    Fault(
        "threshold-decides-for-positive",
        METRICS,
        "a score that equals the threshold decides for positive",
        "bench_mtl/metrics/decisions.py",
        "float(np.mean((task.scores > limit) != task.positive))",
        "float(np.mean((task.scores >= limit) != task.positive))",
        ("tests/bench_mtl/metrics/test_metrics.py",),
    ),
    Fault(
        "precision-diagonal-penalised",
        ESTIMATORS,
        "the graphical lasso penalises the diagonal too",
        "bench_mtl/estimators/precisions.py",
        "np.fill_diagonal(Y, 0.0)",
        "np.fill_diagonal(Y, np.diagonal(Y))",
        ("tests/bench_mtl/estimators/test_precisions.py",),
    ),
    Fault(
        "structure-half-a-penalty",
        ESTIMATORS,
        "least squares of a shared structure have half the penalty",
        "bench_mtl/estimators/structure_fits.py",
        "_Ridge(X, 2.0 * penalty / chosen.curvature)",
        "_Ridge(X, penalty / chosen.curvature)",
        ("tests/bench_mtl/estimators/test_structure_fits.py",),
    ),
    Fault(
        "intercept-not-scaled",
        ESTIMATORS,
        "intercepts are not multiplied by the value of the constant feature",
        "bench_mtl/estimators/constant_feature.py",
        "intercepts=value * W[-1]",
        "intercepts=W[-1]",
        ("tests/bench_mtl/estimators/test_linear.py",),
        "intercept",
    ),
)


class UnusableError(Exception):
    """The check cannot be made: the table does not fit the tree, or the tree does not pass its own tests."""


@dataclass(frozen=True)
class Planted:
    """A fault and where it goes in a tree."""

    fault: Fault
    file: str
    tests: tuple[str, ...]

    @property
    def selection(self) -> list[str]:
        """What pytest is told."""
        return [*(["-k", self.fault.only] if self.fault.only else []), *self.tests]


@dataclass(frozen=True)
class Outcome:
    """What came of a fault."""

    planted: Planted
    is_caught: bool
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What pytest says."""

    passed: bool
    first: str
    """The first test that failed."""


def placed(fault: Fault, root: Path) -> Planted:
    """Return the fault with its file and tests as they are in the tree at `root`.

    Raises
    ------
    UnusableError : its snippet is nowhere, or in several places, or does not compile; a test is gone.
    """
    file = _file_of(fault, root)
    source = (root / file).read_text(encoding="utf-8")
    if source.count(fault.old) != 1:
        raise UnusableError(f"{fault.name}: the snippet occurs {source.count(fault.old)} times in {file}")
    try:
        compile(source.replace(fault.old, fault.new), file, "exec")
    except SyntaxError as error:
        raise UnusableError(f"{fault.name}: {file} does not compile with it: {error}") from None
    return Planted(fault, file, tuple(_test_of(fault, test, root) for test in fault.tests))


def _file_of(fault: Fault, root: Path) -> str:
    named = root / fault.file
    if named.is_file() and fault.old in named.read_text(encoding="utf-8"):
        return fault.file
    files = {file.resolve() for package in PACKAGES for file in (root / package).rglob("*.py")}
    found = sorted(file for file in files if fault.old in file.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise UnusableError(f"{fault.name}: the snippet is not in {fault.file}, and in {len(found)} other files")
    return found[0].relative_to(root.resolve()).as_posix()


def _test_of(fault: Fault, test: str, root: Path) -> str:
    path, separator, node = test.partition("::")
    if not (root / path).exists():
        found = sorted((root / "tests").rglob(Path(path).name))
        if len(found) != 1:
            raise UnusableError(f"{fault.name}: {path} is gone, and {len(found)} others are named so")
        path = found[0].relative_to(root).as_posix()
    return path + separator + node


class Copy:
    """A copy of a tree, compiled code and all, for one fault after the other."""

    def __init__(self, root: Path, place: Path, deselected: Sequence[str]) -> None:
        self.tree = place / "tree"
        self._place, self._deselected = place, list(deselected)
        self._kept = place / "compiled"
        self._process: subprocess.Popen[bytes] | None = None
        _copy_tree(root, self.tree)
        data = root.parent / "shared"
        if data.exists():  # where tests look for real data
            (place / "shared").symlink_to(data.resolve())
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.tree), os.environ.get("PYTHONPATH", "")])),
            "PYTHONDONTWRITEBYTECODE": "",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
        }

    def require_own_code(self, root: Path) -> None:
        """Raise UnusableError unless a Python started anywhere, and the console script, load the code of the copy."""
        names = [package for package in PACKAGES if (self.tree / package).is_dir()]
        code = f"import {', '.join(names)}; print(*({', '.join(f'{name}.__file__' for name in names)},), sep='\\n')"
        command = [sys.executable, "-P", "-c", code]
        found = subprocess.run(command, cwd=self._place, env=self.environment, capture_output=True, text=True, check=True).stdout.split()
        if not all(Path(file).is_relative_to(self.tree) for file in found):
            raise UnusableError(f"the copy is not what is imported, but {', '.join(found)}")
        script = Path(sys.executable).with_name("bench-mtl")
        if script.exists():
            verbose = {**self.environment, "PYTHONVERBOSE": "1"}
            told = subprocess.run([script, "--version"], cwd=self._place, env=verbose, capture_output=True, text=True, check=True).stderr
            if str(self.tree / "bench_mtl") not in told or f"{root / 'bench_mtl'}{os.sep}" in told:
                raise UnusableError(f"the copy is not what {script.name} imports")

    def keep_compiled(self) -> None:
        """Remember the compiled code that there is now; `planted` brings it back where a fault has made it void."""
        for file in self._compiled():
            kept = self._kept / file.relative_to(self.tree)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, kept)

    @contextmanager
    def planted(self, planted: Planted) -> Iterator[None]:
        """Put the fault into the copy, and take it out again, whatever happens."""
        file = self.tree / planted.file
        before, state = file.read_bytes(), file.stat()
        try:
            _forget_bytecode(file)
            file.write_bytes(before.replace(planted.fault.old.encode(), planted.fault.new.encode()))
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
            _forget_bytecode(file)
            self._bring_back_compiled()
            shutil.rmtree(self._place / "hypothesis", ignore_errors=True)

    def test(self, selection: Sequence[str], timeout: float) -> Verdict:
        """Run these tests up to the first that fails."""
        code, failed = self._pytest(["-x", *selection], timeout)
        return Verdict(False, TIMED_OUT) if code is None else Verdict(code == 0, failed[0] if failed else "")

    def failing(self, selection: Sequence[str]) -> list[str]:
        """Run these tests, and return the names of all that fail."""
        return self._pytest(selection, None)[1]

    def deselect(self, node: str) -> None:
        """Leave a test out from here on."""
        self._deselected.append(node)

    def stop(self) -> None:
        """End the tests that are running, and all that they have started."""
        process = self._process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def _pytest(self, arguments: Sequence[str], timeout: float | None) -> tuple[int | None, list[str]]:
        """The exit code, None where it took too long, and what failed."""
        leave_out = [part for node in self._deselected for part in ("--deselect", node)]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            code = self._wait([*command, "--hypothesis-seed=0", *leave_out, *arguments], output.fileno(), timeout)
            output.seek(0)
            text = output.read()
        failed = [line.split(" - ")[0] for line in re.findall(r"^(?:FAILED|ERROR) (.+)$", text, flags=re.MULTILINE)]
        if code is not None and code != 0 and not (failed and code in (1, 2)):
            raise UnusableError(f"pytest ended with exit code {code} and names no test that fails:\n{text[-2000:]}")
        return code, failed

    def _wait(self, command: Sequence[str], output: int, timeout: float | None) -> int | None:
        self._process = subprocess.Popen(
            command, cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.stop()
            self._process.wait()

    def _compiled(self) -> Iterator[Path]:
        """What lies beside bytecode: the machine code of kernels, and what it was made from."""
        for package in PACKAGES:
            for folder in (self.tree / package).rglob("__pycache__"):
                if folder.resolve() == folder:  # not by way of a link
                    yield from (file for file in folder.iterdir() if file.suffix != ".pyc")

    def _bring_back_compiled(self) -> None:
        kept = [file for file in self._kept.rglob("*") if file.is_file()]
        pairs = [(file, self.tree / file.relative_to(self._kept)) for file in kept]
        if all(now.exists() and (then.suffix in (".nbi", ".nbc") or filecmp.cmp(then, now, shallow=False)) for then, now in pairs):
            return
        for file in list(self._compiled()):
            file.unlink()
        for then, now in pairs:
            now.parent.mkdir(exist_ok=True)
            shutil.copy2(then, now)


def _copy_tree(root: Path, target: Path) -> None:
    """Copy what git knows, or could know, and the compiled code beside it, times of change included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    folders = set()
    for name in sorted(set(filter(None, listed.stdout.split("\0")))):
        source, copy = root / name, target / name
        if source.is_symlink() or source.is_file():  # not one that is deleted and not yet committed
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
            if source.suffix == ".py":
                folders.add(source.parent)
    for folder in sorted(folders):
        cache = folder / "__pycache__"
        if cache.is_dir():
            shutil.copytree(cache, target / cache.relative_to(root))


def _forget_bytecode(file: Path) -> None:
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def require_passing(copy: Copy, faults: Sequence[Planted]) -> None:
    """Raise UnusableError where tests that are to catch faults fail without any."""
    choices: dict[str, dict[str, None]] = {}
    for planted in faults:
        choices.setdefault(planted.fault.only, {}).update(dict.fromkeys(planted.tests))
    whole = choices.get("", {})
    failed: list[str] = []
    for only, tests in choices.items():
        wanted = [test for test in tests if not only or test not in whole]
        if wanted:
            failed += copy.failing([*(["-k", only] if only else []), *wanted])
    if failed:
        raise UnusableError("tests fail without any fault (see --deselect): " + ", ".join(dict.fromkeys(failed)))


def tried(copy: Copy, planted: Planted, options: argparse.Namespace) -> Outcome:
    """Plant a fault, run the tests, and take it out again."""
    with copy.planted(planted):
        verdict = copy.test(planted.selection, options.timeout)
    if not verdict.passed:
        return _caught(planted, verdict.first)
    if options.targeted_only:
        return Outcome(planted, False, "survived the targeted tests")
    while True:
        with copy.planted(planted):
            verdict = copy.test([], options.suite_timeout)
        if verdict.passed:
            return Outcome(planted, False, "survived the whole suite")
        if verdict.first == TIMED_OUT:  # a suite may only be slow
            return Outcome(planted, False, "survived the targeted tests, and the whole suite timed out")
        if copy.test([verdict.first], options.timeout).passed:
            return _caught(planted, verdict.first)
        copy.deselect(verdict.first)  # it fails without the fault as well


def _caught(planted: Planted, by: str) -> Outcome:
    return Outcome(planted, True, by if by == TIMED_OUT else f"caught by {by}")


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes in Markdown."""
    lines = ["| fault | area | what is wrong | caught by |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        fault, told = outcome.planted.fault, outcome.sentence.removeprefix("caught by ")
        cells = (fault.name, fault.area, fault.what, f"`{told}`" if outcome.is_caught else f"**{told}**")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", "| area | planted | caught |", "| --- | --- | --- |"]
    for area in AREAS:
        of_area = [outcome.is_caught for outcome in outcomes if outcome.planted.fault.area == area]
        if of_area:
            lines.append(f"| {area} | {len(of_area)} | {sum(of_area)} |")
    return "\n".join([*lines, "", f"Caught {_count(outcomes)} of {len(outcomes)}.", ""])


def _count(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.is_caught for outcome in outcomes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return 0 where at least `BAR` of the faults are caught."""
    options = _options(arguments)
    root = options.root.resolve()
    chosen = [fault for fault in FAULTS if fault.name in (options.only or [fault.name]) and fault.area in (options.area or AREAS)]
    unknown = set(options.only or []) - {fault.name for fault in FAULTS}
    try:
        if unknown or not chosen:
            raise UnusableError(f"no fault is called {', '.join(sorted(unknown))}" if unknown else "no fault is of this name and area")
        faults = _all_placed(chosen, root)
        if options.list:
            for planted in faults:
                print(f"{planted.fault.name} ({planted.fault.area}): {planted.file}; {' '.join(planted.selection)}")
            return 0
        outcomes = _all_tried(root, faults, options)
    except UnusableError as error:
        print(f"planted_faults: {error}", file=sys.stderr)
        return 2
    if options.out is not None:
        options.out.write_text(table(outcomes), encoding="utf-8")
    print(f"caught {_count(outcomes)} of {len(outcomes)}")
    return 0 if _count(outcomes) >= BAR * len(outcomes) else 1


def _all_placed(faults: Sequence[Fault], root: Path) -> list[Planted]:
    found, problems = [], []
    for fault in faults:
        try:
            found.append(placed(fault, root))
        except UnusableError as error:
            problems.append(str(error))
    if problems:
        raise UnusableError("\n".join(["the table does not fit the tree:", *problems]))
    return found


def _all_tried(root: Path, faults: Sequence[Planted], options: argparse.Namespace) -> list[Outcome]:
    jobs = min(options.jobs, len(faults))
    outcomes = []
    with ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planted-faults-"))).resolve() for _ in range(jobs)]
        copies = [Copy(root, place, options.deselect) for place in places]
        copies[0].require_own_code(root)
        if options.control:
            require_passing(copies[0], faults)
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in copies:
            copy.keep_compiled()
            free.put(copy)

        def attempt(planted: Planted) -> Outcome:
            copy = free.get()
            try:
                return tried(copy, planted, options)
            finally:
                free.put(copy)

        pool = stack.enter_context(ThreadPoolExecutor(jobs)) if jobs > 1 else None
        try:
            for number, outcome in enumerate(map(attempt, faults) if pool is None else pool.map(attempt, faults), start=1):
                print(f"{number}/{len(faults)} {outcome.planted.fault.name}: {outcome.sentence}", flush=True)
                outcomes.append(outcome)
        except BaseException:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.stop()
            raise
    return outcomes


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_faults", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="plant these faults alone")
    parser.add_argument("--area", nargs="+", choices=AREAS, help="plant the faults of these areas alone")
    parser.add_argument("--targeted-only", action="store_true", help="do not run the whole suite where the targeted tests pass")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many faults are tried at once, each in a copy of its own")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for a run of targeted tests")
    parser.add_argument("--suite-timeout", type=float, default=3600.0, metavar="SECONDS", help="for a run of the whole suite")
    parser.add_argument("--no-control", dest="control", action="store_false", help="do not test the copy without a fault first")
    parser.add_argument("--deselect", action="append", default=[], metavar="NODE", help="a test to leave out, which fails without a fault")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="where to write a table")
    parser.add_argument("--list", action="store_true", help="show where the faults go, and run nothing")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="the tree; that of this file by default")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
