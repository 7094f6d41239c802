"""An oracle of shallow trees, by alternation."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.types import Array
from bench_mtl.model.forms import ROW_NORMS
from bench_mtl.weak_learners.oracles import Oracle, checked_residuals
from bench_mtl.weak_learners.trees import Trees, fitted_tree, for_fitting, is_constant, outputs_of, usable
from bench_mtl.weak_learners.violation import direction, violations

_ROUNDS = 3


@final
class TreeOracle(Oracle):
    """Trees of at most some depth that violate much: not exact, there may be others that violate more.

    The violation of h is the maximum over v >= 0 of norm 1 of sum_i h(x_i) (R v)_i. For fixed v a tree is fitted to the labels
    sign(R v) with the weights |R v| (greedily, so not the best one either); for a fixed tree the best v is known. The two alternate up
    to three times from each unit vector and from the uniform v, and all trees met compete. Trees constant on X are left out, and of those
    with equal outputs on X one counts, so fewer than asked for may be found, or none.

    Parameters
    ----------
    X : examples, n x d, dense or sparse.
    depth : of the trees, at least 1.
    seed : scikit-learn's, for ties between features.

    Raises
    ------
    InputError : NaN or inf, or numbers beyond single precision, no feature with two different values, a depth below 1.
    """

    is_exact: ClassVar[bool] = False

    def __init__(self, X: Any, depth: int, seed: int = 0) -> None:
        self._depth = whole_number("depth", depth, minimum=1)
        self._seed = whole_number("seed", seed)
        self._rows = usable(X)
        self._columns = for_fitting(self._rows)

    def most_violating(self, R: Any, norm: str, count: int = 1) -> tuple[Trees, Array]:
        one_of("norm", norm, ROW_NORMS)
        wanted = whole_number("count", count, minimum=1)
        values = checked_residuals(R, self._rows.shape[0])
        exponent = int(np.frexp(np.abs(values).max())[1])
        values = np.ldexp(values, -exponent)
        K = values.shape[1]
        met: dict[bytes, tuple[Any, float]] = {}
        for start in [*np.eye(K), np.full(K, 1.0 / K)]:
            self._alternate(start, values, norm, met)
        best = sorted(met.values(), key=lambda pair: -pair[1])[:wanted]
        with np.errstate(over="ignore"):
            return Trees(tuple(tree for tree, _ in best)), np.ldexp(np.array([violation for _, violation in best]), exponent)

    def _alternate(self, v: Array, R: Array, norm: str, met: dict[bytes, tuple[Any, float]]) -> None:
        """Add to `met`, by outputs, the trees met on the way from v and their violations."""
        for _ in range(_ROUNDS):
            pull = R @ v
            if not pull.any():
                return
            labels = np.where(pull > 0.0, 1, -1)
            weights = np.abs(pull) / np.abs(pull).max()  # scikit-learn squares them
            tree = fitted_tree(self._columns, labels, weights, self._depth, self._seed)
            h = outputs_of(tree, self._rows)
            key = np.packbits(h > 0.0).tobytes()
            if is_constant(h) or key in met:
                return
            G = h @ R
            met[key] = tree, float(violations(G[None], norm)[0])
            v = direction(G, norm)
