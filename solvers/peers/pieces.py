"""What libraries are handed: problems that fall apart into fits of one matrix, with one weight for all examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.losses import Squared
from bench_mtl.model.norms import L1, L1Inf
from bench_mtl.model.protocols import Problem
from bench_mtl.model.squared_norms import SquaredNorms

#: What copies X, with its rows scaled by roots of weights or not: `by_columns` or `by_rows`.
Layout = Callable[[Any, Array | None], Any]


@dataclass(frozen=True)
class Piece:
    """A fit that a library is asked for, of one task, or of all with the norm "l1inf"::

        radius given:   min_w  weight sum_i loss(x_i.w, y_i)  subject to  ||w|| <= radius
        penalty given:  min_w  weight sum_i loss(x_i.w, y_i) + penalty ||w||

    with the losses "squared", 1/2 (y - t)^2; "logistic", log(1 + exp(-y t)); "hinge", max(0, 1 - y t); and with the norms "l1",
    sum_j |w_j|; "l1inf", sum_j max_k |w_jk|; "ridge", sum_j w_j^2.
    """

    X: Any
    """n x d, laid out `by_columns` or `by_rows`."""
    y: Array
    """n numbers, or n x m."""
    loss: str
    norm: str
    weight: float
    radius: float | None
    penalty: float | None
    nonneg: bool = False

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self.X)

    @property
    def relative_penalty(self) -> float:
        """The penalty in units of the weight."""
        assert self.penalty is not None
        return self.penalty / self.weight


@dataclass(frozen=True)
class Pieces:
    """All fits of a problem, whose solutions side by side are W."""

    pieces: tuple[Piece, ...]
    design: Design


def obstacle(problem: Problem) -> str | None:
    """Why a problem with a form that peers take does not fall apart into pieces, as the end of a sentence; None where it does."""
    form = problem.form(LinearForm)
    fit, norm, m = form.fit, form.norm, form.design.n_tasks
    if isinstance(norm, L1) and norm.balls == "all" and form.radius is not None and m > 1:
        return f"one ball holds all {m} tasks, which cannot be fitted one by one"
    if isinstance(norm, L1) and norm.orientation is not None:
        return "signs are given entry by entry"
    if isinstance(norm, L1Inf) and not form.design.is_shared:
        return "every task has examples of its own"
    if isinstance(norm, L1Inf) and not np.all(fit.weights == fit.weights.flat[0]):
        return "its examples have unlike weights"
    if fit.loss.couples_tasks:
        return f"its {fit.loss.name} loss couples the tasks"
    if isinstance(fit.loss, Squared):  # weights go into the rows
        return None
    weights, targets = ([form.design.task_outputs(part, k) for k in range(m)] for part in (fit.weights, fit.targets))
    if not all(np.all(own == own[0]) for own in weights):
        return "the examples of a task have unlike weights"
    return "all examples of a task have the same label" if any(np.all(labels == labels[0]) for labels in targets) else None


def first_piece(problem: Problem) -> Piece:
    """Return a piece with the terms of all others, without the data of any: X is empty."""
    form = problem.form(LinearForm)
    fit = form.fit
    X: Any = sp.csc_matrix((0, fit.design.n_features)) if fit.design.is_sparse else np.zeros((0, fit.design.n_features), order="F")
    return _piece(form, X, np.zeros((0, fit.design.n_tasks)), 1.0)


def pieces_of(problem: Problem, laid_out: Layout) -> Pieces:
    """Return the fits that a problem without an `obstacle` falls apart into."""
    form = problem.form(LinearForm)
    fit = form.fit
    design = fit.design
    if isinstance(form.norm, L1Inf):
        joint = _piece(form, laid_out(design.block(0), None), np.asfortranarray(fit.targets), float(fit.weights[0, 0]))
        return Pieces((joint,), design)
    matrices: dict[tuple[int, bytes], Any] = {}
    pieces = []
    for k in range(design.n_tasks):
        weights, y = np.ascontiguousarray(design.task_outputs(fit.weights, k)), np.array(design.task_outputs(fit.targets, k))
        weight, roots = (float(weights[0]), None) if np.all(weights == weights[0]) else (1.0, np.sqrt(weights))
        key = (0 if design.is_shared else k, b"" if roots is None else roots.tobytes())
        if key not in matrices:
            matrices[key] = laid_out(design.block(k), roots)
        pieces.append(_piece(form, matrices[key], y if roots is None else roots * y, weight))
    return Pieces(tuple(pieces), design)


def tiny(piece: Piece, laid_out: Layout) -> Piece:
    """Return a piece of three examples with the terms of another."""
    rows, labels = np.array([[1.0, 0.5], [-1.0, 0.2], [0.3, -1.0]]), np.array([1.0, -1.0, 1.0])
    X = laid_out(sp.csr_array(rows) if piece.is_sparse else rows, None)
    y = labels if piece.y.ndim == 1 else np.asfortranarray(np.repeat(labels[:, None], piece.y.shape[1], axis=1))
    radius, penalty = (None if size is None else 0.1 for size in (piece.radius, piece.penalty))
    return replace(piece, X=X, y=y, weight=1.0, radius=radius, penalty=penalty)


def by_columns(X: Any, roots: Array | None = None) -> Any:
    """X, with its rows scaled by `roots`, as a Fortran array, or CSC with 32-bit indices."""
    return _laid_out(X, roots, "F", sp.csc_array, sp.csc_matrix)


def by_rows(X: Any, roots: Array | None = None) -> Any:
    """X, with its rows scaled by `roots`, as a C array, or CSR with 32-bit indices."""
    return _laid_out(X, roots, "C", sp.csr_array, sp.csr_matrix)


def _laid_out(X: Any, roots: Array | None, order: Literal["C", "F"], array: Any, matrix: Any) -> Any:
    """Return a copy: what libraries are handed is writable."""
    if is_sparse(X):
        X = array(X if roots is None else sp.diags_array(roots) @ X)
        X.sort_indices()
        return matrix((X.data.copy(), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return np.array(X if roots is None else X * roots[:, None], order=order)


def _piece(form: LinearForm, X: Any, y: Array, weight: float) -> Piece:
    loss = form.fit.loss.name
    if isinstance(form.regulariser, SquaredNorms):
        return Piece(X, y, loss, "ridge", weight, None, 0.5 * form.regulariser.strengths[0])
    if isinstance(form.norm, L1Inf):
        return Piece(X, y, loss, "l1inf", weight, form.radius, form.penalty)
    return Piece(X, y, loss, "l1", weight, form.radius, form.penalty, form.norm.nonneg)
