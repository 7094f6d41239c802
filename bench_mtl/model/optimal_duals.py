"""How small a penalty may be with which hinges with free intercepts leave W = 0."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from bench_mtl.core.designs import dense
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.norms import L1Inf, Norm

#: Features that a model begins with and that a round adds at most; rounds at most; and the share to which the norm is found.
_FEATURES, _ROUNDS, _SHARE = 50, 50, 1e-7
#: Multipliers that are chosen at most: of more examples any choice will do.
_MOST = 100_000


def least_dual_norm(fit: LinearFit, norm: Norm) -> float:
    """Return the least dual norm of X^T r over the dual points r that are optimal at W = 0, or next to nothing more.

    At W = 0 the intercept of a task makes hinges of the rarer label active, and puts the others just at their margin, where a subgradient
    may choose: the multipliers of these are from 0 to their weights, with the sum of those of the rarer label. That is a conic programme
    whose rows, the features, are generated. Any such r proves that W = 0 is optimal under a weight that is its norm.
    """
    import cvxpy as cp

    design, r, order = fit.design, np.array(fit.dual_at_zero()), 1 if isinstance(norm, L1Inf) else 2
    G = design.adjoint(r)
    best = unit = norm.dual(G)
    parts = [design.task_outputs(r, k) for k in range(design.n_tasks)]  # views
    free = [np.abs(part) < design.task_outputs(fit.weights, k) for k, part in enumerate(parts)]
    if not 0 < sum(map(np.count_nonzero, free)) <= _MOST or not 0.0 < unit < np.inf:
        return best
    tops = [design.task_outputs(fit.weights * fit.targets, k)[choice] for k, choice in enumerate(free)]
    sums = [float(np.abs(part[choice]).sum()) for part, choice in zip(parts, free, strict=True)]
    features = np.sort(np.argsort(-np.linalg.norm(G, order, axis=1))[:_FEATURES])
    for _ in range(_ROUNDS):
        chosen = design.restricted(features)
        shares, columns = [cp.Variable(len(top), nonneg=True) for top in tops], list[Any]()
        for k, (part, choice, top, share) in enumerate(zip(parts, free, tops, shares, strict=True)):
            X = dense(chosen.block(k)) / unit
            columns.append(X[~choice].T @ part[~choice] + (X[choice].T * top) @ share)
        bounds = [share <= 1.0 for share in shares]
        totals = [np.abs(top) @ share == total for top, share, total in zip(tops, shares, sums, strict=True) if len(top)]
        model = cp.Problem(cp.Minimize(cp.max(cp.norm(cp.vstack(columns), order, axis=0))), [*bounds, *totals])
        with warnings.catch_warnings(), suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # what is inaccurate is feasible once it is clipped
            model.solve(solver=cp.HIGHS if order == 1 else cp.CLARABEL)
        if model.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            break
        for part, choice, top, share, total in zip(parts, free, tops, shares, sums, strict=True):
            if len(top):
                a = np.clip(share.value, 0.0, 1.0) * np.abs(top)
                part[choice] = np.sign(top) * a * (total / a.sum() if total > 0.0 else 0.0)  # 0: all labels of the task are the same
        G = design.adjoint(r)
        sizes = np.linalg.norm(G, order, axis=1)
        best = min(best, norm.dual(G))
        beyond = np.setdiff1d(np.flatnonzero(sizes > model.value * unit * (1.0 + _SHARE)), features)
        if not len(beyond):
            break
        features = np.sort(np.concatenate([features, beyond[np.argsort(-sizes[beyond])][:_FEATURES]]))
    return best
