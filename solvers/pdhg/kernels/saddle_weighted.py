"""The primal half of a step as in `saddle` and `saddle_balls`, in features that are scaled (`bench_mtl.solvers.kernels.weighted_norms`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact
from bench_mtl.core.kernels.vectors import squared_distance
from bench_mtl.solvers.kernels.weighted_norms import project_rows, project_weighted_l1, project_weighted_l2
from bench_mtl.solvers.pdhg.kernels.saddle import ANCHOR, EXTRAPOLATED, GRADIENT, POINT, STEPPED
from bench_mtl.solvers.pdhg.kernels.saddle_passes import combine


@exact
def weighted_norm_step(primal: Any, tau: float, radius: float, penalised: bool, theta: float, t: Any, mix: Any) -> tuple[float, float]:
    """`saddle.primal_step` under sum_j t_j max_k |V_jk|: theta and ||V+ - V||^2; -1 where the numbers are out of scale."""
    stepped = primal[STEPPED].reshape(-1)
    combine(primal[POINT].reshape(-1), 1.0, primal[GRADIENT].reshape(-1), tau, stepped, 0.0, stepped)
    theta = project_rows(primal[STEPPED], radius, penalised, theta, t)
    return theta, _go_on(primal, mix)


@exact
def weighted_ball_step(primal: Any, tau: float, one_norm: bool, radii: Any, t: Any, mix: Any) -> float:
    """`saddle_balls.ball_step` with balls sum_j t_j |v_j| <= radius or sum_j t_j^2 v_j^2 <= radius^2."""
    d, m = primal.shape[1:]
    stepped = primal[STEPPED].reshape(-1)
    combine(primal[POINT].reshape(-1), 1.0, primal[GRADIENT].reshape(-1), tau, stepped, 0.0, stepped)
    V = primal[STEPPED]
    column = np.empty(d)
    for k in range(m):
        column[:] = V[:, k]
        inside = project_weighted_l1(column, radii[k], t) if one_norm else project_weighted_l2(column, radii[k], t)
        if not inside:
            return -1.0
        V[:, k] = column
    return _go_on(primal, mix)


@exact
def _go_on(primal: Any, mix: Any) -> float:
    """2 V+ - V, and the point where it goes on to; returns ||V+ - V||^2."""
    point, anchor, stepped = primal[POINT].reshape(-1), primal[ANCHOR].reshape(-1), primal[STEPPED].reshape(-1)
    combine(stepped, 2.0, point, -1.0, point, 0.0, primal[EXTRAPOLATED].reshape(-1))
    moved = squared_distance(stepped, point)
    combine(stepped, mix[0], point, mix[1], anchor, mix[2], point)
    return moved
