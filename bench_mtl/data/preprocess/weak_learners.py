"""The steps stumps and trees: the outputs of weak learners as features."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Matrix
from bench_mtl.data.preprocess.step import Fitted, Step, labels_of_classes, whole_numbers
from bench_mtl.model.task_data import TaskData
from bench_mtl.weak_learners import WeakLearners, draw_stumps, grow_trees

STUMPS = "stumps:J or stumps:J:SEED"
TREES = "trees:J:DEPTH or trees:J:DEPTH:SEED"


def stumps(name: str) -> Step:
    """Return the step of that name: J stumps drawn at random from all on the training rows (`draw_stumps`), with outputs -1 and +1.

    Raises
    ------
    InputError : J is no whole number of at least 1, SEED none of at least 0; later, rows without two different values of a feature.
    """
    J, seed = whole_numbers(name, STUMPS, (1, 0), optional=(0,))

    def fit(data: TaskData, X: Matrix) -> Fitted:
        with _naming(name):
            learners = draw_stumps(X, J, seed)
        return _fitted(learners, f"decision stumps drawn with seed {seed}", J)

    return fit


def trees(name: str) -> Step:
    """The step of that name: J trees of at most DEPTH, grown on random partitions of the classes (`grow_trees`), with outputs -1 and +1.

    Raises
    ------
    InputError : J or DEPTH is no whole number of at least 1, SEED none of at least 0; later, a design for each task, fewer than two
        classes (also among the training rows), not exactly one label +1 a row, rows without two different values of a feature.
    """
    J, depth, seed = whole_numbers(name, TREES, (1, 1, 0), optional=(0,))

    def fit(data: TaskData, X: Matrix) -> Fitted:
        labels = labels_of_classes(data, name)
        with _naming(name):
            learners = grow_trees(X, labels.argmax(axis=1), J, depth, seed)
        return _fitted(learners, f"trees of depth {depth} at most, grown on random partitions of the classes with seed {seed}", J)

    return fit


def _fitted(learners: WeakLearners, what: str, wanted: int) -> Fitted:
    missing = "" if len(learners) == wanted else f" There are no more; {wanted} were asked for."
    return Fitted(learners.outputs, f"Features were replaced by the outputs of {len(learners)} {what}.{missing}", keeps_features=False)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"preprocessing step '{name}': {error}") from None
