"""Regression tasks whose coefficients are sparse plus of low rank."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.checks import real_number, true_or_false, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.task_data import TaskData


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
    seed : of the generator; the same seed gives the same tasks.

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
    m, d = whole_number("tasks", tasks, minimum=1), whole_number("features", features, minimum=1)
    n = whole_number("examples", examples, minimum=1)
    rank = _at_most("rank", rank, min(d, m), "min(features, tasks)")
    zero_features = _at_most("zero_features", zero_features, d, "features")
    zero_tasks = _at_most("zero_tasks", zero_tasks, m, "tasks")
    deviations = {"sparse_std": sparse_std, "low_rank_std": low_rank_std, "noise_std": noise_std}
    deviations = {name: real_number(name, value) for name, value in deviations.items()}
    design_std = real_number("design_std", design_std, strict=True)
    true_or_false("shared", shared)
    generator = np.random.default_rng(whole_number("seed", seed))

    P = deviations["sparse_std"] * generator.standard_normal((d, m))
    P[:zero_features, :] = 0.0
    P[:, :zero_tasks] = 0.0
    Q = _truncated(deviations["low_rank_std"] * generator.standard_normal((d, m)), rank)
    designs = [design_std * generator.standard_normal((n, d)) for _ in range(1 if shared else m)]
    noise = deviations["noise_std"] * generator.standard_normal((m, n))

    truth = {"P": frozen(P), "Q": frozen(Q)}
    if shared:
        return TaskData.shared(designs[0], designs[0] @ (P + Q) + noise.T, name="synthetic_sparse_low_rank", truth=truth)
    targets = [X @ (P[:, k] + Q[:, k]) + noise[k] for k, X in enumerate(designs)]
    return TaskData.per_task(designs, targets, name="synthetic_sparse_low_rank", truth=truth)


def _truncated(A: Array, rank: int) -> Array:
    """Return the best approximation of A of rank `rank`."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray((U[:, :rank] * s[:rank]) @ Vt[:rank])


def _at_most(name: str, value: int, maximum: int, limit: str) -> int:
    number = whole_number(name, value)
    if number > maximum:
        raise InputError(f"{name} must be at most {limit} = {maximum}, not {number}")
    return number
