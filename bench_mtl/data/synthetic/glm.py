"""Sparse linear models: regression, labels or classes, over a dense or sparse design."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.synthetic.common import drawn, share_of, signs_of, some_rows, test_stream
from bench_mtl.model.task_data import TaskData

KINDS = ("regression", "labels", "classes")
_NOISE_STD = 1.0
_LABEL_NOISE = 0.1


class _Recipe(NamedTuple):
    W: Array
    kind: str
    noise_std: float
    label_noise: float
    density: float

    def draw(self, generator: np.random.Generator, n: int) -> tuple[Matrix, Array]:
        """n examples and their targets."""
        X = _design(generator, n, len(self.W), self.density)
        Y = np.asarray(X @ self.W)
        if self.noise_std > 0.0:
            Y = Y + self.noise_std * generator.standard_normal(Y.shape)
        if self.kind == "regression":
            return X, Y
        return X, _flipped(generator, signs_of(Y), self.label_noise) if self.kind == "labels" else _classes(generator, Y, self.label_noise)


def synthetic_glm(
    *, tasks: int = 1, features: int = 800, examples: int = 1000, relevant: float = 0.5, kind: str = "regression",
    noise_std: float | None = None, label_noise: float | None = None, density: float = 1.0, seed: int = 0, split: str = "train",
    held_out: int = 0,
) -> TaskData:  # fmt: skip
    """Linear models with sparse coefficients over one design, for least squares and (multiclass) logistic regression.

    Each column of W (d x m) has round(relevant d) entries N(0, 1) (at least one) at random places, the others are zero. Entries
    of X are N(0, 1); with a density below 1 only round(density n d) of them, at random places, and X is CSR. With the responses
    T = X W + noise_std N(0, 1),

        regression:  Y = T
        labels:      Y = sign(T), where 0 counts as +1; round(label_noise n) labels of each task are then flipped
        classes:     Y_ik = +1 for the largest T_ik of row i, else -1; round(label_noise n) rows then get another class at random

    Parameters
    ----------
    tasks, features, examples : m, d and n, each at least 1; classes need two tasks, one a class.
    relevant : the share of non-zero coefficients, in (0, 1].
    kind : ``"regression"``, ``"labels"`` or ``"classes"``.
    noise_std : standard deviation of the responses' noise; None is 1 for regression, 0 otherwise.
    label_noise : the share of wrong labels, from 0 to 1; None is 0.1. Not for regression.
    density : the share of non-zeros of X, in (0, 1].
    seed : of the generator; the same seed gives the same tasks.
    split : ``"train"``, or ``"test"`` for other examples of the same W, drawn from an independent stream.
    held_out : the number of further examples of the same W as `TaskData.held_out`, from a third stream, with noise of the same kind.

    Returns
    -------
    TaskData : a shared design, targets of that kind, ``truth={"W": W}``.

    Raises
    ------
    InputError : a size below 1, a share out of its range, an unknown kind or split, label noise for regression, one class.

    Notes
    -----
    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008,
    section 7, in 800 and 4000 dimensions, and Singer's slides on it, which flip 10 % of the labels. The texts available to us have
    lost the numbers of examples, the share of zeros and the variances: those here are choices of this package.
    """
    m, d = whole_number("tasks", tasks, minimum=1), whole_number("features", features, minimum=1)
    n, n_held_out = whole_number("examples", examples, minimum=1), whole_number("held_out", held_out)
    one_of("kind", kind, KINDS)
    one_of("split", split, ("train", "test"))
    if kind == "classes" and m < 2:
        raise InputError("kind 'classes' needs at least 2 tasks, one a class")
    if kind == "regression" and label_noise is not None:
        raise InputError("label_noise is for labels and classes: use noise_std for regression")
    seed = whole_number("seed", seed)
    n_relevant = max(1, round(share_of("relevant", relevant, "non-zero coefficients") * d))
    generator = np.random.default_rng(seed)
    recipe = _Recipe(
        W=_sparse_columns(generator, d, m, n_relevant),
        kind=kind,
        noise_std=(_NOISE_STD if kind == "regression" else 0.0) if noise_std is None else real_number("noise_std", noise_std),
        label_noise=_LABEL_NOISE if label_noise is None else share_of("label_noise", label_noise, "wrong labels", zero=True),
        density=share_of("density", density, "non-zeros"),
    )
    stream = generator if split == "train" else test_stream(seed)
    return drawn(recipe.draw, stream, n, n_held_out, seed, "synthetic_glm", {"W": frozen(recipe.W)})


def _sparse_columns(generator: np.random.Generator, d: int, m: int, count: int) -> Array:
    """Return a d x m matrix with `count` Gaussian entries in each column."""
    W = np.zeros((d, m))
    for k in range(m):
        W[generator.choice(d, size=count, replace=False), k] = generator.standard_normal(count)
    return W


def _design(generator: np.random.Generator, n: int, d: int, density: float) -> Matrix:
    if density == 1.0:
        return generator.standard_normal((n, d))
    count = round(density * n * d)
    places = np.sort(generator.choice(n * d, size=count, replace=False, shuffle=False))
    return sp.csr_array((generator.standard_normal(count), np.divmod(places, d)), shape=(n, d))


def _flipped(generator: np.random.Generator, labels: Array, share: float) -> Array:
    for column in labels.T:
        column[some_rows(generator, len(column), share)] *= -1.0
    return labels


def _classes(generator: np.random.Generator, responses: Array, share: float) -> Array:
    n, m = responses.shape
    classes = responses.argmax(axis=1)
    wrong = some_rows(generator, n, share)
    classes[wrong] = (classes[wrong] + generator.integers(1, m, size=len(wrong))) % m
    return np.where(classes[:, None] == np.arange(m), 1.0, -1.0)
