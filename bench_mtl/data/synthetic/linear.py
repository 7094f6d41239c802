"""Linear models: of one design, jointly sparse, sparse plus low rank, and classes that are codes over a few features."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, true_or_false, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.synthetic.common import SPLITS, TEST, drawn, signs_of, sizes, some_rows, stream_of
from bench_mtl.model.task_data import TaskData

KINDS = ("regression", "labels", "classes")
#: Of so many signs all codes can be numbered.
_LONGEST = 62


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
    m, d, n = sizes(tasks=tasks, features=features, examples=examples)
    n_held_out, seed = whole_number("held_out", held_out), whole_number("seed", seed)
    one_of("kind", kind, KINDS)
    one_of("split", split, SPLITS)
    if kind == "classes" and m < 2:
        raise InputError("kind 'classes' needs at least 2 tasks, one a class")
    if kind == "regression" and label_noise is not None:
        raise InputError("label_noise is for labels and classes: use noise_std for regression")
    count = max(1, round(real_number("relevant", relevant, strict=True, maximum=1.0) * d))
    std = float(kind == "regression") if noise_std is None else real_number("noise_std", noise_std)
    wrong = 0.1 if label_noise is None else real_number("label_noise", label_noise, maximum=1.0)
    filled = real_number("density", density, strict=True, maximum=1.0)
    generator = np.random.default_rng(seed)
    W = np.zeros((d, m))
    for k in range(m):
        W[generator.choice(d, size=count, replace=False), k] = generator.standard_normal(count)

    def draw(stream: np.random.Generator, size: int) -> tuple[Matrix, Array]:
        X = _design(stream, size, d, filled)
        Y = np.asarray(X @ W)
        if std > 0.0:
            Y = Y + std * stream.standard_normal(Y.shape)
        if kind == "labels":
            Y = signs_of(Y)
            for column in Y.T:
                column[some_rows(stream, size, wrong)] *= -1.0
        elif kind == "classes":
            classes, others = Y.argmax(axis=1), some_rows(stream, size, wrong)
            classes[others] = (classes[others] + stream.integers(1, m, size=len(others))) % m
            Y = np.where(classes[:, None] == np.arange(m), 1.0, -1.0)
        return X, Y

    return drawn(draw, generator if split == "train" else stream_of(seed, TEST), (n, n_held_out, seed), "synthetic_glm", W)


def _design(generator: np.random.Generator, n: int, d: int, density: float) -> Matrix:
    if density == 1.0:
        return generator.standard_normal((n, d))
    count = round(density * n * d)
    places = np.sort(generator.choice(n * d, size=count, replace=False, shuffle=False))
    return sp.csr_array((generator.standard_normal(count), np.divmod(places, d)), shape=(n, d))


def synthetic_l1inf(
    *, tasks: int = 60, features: int = 200, examples: int = 40, relevant: float = 0.1, seed: int = 0, split: str = "train"
) -> TaskData:
    """Classification tasks that share a set of relevant features; each task has its own design.

    W (d x m) has entries N(0, 1). A set V of round(relevant d) features (at least one) is relevant to all tasks; task k
    keeps the entries of w_k in a random subset of V whose size is uniform in {ceil(|V|/2), ..., |V|}, the others are
    zero. Examples have entries N(0, 1), then unit norm; labels are y = sign(w_k . x), where 0 counts as +1.

    Parameters
    ----------
    tasks, features, examples : m, d and n (a task), each at least 1.
    relevant : the share of features in V, in (0, 1].
    seed, split : as for `synthetic_glm`.

    Returns
    -------
    TaskData : per-task designs X_k (n x d), labels -1/+1 and ``truth={"W": W}``.

    Raises
    ------
    InputError : a size below 1, a share outside (0, 1], a negative seed, an unknown split.

    Notes
    -----
    Quattoni, Carreras, Collins and Darrell, "An efficient projection for l1,inf regularization", ICML 2009, section 5.
    """
    m, d, n = sizes(tasks=tasks, features=features, examples=examples)
    kept = real_number("relevant", relevant, strict=True, maximum=1.0)
    seed = whole_number("seed", seed)
    one_of("split", split, SPLITS)
    generator = np.random.default_rng(seed)
    W = _jointly_sparse(generator, d, m, max(1, round(kept * d)))
    if split == "test":
        generator = stream_of(seed, TEST)
    designs = [generator.standard_normal((n, d)) for _ in range(m)]
    designs = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in designs]
    labels = [signs_of(X @ W[:, k]) for k, X in enumerate(designs)]
    return TaskData.per_task(designs, labels, name="synthetic_l1inf", truth={"W": frozen(W)})


def _jointly_sparse(generator: np.random.Generator, d: int, m: int, n_relevant: int) -> Array:
    """Return a Gaussian d x m matrix, zero outside each column's own subset of `n_relevant` common rows."""
    entries = generator.standard_normal((d, m))
    common = generator.choice(d, size=n_relevant, replace=False)
    W = np.zeros((d, m))
    for k in range(m):
        size = int(generator.integers(max(1, math.ceil(n_relevant / 2)), n_relevant + 1))
        chosen = generator.choice(common, size=size, replace=False)
        W[chosen, k] = entries[chosen, k]
    return W


