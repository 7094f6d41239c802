"""The steps: fitted on the training examples, and applied to them and to the held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import is_number, naming
from bench_mtl.model.task_data import TaskData, signs
from bench_mtl.weak_learners import WeakLearners, draw_stumps, grow_trees

SVD = "svd:K"
STUMPS = "stumps:J or stumps:J:SEED"
TREES = "trees:J:DEPTH or trees:J:DEPTH:SEED"
KERNEL = "perceptron_kernel, perceptron_kernel:S or perceptron_kernel:S:WIDTH"
#: Up to so many rows or features the singular value decomposition is of all of them.
_SMALL_SVD = 1000
#: Of the kernel: rules for its width, the seed of the order, rows whose kernels are computed at once, and rows for a median.
_RULES, _SEED, _BLOCK, _MEDIAN_ROWS = ("mean", "median"), 0, 500, 1000


class Fitted(NamedTuple):
    """A step with the statistics of the training rows."""

    transform: Callable[[Matrix], Matrix]
    """Rows to transformed rows."""
    note: str
    """A sentence that says what was done."""
    keeps_signs: bool = False
    """Whether sign(x . w) stays the same for every row x and every w."""
    keeps_features: bool = True
    """Whether feature j is still that feature, so that `TaskData.orientation` still belongs to it."""
    orientation: Array | None = None
    """Signs for the new features, where the step makes them."""


Step = Callable[[TaskData, Matrix], Fitted]
"""Data and their pooled rows (those of all tasks; those of a shared design once) to a fitted step."""


def is_count(text: str) -> bool:
    """Return whether an argument of a step is a whole number of at least 0."""
    return text.isascii() and text.isdigit()


def whole_numbers(name: str, form: str, minima: tuple[int, ...], optional: tuple[int, ...] = ()) -> list[int]:
    """Return the whole numbers after a step's name, those left out at the end filled up; InputError for any other arguments."""
    parts = name.split(":")[1:]
    missing = len(minima) - len(parts)
    if 0 <= missing <= len(optional) and all(map(is_count, parts)):
        numbers = [int(part) for part in parts] + list(optional[len(optional) - missing :])
        if all(number >= minimum for number, minimum in zip(numbers, minima, strict=True)):
            return numbers
    raise InputError(f"preprocessing step '{name}' must be {form}, with whole numbers of at least 1{' (SEED: 0)' if optional else ''}")


def labels_of_classes(data: TaskData, name: str) -> Array:
    """Return the targets, n x m, -1 but for one +1 in each row, for a step of that name."""
    if not data.design.is_shared:
        raise InputError(f"preprocessing step '{name}' needs classes over one design, but these tasks have designs of their own")
    if data.n_tasks < 2:
        raise InputError(f"preprocessing step '{name}' needs at least 2 classes, but there is 1 task")
    labels, _ = signs(data.targets)
    counts = np.count_nonzero(labels == 1.0, axis=1)
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        raise InputError(f"preprocessing step '{name}' needs classes, exactly one label +1 a row, but row {row} has {counts[row]}")
    return labels


def unit_rows(data: TaskData, X: Matrix) -> Fitted:
    """Divide every row by its Euclidean length; zero rows stay as they are."""
    empty = int(np.count_nonzero(_largest(X) == 0.0))
    note = "Every row was scaled to unit length" + (f"; {empty} zero row(s) stayed zero." if empty else ".")
    return Fitted(_unit, note, keeps_signs=True)


def standardise(data: TaskData, X: Matrix) -> Fitted:
    """Scale every feature to mean 0 (unless sparse) and standard deviation 1."""
    from sklearn.preprocessing import StandardScaler

    sparse = isinstance(X, sp.csr_array)
    scaler = StandardScaler(with_mean=not sparse).fit(X)
    constant = _vector(X.max(axis=0)) == _vector(X.min(axis=0))
    count, nearly = int(np.count_nonzero(constant)), int(np.count_nonzero(~constant & (scaler.scale_ == 1.0) & (scaler.var_ < 0.5)))

    def transform(rows: Matrix) -> Matrix:
        scaled = scaler.transform(rows)
        if sparse:
            return sp.csr_array(scaled)
        scaled[:, constant] = 0.0  # subtracting a rounded mean leaves rounding errors
        return np.asarray(scaled)

    if sparse:
        how, constants = "scaled to unit standard deviation, and not centred, so that they stay sparse", "stayed as they are"
    else:
        how, constants = "standardised to mean 0 and standard deviation 1", "became 0"
    stayed = f"; {nearly} that vary by rounding alone were not scaled" if nearly else ""
    return Fitted(transform, f"Features were {how}" + (f"; {count} constant feature(s) {constants}" if count else "") + f"{stayed}.")


