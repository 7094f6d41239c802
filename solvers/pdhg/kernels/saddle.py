"""The primal half of a step of the primal-dual hybrid gradient method for hinges under an l1,inf norm; `saddle_passes` has the other.

With W+ = proj(W + tau G) the point goes on to p W+ + q W + r W0, where W0 is the anchor of a Halpern iteration. The projection is that of
`l1inf`, without its sample: theta of the step before is where its search begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact
from bench_mtl.core.kernels.vectors import squared_distance
from bench_mtl.core.types import Array
from bench_mtl.projections.kernels.l1inf import INSIDE, OUT_OF_SCALE, assess, following_theta, settle
from bench_mtl.projections.kernels.l1inf_passes import LEVEL, STATE_ROWS, clip, first_pass, next_pass
from bench_mtl.projections.kernels.levels import COEFFICIENTS
from bench_mtl.solvers.pdhg.kernels.saddle_passes import combine

#: Planes of the array of primal matrices: the point, its anchor, the point after a plain step, the extrapolated one, and G = X^T b.
POINT, ANCHOR, STEPPED, EXTRAPOLATED, GRADIENT = range(5)
PRIMAL_PLANES = 5

#: Longest rows that a projection searches side by side.
_SHORT_ROW = 32

#: More passes than a projection from a good theta ever takes.
_MAX_PASSES = 200


def workspace(d: int, m: int) -> tuple[Array, Array, Array]:
    """Memory for `primal_step`: the state and the prediction of `l1inf`, and a d x m matrix."""
    return np.empty((STATE_ROWS, d)), np.empty(COEFFICIENTS), np.empty((d, m))


@exact
def primal_step(
    primal: Any, tau: float, radius: float, penalised: bool, theta: float, mix: Any, state: Any, prediction: Any, scratch: Any
) -> tuple[float, float]:
    """W+ and 2 W+ - W, and the point where it goes on to; returns theta for the next step and ||W+ - W||^2.

    Parameters
    ----------
    theta : where the search begins; with `penalised`, tau times the penalty. -1 is returned where the numbers are out of scale.
    mix : p, q and r
    state, prediction, scratch : a `workspace`
    """
    point, anchor, stepped = primal[POINT].reshape(-1), primal[ANCHOR].reshape(-1), primal[STEPPED].reshape(-1)
    extrapolated, gradient = primal[EXTRAPOLATED].reshape(-1), primal[GRADIENT].reshape(-1)
    combine(point, 1.0, gradient, tau, gradient, 0.0, scratch.reshape(-1))
    theta = project_from(scratch, radius, penalised, theta, state, prediction, primal[STEPPED])
    combine(stepped, 2.0, point, -1.0, point, 0.0, extrapolated)
    moved = squared_distance(stepped, point)
    combine(stepped, mix[0], point, mix[1], anchor, mix[2], point)
    return theta, moved


@exact
def project_from(V: Any, radius: float, penalised: bool, theta: float, state: Any, prediction: Any, out: Any) -> float:
    """Write the projection of V to `out` (or its proximal point, for the weight theta).

    Returns theta: 0 where V is inside, -1 where it is out of scale.
    """
    if V.shape[1] <= _SHORT_ROW:
        return _project(V, (V.shape[1], np.int64(1)), radius, penalised, theta, state, prediction, out)
    return _project(V, None, radius, penalised, theta, state, prediction, out)


@exact
def _project(V: Any, lanes: Any, radius: float, penalised: bool, theta: float, state: Any, prediction: Any, out: Any) -> float:
    data, flat = V.reshape(-1), out.reshape(-1)
    m = V.shape[1]
    matrix = (data, data.view(np.int64), np.int64(0x7FFFFFFFFFFFFFFF), None, m)
    step: Any = np.int64(1)  # a bare 1 would be a type of its own, and all that it is passed to would be compiled again for it
    prediction[0] = np.nan
    unsettled = first_pass(matrix, lanes, step, theta, prediction, state, None)
    if unsettled < 0:
        return -1.0
    if not penalised:
        status = assess(state, unsettled, radius)
        if status == OUT_OF_SCALE:
            return -1.0
        if status == INSIDE:
            flat[:] = data
            return 0.0
        fresh = True
        for _ in range(_MAX_PASSES):
            following = following_theta(state, theta, radius, fresh, unsettled)
            if following < 0.0:
                break
            unsettled = next_pass(matrix, lanes, step, theta, following, state, None)
            theta, fresh = following, False
        settle(state[LEVEL], radius)
    clip(matrix, lanes, state[LEVEL], None, flat)
    return theta