def synthetic_sparse_low_rank(
    *, tasks: int = 30, features: int = 100, examples: int = 60, rank: int = 10, zero_features: int = 30, zero_tasks: int = 10,
    sparse_std: float = 1.0, low_rank_std: float = 1.0, noise_std: float = 1.0, design_std: float = 1.0, shared: bool = False,
    seed: int = 0,
) -> TaskData:  # fmt: skip
    """Regression tasks whose coefficients are a sparse matrix P plus a matrix Q of low rank.

    y_k = X_k (p_k + q_k) + noise. P (d x m) is Gaussian, with its first `zero_features` rows and its first `zero_tasks`
    columns zero; Q is Gaussian, with all but its `rank` largest singular values zero; designs and noise are Gaussian.

    Parameters
    ----------
    tasks, features, examples : m, d and n (a task), each at least 1.
    rank : of Q, at most min(d, m).
    zero_features, zero_tasks : rows and columns of P that are zero.
    sparse_std, low_rank_std, noise_std, design_std : standard deviations of P, Q (before truncation), noise and designs.
    shared : one design for all tasks instead of one each.
    seed : as for `synthetic_glm`.

    Returns
    -------
    TaskData : real targets and ``truth={"P": P, "Q": Q}``.

    Raises
    ------
    InputError : a size out of its range, a negative deviation (or zero for the designs), a negative seed.

    Notes
    -----
    Chen, Liu and Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012,
    section 7.1, whose matrices are tasks x features, so that its zero rows are tasks. The text available to us has lost
    the variances; the unit deviations here are a choice of this package, not the paper's.
    """
    m, d, n = sizes(tasks=tasks, features=features, examples=examples)
    whole_number("rank", rank, maximum=min(d, m), why=", the smaller number of features and tasks")
    whole_number("zero_features", zero_features, maximum=d, why=", the number of features")
    whole_number("zero_tasks", zero_tasks, maximum=m, why=", the number of tasks")
    sparse, low_rank = real_number("sparse_std", sparse_std), real_number("low_rank_std", low_rank_std)
    noisy, spread = real_number("noise_std", noise_std), real_number("design_std", design_std, strict=True)
    true_or_false("shared", shared)
    generator = np.random.default_rng(whole_number("seed", seed))
    P = sparse * generator.standard_normal((d, m))
    P[:zero_features, :] = 0.0
    P[:, :zero_tasks] = 0.0
    U, s, Vt = np.linalg.svd(low_rank * generator.standard_normal((d, m)), full_matrices=False)
    Q = np.asarray((U[:, :rank] * s[:rank]) @ Vt[:rank])
    designs = [spread * generator.standard_normal((n, d)) for _ in range(1 if shared else m)]
    noise = noisy * generator.standard_normal((m, n))
    truth = {"P": frozen(P), "Q": frozen(Q)}
    if shared:
        return TaskData.shared(designs[0], designs[0] @ (P + Q) + noise.T, name="synthetic_sparse_low_rank", truth=truth)
    targets = [X @ (P[:, k] + Q[:, k]) + noise[k] for k, X in enumerate(designs)]
    return TaskData.per_task(designs, targets, name="synthetic_sparse_low_rank", truth=truth)


def synthetic_multiclass(
    *, examples: int = 1000, held_out: int = 0, classes: int = 10, features: int = 50, relevant: int = 10, strength: float = 1.0,
    noise: float = 1.0, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Classes that share the features that tell them apart, for learners that share features.

    A set S of `relevant` of the d features, drawn at random, is relevant to all classes alike. Class r has a random code
    c_r in {-1, +1}^S, different from those of the other classes. An example of class y is

        x_j = strength c_yj + noise N(0, 1)   for j in S,        x_j = noise N(0, 1)   elsewhere.

    Classes are as frequent as each other, up to one example, so that each occurs where there are as many examples as classes.

    Parameters
    ----------
    examples : n, over all classes; at least `classes`.
    classes, features, relevant : K >= 2, d and the size of S, at most d and at least log2 K.
    strength, noise : at least 0.
    seed, held_out : as for `synthetic_glm`.

    Returns
    -------
    TaskData : a shared dense design, one-against-all targets -1/+1 (n x K), ``truth={"W": W}`` with W_jr = c_rj on S and 0
        elsewhere: the class of largest x . w_r is the most likely one.

    Raises
    ------
    InputError : a size out of its range, fewer examples than classes, more classes than codes.
    """
    n, d, size = sizes(examples=examples, features=features, relevant=relevant)
    K, n_held_out, seed = whole_number("classes", classes, minimum=2), whole_number("held_out", held_out), whole_number("seed", seed)
    whole_number("examples", n, minimum=K, why=", so that every class has one")
    whole_number("relevant", size, maximum=d, why=", the number of features")
    if size < _LONGEST and 2**size < K:
        raise InputError("classes", K, f"at most {2**size}, the number of different codes over {size} relevant features")
    scale, spread = real_number("strength", strength), real_number("noise", noise)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(d, size=size, replace=False))
    short = min(size, _LONGEST)  # of longer codes the beginnings differ
    bits = (generator.choice(2**short, size=K, replace=False)[:, None] >> np.arange(short)) & 1
    W = np.zeros((d, K))
    W[chosen] = np.hstack([2.0 * bits - 1.0, 2.0 * generator.integers(0, 2, size=(K, size - short)) - 1.0]).T
    means = scale * W.T

    def draw(stream: np.random.Generator, count: int) -> tuple[Array, Array]:
        labels = stream.permutation(np.arange(count) % K)
        X = stream.standard_normal((count, d))
        X *= spread
        X += means[labels]
        return X, np.where(labels[:, None] == np.arange(K), 1.0, -1.0)

    return drawn(draw, generator, (n, n_held_out, seed), "synthetic_multiclass", W)
