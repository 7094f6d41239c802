"""AdaBoost.MH over decision stumps, a rival of group-sparse boosting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench_mtl.weak_learners import StumpOracle, Stumps
from papers import Array

#: An edge as good as 1: the stump and its votes make no mistake.
_PERFECT = 1.0 - 1e-12


class Votes(NamedTuple):
    """Stumps h_t in the order of the rounds, with weights W (T x K): scores sum_t h_t(x) W_tr."""

    stumps: Stumps
    weights: Array

    def staged_scores(self, X: Array) -> Array:
        """Return the scores after each round, T x n x K."""
        return np.cumsum(self.stumps.outputs(X).T[:, :, None] * self.weights[:, None, :], axis=0)


def adaboost_mh(X: Array, labels: Array, rounds: int) -> Votes:
    """Fit AdaBoost.MH (Schapire, Singer, Machine Learning 37, 1999) with the weak hypotheses h(x) v_r, h a stump and v in {-1, +1}^K.

    Every round takes the stump and votes of the largest edge sum_ir D_ir Y_ir h(x_i) v_r, gives them the weight
    1/2 log((1 + edge) / (1 - edge)), and multiplies D_ir by exp(-weight Y_ir h(x_i) v_r). It ends early where an edge is 0 or 1.

    X is examples x features, and the labels Y are examples x classes, -1 or +1.
    """
    oracle = StumpOracle(X)
    D = np.full(labels.shape, 1.0 / labels.size)
    found: list[Stumps] = []
    weights: list[Array] = []
    for _ in range(rounds):
        R = D * labels
        # The best votes are the signs of G = sum_i h(x_i) R_i, so the edge is sum_r |G_r|: the positive parts of G and of -G.
        stump, _ = oracle.most_violating(np.hstack([R, -R]), "l1inf")
        assert isinstance(stump, Stumps)
        h = stump.outputs(X)[:, 0]
        G = h @ R
        votes, edge = np.where(G >= 0.0, 1.0, -1.0), float(np.abs(G).sum())
        if edge <= 0.0:
            break
        edge = min(edge, _PERFECT)
        weight = 0.5 * float(np.log((1.0 + edge) / (1.0 - edge)))
        found.append(stump)
        weights.append(weight * votes)
        if edge == _PERFECT:
            break
        D = D * np.exp(-weight * labels * h[:, None] * votes)
        D /= D.sum()
    if not found:
        return Votes(Stumps(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0)), np.empty((0, labels.shape[1])))
    return Votes(_joined(found), np.array(weights))


def _joined(found: list[Stumps]) -> Stumps:
    return Stumps(*(np.concatenate([getattr(each, name) for each in found]) for name in ("features", "thresholds", "polarities")))
