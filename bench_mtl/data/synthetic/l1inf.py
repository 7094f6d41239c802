"""Classification tasks with jointly sparse coefficients."""

from __future__ import annotations

import math

import numpy as np

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Array
from bench_mtl.data.synthetic.common import share_of, test_stream
from bench_mtl.model.task_data import TaskData


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
    seed : of the generator; the same seed gives the same tasks.
    split : ``"train"``, or ``"test"`` for other examples of the same W, drawn from an independent stream.

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
    m, d = whole_number("tasks", tasks, minimum=1), whole_number("features", features, minimum=1)
    n = whole_number("examples", examples, minimum=1)
    kept = share_of("relevant", relevant, "relevant features")
    seed = whole_number("seed", seed)
    one_of("split", split, ("train", "test"))
    generator = np.random.default_rng(seed)
    W = _jointly_sparse(generator, d, m, max(1, round(kept * d)))
    if split == "test":
        generator = test_stream(seed)
    designs = [_unit_rows(generator.standard_normal((n, d))) for _ in range(m)]
    labels = [np.where(X @ W[:, k] >= 0.0, 1.0, -1.0) for k, X in enumerate(designs)]
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


def _unit_rows(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
