"""The online setting: rounds of one or a few examples, and the regret against the best fixed W in hindsight, proven."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm


@dataclass(frozen=True)
class OnlineRun:
    """What a player met and lost: in round t it plays W_t, then sees `examples[t]` and pays for them.

    The loss of a round is N / b sum_i weights_i max(0, 1 - labels_i x_i.w_k) over its b of the N examples (plus the penalty, in
    a form that has one), so that its expectation over examples drawn uniformly is the objective.
    """

    examples: NDArray[np.int64]
    """Rounds x examples a round: places in the flattened labels of the form."""
    losses: Array
    """One a round."""


@dataclass(frozen=True)
class RegretCurve:
    """Regret per round after some numbers of rounds: the true one lies between both."""

    rounds: NDArray[np.int64]
    against_fixed: Array
    """Against the fixed point given: at most the true regret."""
    bound: Array
    """Against a proven lower bound on the best fixed point's losses: at least the true regret."""


def regret_curve(form: HingeForm, run: OnlineRun, fixed: Iterate, *, points: int = 40) -> RegretCurve:
    """(sum_t loss_t(W_t) - min_W sum_t loss_t(W)) / T, enclosed, for growing T.

    The minimum over the feasible W is at most what `fixed.primal` loses on the same rounds. By duality it is at least
    D_T = sum_i c_i a_i - C || G ||_{inf,1}, G = sum_i c_i a_i y_i x_i (penalised: sum_i c_i a_i scaled until || G || <= T penalty),
    for any a in the box of dual points, where c_i is N / b times how often example i was seen; a is that of `fixed.dual`.
    With the certified optimum of the whole problem as `fixed` both ends come together, up to sampling, as T grows.

    Parameters
    ----------
    form : the problem's `HingeForm`
    run : the rounds
    fixed : a feasible point with its dual point, such as the solution and the dual of a record
    points : values of T at most, evenly spaced by their logarithm; the last is all rounds

    Raises
    ------
    InputError : no rounds, losses and examples of different lengths, or no dual point.

    References
    ----------
    Zinkevich, ICML 2003 (regret of projected online gradient steps: O(sqrt T)); the papers' conclusion (Quattoni et al., ICML 2009).
    """
    T = len(run.losses)
    if T == 0 or run.examples.shape[0] != T:
        raise InputError(f"run must have rounds, and as many losses as rounds, not {T} and {run.examples.shape[0]}")
    if fixed.dual is None:
        raise InputError("fixed must have a dual point, which proves the bound")
    weights = form.weights.ravel()
    a = np.clip(fixed.dual, 0.0, form.weights).ravel()
    slack = np.maximum(0.0, 1.0 - form.labels * form.design.forward(fixed.primal)).ravel()
    price = 0.0 if form.penalty is None else form.penalty * float(np.abs(fixed.primal).max(axis=1).sum())
    suffered = np.cumsum(run.losses)
    rounds = np.unique(np.rint(np.geomspace(1, T, points)).astype(np.int64))
    against, bound = np.empty(len(rounds)), np.empty(len(rounds))
    counts = np.zeros(weights.size)
    seen = 0
    for place, t in enumerate(rounds):
        counts += np.bincount(run.examples[seen:t].ravel(), minlength=weights.size)
        seen = int(t)
        scaled = counts * (weights.size / run.examples.shape[1])
        against[place] = (suffered[t - 1] - float(np.vdot(scaled * weights, slack)) - t * price) / t
        bound[place] = (suffered[t - 1] - _lower_bound(form, scaled * a, seen)) / t
    return RegretCurve(rounds, against, bound)


def _lower_bound(form: HingeForm, a: Array, rounds: int) -> float:
    """On the best fixed point's losses in all rounds together, each of which pays the penalty."""
    G = form.design.adjoint(a.reshape(form.labels.shape) * form.labels)
    together = replace(form, penalty=None if form.penalty is None else rounds * form.penalty)
    return together.bound(a, G)
