"""The step perceptron_kernel: kernel features on the support points of a multiclass perceptron."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.preprocess.steps import Fitted, Step, is_count, labels_of_classes
from bench_mtl.model.task_data import TaskData

FORM = "perceptron_kernel, perceptron_kernel:S or perceptron_kernel:S:WIDTH"
_RULES = ("mean", "median")
_SEED = 0
_BLOCK = 500
_MEDIAN_ROWS = 1000


def perceptron_kernel(name: str) -> Step:
    """Return the step of that name.

    ::

        K(x, x') = exp(-||x - x'||^2 / width)

    A multiclass perceptron passes once over the training rows, in the order of ``default_rng(0).permutation(n)``. It scores a class j
    of an example x by sum_{i in S} a_ij K(x_i, x); where the score of the right class is not the largest (ties are mistakes, so that
    the first example is one), the example joins the support set S, with a = +1 for its class and -1 for the first class of largest
    score among the others. It ends when S has as many points as asked for, if that comes first. Feature i of an example x is then
    K(x_i, x), in the order in which the points x_i joined; the design is dense. `orientation` (|S| x m) is sigma_ij = +1 where x_i
    is of class j, else -1.

    Arguments, after colons: S, the largest number of support points (``all`` for no limit, the default); and the width, a number
    above 0 in units of squared distance, or ``mean`` (the default) or ``median``: that of the squared distances of pairs of
    different training rows, for the median those of at most 1000 rows, evenly spaced.

    Raises
    ------
    InputError : other arguments, a design for each task, not exactly one label +1 in every row of the targets, fewer than two
        classes, rows that are all the same (or for the median half of all pairs).

    References
    ----------
    Singer's slides (MMDS 2008), "Results for MNIST Data", which do not say the kernel's width, the perceptron's order or its passes.
    K. Crammer and Y. Singer, "Ultraconservative online algorithms for multiclass problems", JMLR 3, 2003 (its additive updates).
    """
    arguments = name.split(":")[1:]
    limit, width = (arguments + ["all", "mean"][len(arguments) :])[:2]
    if len(arguments) > 2 or not (limit == "all" or (is_count(limit) and int(limit) > 0)) or not _is_width(width):
        raise InputError(
            f"preprocessing step '{name}' must be {FORM}: S a whole number of at least 1 or all, WIDTH mean, median or a number above 0"
        )
    largest = None if limit == "all" else int(limit)
    return lambda data, X: _fitted(data, X, name, largest, width)


def _is_width(text: str) -> bool:
    if text in _RULES:
        return True
    try:
        return 0.0 < float(text) < float("inf")
    except ValueError:
        return False


def _fitted(data: TaskData, X: Matrix, name: str, largest: int | None, rule: str) -> Fitted:
    labels = labels_of_classes(data, name)
    width = _width(X, rule)
    if not width > 0.0:
        raise InputError(f"preprocessing step '{name}': the {rule} squared distance of rows is 0: give a width above 0")
    order = np.random.default_rng(_SEED).permutation(len(labels))
    support = _support(X, labels.argmax(axis=1), labels.shape[1], order, 1.0 / width, largest)
    points = X[support]
    note = (
        f"Features were replaced by Gaussian kernels, of width {width:g} in squared distance, on the {len(support)} of {len(labels)} "
        "examples that are support points of a multiclass perceptron."
    )
    return Fitted(lambda rows: _kernel(rows, points, 1.0 / width), note, keeps_features=False, orientation=frozen(labels[support]))


def _width(X: Matrix, rule: str) -> float:
    if rule not in _RULES:
        return float(rule)
    if X.shape[0] == 1:
        return 0.0
    if rule == "mean":
        n = X.shape[0]
        if not isinstance(X, sp.csr_array):
            return 2.0 * n / (n - 1) * float(X.var(axis=0).sum())
        squares = np.asarray(X.multiply(X).sum(axis=0), dtype=np.float64)  # the means of sparse data are small, and cancel little
        variances = squares / n - np.square(np.asarray(X.sum(axis=0), dtype=np.float64) / n)
        return 2.0 * n / (n - 1) * float(np.maximum(variances, 0.0).sum())
    from sklearn.metrics.pairwise import euclidean_distances

    rows = X[np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MEDIAN_ROWS)).round().astype(np.intp))]
    distances = euclidean_distances(rows, squared=True)
    return float(np.median(distances[np.triu_indices_from(distances, k=1)]))


def _support(X: Matrix, classes: NDArray[np.intp], m: int, order: NDArray[np.intp], gamma: float, largest: int | None) -> NDArray[np.intp]:
    """Return the rows on which the perceptron errs, in that order. Kernels are computed for blocks of rows at once."""
    support: list[int] = []
    weights: list[Array] = []
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        rows = X[block]
        scores = _kernel(rows, X[support], gamma) @ np.array(weights) if support else np.zeros((len(block), m))
        among = _kernel(rows, rows, gamma)
        for i, row in enumerate(block):
            right = classes[row]
            others = np.where(np.arange(m) == right, -np.inf, scores[i])
            rival = int(others.argmax())
            if scores[i, right] > others[rival]:
                continue
            update = np.zeros(m)
            update[[right, rival]] = 1.0, -1.0
            scores += among[:, i, None] * update
            support.append(int(row))
            weights.append(update)
            if len(support) == largest:
                return np.array(support)
    return np.array(support)


def _kernel(X: Matrix, points: Matrix, gamma: float) -> Array:
    from sklearn.metrics.pairwise import rbf_kernel

    return np.asarray(rbf_kernel(X, points, gamma=gamma))  # dense, of sparse rows too
