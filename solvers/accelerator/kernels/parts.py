"""What a problem is made of on a device: products with its data, its loss, its norm, and the bound of a dual point.

Outputs are n x m where all tasks have one X, and m x n where every task has its own, n the most examples of one: what is beyond those of
a task weighs 0. A bound is plain, to steer by: what counts is made on the host, by the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench_mtl.core.types import NEGLIGIBLE_SHARE
from bench_mtl.solvers.accelerator.kernels.thresholds import Thresholds, lengths, project, prox, squared_values


class Kind(NamedTuple):
    """What a program is compiled for, besides sizes."""

    loss: str
    """ "hinge", "squared" or "logistic"."""
    norm: str
    """ "l1inf", "l1", "l12"; "tasks", an l1 ball for every column; "split", an l1 penalty on P and a trace ball for Q, a point their
    stack."""
    is_penalty: bool
    layout: str
    """ "shared", "sparse" (shared), "cube" (m x n x d), or "blocks", one sparse matrix of m n rows and m d columns."""
    has_intercept: bool = False
    """Whether the numbers that are added to the predictions of every task are free: of squared losses, whose targets have mean 0 then."""

    @property
    def is_apart(self) -> bool:
        """Whether every task has an X of its own."""
        return self.layout in ("cube", "blocks")


class Data(NamedTuple):
    """A problem on a device."""

    X: tuple[Any, ...]
    """The matrix or the cube; of a sparse matrix values, rows and columns of its entries in the order of rows, then in that of columns."""
    y: Any
    w: Any
    """Weights of the examples, shaped like y, or 1 x 1 where all are the same."""
    size: Any
    """The radius, m radii, or the penalty; of "split" penalty and radius."""


def forward(kind: Kind, data: Data, W: Any) -> Any:
    """Return the predictions X W, or X (P + Q); where intercepts are free less their means in every task, which are the best ones."""
    W = W.sum(axis=0) if kind.norm == "split" else W
    if kind.layout in ("shared", "cube"):
        T = data.X[0] @ W if kind.layout == "shared" else jnp.einsum("knd,dk->kn", data.X[0], W)
    else:
        values, rows, columns, *_ = data.X
        of_entries = values * W.T.ravel()[columns] if kind.is_apart else values[:, None] * W[columns]
        n = data.y.size if kind.is_apart else data.y.shape[0]
        T = jax.ops.segment_sum(of_entries, rows, num_segments=n, indices_are_sorted=True).reshape(data.y.shape)
    if not kind.has_intercept:
        return T
    weights = jnp.broadcast_to(data.w, T.shape)
    return T - spread(kind, of_tasks(kind, weights * T) / of_tasks(kind, weights))


def adjoint(kind: Kind, data: Data, R: Any, d: int) -> Any:
    """Return X^T R, d x m."""
    if kind.layout in ("shared", "cube"):
        return data.X[0].T @ R if kind.layout == "shared" else jnp.einsum("knd,kn->dk", data.X[0], R)
    values, rows, columns = data.X[3:]
    of_entries = values * R.ravel()[rows] if kind.is_apart else values[:, None] * R[rows]
    G = jax.ops.segment_sum(of_entries, columns, num_segments=d * len(R) if kind.is_apart else d, indices_are_sorted=True)
    return G.reshape(-1, d).T if kind.is_apart else G


def spread(kind: Kind, values: Any) -> Any:
    """Return one value a task, as it broadcasts against outputs."""
    return values[:, None] if kind.is_apart else values[None, :]


def of_tasks(kind: Kind, outputs: Any) -> Any:
    """Return the sums of outputs over the examples of every task."""
    return outputs.sum(axis=1 if kind.is_apart else 0)


def largest_values(kind: Kind, data: Data, V: Any, steps: int) -> Any:
    """Return estimates from below of sigma_max(X_k), m numbers, by power iterations from V; one for all tasks where X is shared."""

    def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        V = carry[0]
        squares = lengths(V.T)
        unit = V / jnp.where(squares > 0.0, squares, 1.0)
        V = adjoint(kind, data, forward(kind._replace(norm=""), data, unit), V.shape[0])
        return V, lengths(V.T)

    norms = jnp.sqrt(jax.lax.fori_loop(0, steps, step, (V, jnp.zeros(V.shape[1])))[1])
    return norms if kind.is_apart else jnp.full_like(norms, norms.max())


def loss_value(kind: Kind, data: Data, t: Any) -> Any:
    """Return f at predictions t."""
    if kind.loss == "squared":
        return 0.5 * (data.w * (data.y - t) ** 2).sum()
    margins = data.y * t
    return (data.w * (jnp.maximum(0.0, 1.0 - margins) if kind.loss == "hinge" else jnp.logaddexp(0.0, -margins))).sum()


def slopes(kind: Kind, data: Data, t: Any) -> Any:
    """Return the derivative of a smooth f in its predictions."""
    return data.w * (t - data.y if kind.loss == "squared" else -data.y * jax.nn.sigmoid(-data.y * t))


def shrunk(kind: Kind, data: Data, V: Any, step_size: Any, start: Thresholds) -> tuple[Any, Thresholds]:
    """Return argmin_W 1/2 ||W - V||^2 + step_size R(W), and its thresholds, the search for which begins at others."""
    if kind.norm == "split":
        Q, ends = project("trace", V[1], data.size[1], start)
        return jnp.stack([prox("l1", V[0], step_size * data.size[0], start)[0], Q]), ends
    if kind.is_penalty:
        return prox(kind.norm, V, step_size * data.size, start)
    return project(kind.norm, V, data.size, start)


def norm_value(norm: str, W: Any) -> Any:
    """Return the norm of a matrix that is penalised or bounded; of "tasks" those of the columns."""
    A = jnp.abs(W)
    if norm == "tasks":
        return A.sum(axis=0)
    return A.max(axis=1).sum() if norm == "l1inf" else lengths(W).sum() if norm == "l12" else A.sum()


def dual_norm(norm: str, G: Any) -> Any:
    """Return the dual norm; of "tasks" those of the columns."""
    A = jnp.abs(G)
    if norm == "tasks":
        return A.max(axis=0)
    return A.sum(axis=1).max() if norm == "l1inf" else lengths(G).max() if norm == "l12" else A.max()


def objective(kind: Kind, data: Data, W: Any, t: Any) -> Any:
    """Return F at a feasible W with predictions t."""
    value = loss_value(kind, data, t)
    if kind.norm == "split":
        return value + data.size[0] * norm_value("l1", W[0])
    return value + data.size * norm_value(kind.norm, W) if kind.is_penalty else value


def bound(kind: Kind, data: Data, r: Any, G: Any) -> Any:
    """Return about what a dual point r proves, G = X^T r: of margins an r with 0 <= y r <= w."""
    norm, w = dual_norm("l1" if kind.norm == "split" else kind.norm, G), jnp.where(data.w > 0.0, data.w, 1.0)
    support, limit = 0.0, jnp.inf
    if kind.norm == "split":
        support, limit = data.size[1] * jnp.sqrt(squared_values(G)[0].max()), data.size[0] / jnp.where(norm > 0.0, norm, 1e-300)
    elif kind.is_penalty:
        limit = data.size / jnp.where(norm > 0.0, norm, 1e-300)
    else:
        support = (data.size * norm).sum()
    if kind.loss == "squared":
        rise, squares = (r * data.y).sum() - support, (r * r / w).sum()
        c = jnp.minimum(jnp.maximum(rise, 0.0) / jnp.where(squares > 0.0, squares, 1.0), limit)
        return jnp.maximum(c * rise - 0.5 * c * c * squares, 0.0)
    c = jnp.minimum(limit, 1.0)
    if kind.loss == "hinge":
        return jnp.maximum(c * (jnp.abs(r).sum() - support), 0.0)
    shares = c * jnp.clip(data.y * r / w, 0.0, 1.0)
    entropy = jax.scipy.special.entr(shares) + jax.scipy.special.entr(1.0 - shares)
    return jnp.maximum((data.w * entropy).sum() - c * support, 0.0)


def relative_gap(kind: Kind, data: Data, point: tuple[Any, Any], dual: tuple[Any, Any]) -> Any:
    """Return the plain relative gap of W with its predictions and r with its X^T r, relative to a share of f(0) where the optimum is almost
    0; inf where one of both ends is no finite number."""
    upper, lower = objective(kind, data, *point), bound(kind, data, *dual)
    size = jnp.maximum(upper, NEGLIGIBLE_SHARE * loss_value(kind, data, jnp.zeros_like(data.y)))
    gap = jnp.where(size > 0.0, jnp.maximum(upper - lower, 0.0) / jnp.where(size > 0.0, size, 1.0), 0.0)
    return jnp.where(jnp.isfinite(upper) & jnp.isfinite(lower), gap, jnp.inf)


def repeated(one_round: Callable[[Any], Any], state: Any, aim: Any, rounds: Any) -> Any:
    """Return the state after so many rounds, or fewer, of at least one, where its gap comes to the aim."""

    def goes_on(carry: tuple[Any, Any]) -> Any:
        return (carry[1] < rounds) & ((carry[1] == 0.0) | (carry[0].gap > aim))

    return jax.lax.while_loop(goes_on, lambda carry: (one_round(carry[0]), carry[1] + 1.0), (state, jnp.zeros(())))[0]