def tfidf(data: TaskData, X: Matrix) -> Fitted:
    """Counts times inverse document frequencies."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(norm=None).fit(_counts(X))

    def transform(rows: Matrix) -> Matrix:
        weighted = sp.csr_array(weights.transform(_counts(rows)))
        return weighted if isinstance(rows, sp.csr_array) else weighted.toarray()

    return Fitted(transform, "Counts were weighted by inverse document frequency (smoothed; rows were not normalised).")


def _counts(X: Matrix) -> sp.csr_array:
    values = np.asarray(X.data if isinstance(X, sp.csr_array) else X)
    if values.size and values.min() < 0.0:
        raise InputError(f"preprocessing step 'tfidf' needs counts of at least 0, but X has {values.min():g}")
    counts = sp.csr_array(X, copy=True)
    counts.eliminate_zeros()  # a stored zero would count as a row with the word
    return counts


def _unit(X: Matrix) -> Matrix:
    # By the largest entry first: squares of very large or very small entries would overflow or vanish.
    scaled = _rows_divided(X, _largest(X))
    squares = scaled.multiply(scaled) if isinstance(scaled, sp.csr_array) else np.square(scaled)
    return _rows_divided(scaled, np.sqrt(_vector(squares.sum(axis=1))))


def _largest(X: Matrix) -> Array:
    """Return the largest absolute value of every row."""
    return _vector(abs(X).max(axis=1) if isinstance(X, sp.csr_array) else np.abs(X).max(axis=1))


def _rows_divided(X: Matrix, lengths: Array) -> Matrix:
    """Divide every row by its length; rows of length 0 stay as they are."""
    divisors = np.where(lengths == 0.0, 1.0, lengths)
    if not isinstance(X, sp.csr_array):
        return np.asarray(X / divisors[:, None])
    return sp.csr_array((X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def _vector(values: Any) -> Array:
    """Return a row or column, perhaps sparse, as a vector."""
    return np.asarray(values.toarray() if isinstance(values, sp.coo_array) else values, dtype=np.float64).ravel()


def svd(name: str) -> Step:
    """Return the step of that name; InputError where K is missing, or no whole number of at least 1."""
    (k,) = whole_numbers(name, SVD, (1,))
    return lambda data, X: _basis(X, k)


def _basis(X: Matrix, k: int) -> Fitted:
    smaller = min(X.shape)
    if k > smaller:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most min(rows, features) = {smaller}")
    directions, rank = _right_singular(X, k)
    if rank < k:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most the rank of the data, {rank}")
    note = f"Features were replaced by their {k} leading singular directions (uncentred), of {X.shape[1]}."
    return Fitted(lambda rows: np.asarray(rows @ directions.T), note, keeps_features=False)


def _right_singular(X: Matrix, k: int) -> tuple[Array, int]:
    """Return the k leading right singular vectors as rows, and how many of them belong to non-zero singular values.

    Each vector's entry of largest size is positive, so that the result does not depend on the algorithm's choice.
    """
    import scipy.sparse.linalg as spla

    smaller = min(X.shape)
    largest_entry = float(np.abs(X.data if isinstance(X, sp.csr_array) else X).max(initial=0.0))
    if largest_entry == 0.0:
        return np.zeros((k, X.shape[1])), 0
    if smaller <= _SMALL_SVD or k == smaller:
        _, s, Vt = np.linalg.svd(X.toarray() if isinstance(X, sp.csr_array) else X, full_matrices=False)
        negligible = float(s[0]) * max(X.shape) * np.finfo(np.float64).eps
    else:
        _, s, Vt = spla.svds(X / largest_entry, k=k, v0=np.ones(smaller))
        s, Vt = s[::-1], Vt[::-1]
        # This method squares the matrix, so smaller singular values than this are rounding.
        negligible = float(s[0]) * np.sqrt(max(X.shape) * np.finfo(np.float64).eps)
    Vt = Vt[:k]
    signs = np.sign(Vt[np.arange(k), np.argmax(np.abs(Vt), axis=1)])
    return Vt * signs[:, None], int(np.count_nonzero(s[:k] > negligible))


def stumps(name: str) -> Step:
    """Return the step of that name: J stumps drawn at random from all on the training rows (`draw_stumps`), with outputs -1 and +1.

    Raises InputError: J is no whole number of at least 1, SEED none of at least 0; later, rows without two different values of a feature.
    """
    J, seed = whole_numbers(name, STUMPS, (1, 0), optional=(0,))

    def fit(data: TaskData, X: Matrix) -> Fitted:
        with naming(f"preprocessing step '{name}'"):
            learners = draw_stumps(X, J, seed)
        return _outputs(learners, f"decision stumps drawn with seed {seed}", J)

    return fit


def trees(name: str) -> Step:
    """The step of that name: J trees of at most DEPTH, grown on random partitions of the classes (`grow_trees`), with outputs -1 and +1.

    Raises InputError: J or DEPTH is no whole number of at least 1, SEED none of at least 0; later, a design for each task, fewer than two
    classes (also among the training rows), not exactly one label +1 a row, rows without two different values of a feature.
    """
    J, depth, seed = whole_numbers(name, TREES, (1, 1, 0), optional=(0,))

    def fit(data: TaskData, X: Matrix) -> Fitted:
        labels = labels_of_classes(data, name)
        with naming(f"preprocessing step '{name}'"):
            learners = grow_trees(X, labels.argmax(axis=1), J, depth, seed)
        return _outputs(learners, f"trees of depth {depth} at most, grown on random partitions of the classes with seed {seed}", J)

    return fit


def _outputs(learners: WeakLearners, what: str, wanted: int) -> Fitted:
    missing = "" if len(learners) == wanted else f" There are no more; {wanted} were asked for."
    return Fitted(learners.outputs, f"Features were replaced by the outputs of {len(learners)} {what}.{missing}", keeps_features=False)


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
    is_width = width in _RULES or (is_number(width) and 0.0 < float(width) < float("inf"))
    if len(arguments) > 2 or not (limit == "all" or (is_count(limit) and int(limit) > 0)) or not is_width:
        how = "S a whole number of at least 1 or all, WIDTH mean, median or a number above 0"
        raise InputError(f"preprocessing step '{name}' must be {KERNEL}: {how}")
    largest = None if limit == "all" else int(limit)
    return lambda data, X: _kernels(data, X, name, largest, width)


def _kernels(data: TaskData, X: Matrix, name: str, largest: int | None, rule: str) -> Fitted:
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
