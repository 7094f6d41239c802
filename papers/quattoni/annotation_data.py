"""Images and words of the annotation experiment: which words are tasks, how images are described, which ones a model learns from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl import InputError, is_sparse
from bench_mtl.core.designs import dense
from bench_mtl.data import TaskData, load, preprocess, resolved
from papers import Array, Mask

WORDS = 40
#: Every fourth word in the order of frequency is for validation: ten of forty, frequent and rare alike.
VALIDATION_EVERY = 4
#: One in this number of training images is kept for validation, drawn once.
_VALIDATION_SHARE, _VALIDATION_SEED = 10, 0
#: Columns to drop from the end: the last feature of Corel5k is 1 in nearly all test images and in few others, an artefact of their making.
_ARTEFACTS: Mapping[str, int] = {"corel5k": 1}


@dataclass(frozen=True)
class Part:
    """Some of the images."""

    features: Array  # n x d
    has_word: Mask  # n x words


@dataclass(frozen=True)
class Images:
    """A collection with its tasks."""

    words: tuple[str, ...]  # the most frequent first, by the training part
    training: Part
    validation: Part
    test: Part

    @property
    def validation_words(self) -> NDArray[np.intp]:
        """Numbers of the words that choose C."""
        return np.arange(VALIDATION_EVERY - 1, len(self.words), VALIDATION_EVERY)

    @property
    def judged_words(self) -> NDArray[np.intp]:
        """Numbers of the others, which are judged."""
        return np.setdiff1d(np.arange(len(self.words)), self.validation_words)


def spec(name: str) -> dict[str, Any]:
    """Return what `load` is asked for."""
    return {"name": name, "split": "train", "held_out": True}


@cache
def images_of(name: str, data_dir: Path | None) -> Images:
    """Return the images of a file of the data directory.

    The `WORDS` words most frequent in the training part are the tasks (ties go to the earlier column). A tenth of the training part is set
    aside for validation. Every image is scaled to length 1, and written in the basis of the right singular vectors of the training images,
    all of them: the paper's "new basis of the image space". Scores are U S, as a projection gives them, so that every feature has the
    weight that it has in the images. At last all are multiplied by one number, with which the mean square of all features of all training
    images is 1: a coefficient of 1 then moves a margin by about 1, and C = 0.1 to 100 spans models from a few features to all of them.
    Raises InputError: the file is missing, or has no names of labels, or fewer labels than are wanted.
    """
    asked = spec(name)
    names = label_names(asked, data_dir)
    data = load(asked, data_dir=data_dir)
    assert data.held_out is not None
    kept = data.n_features - _ARTEFACTS.get(name, 0)
    if len(names) < WORDS:
        raise InputError(f"data '{name}' has {len(names)} labels, but {WORDS} are wanted")
    counts = (data.targets > 0.0).sum(axis=0)
    chosen = np.argsort(-counts, kind="stable")[:WORDS]
    order = np.random.default_rng(_VALIDATION_SEED).permutation(data.design.sizes[0])
    aside, used = np.split(order, [len(order) // _VALIDATION_SHARE])
    X, test = (part.design.block(0)[:, :kept] for part in (data, data.held_out))
    training = TaskData.shared(X[used], data.targets[used][:, chosen])
    stacked = sp.vstack([X[aside], test], format="csr") if is_sparse(X) else np.concatenate([X[aside], test])
    others = TaskData.shared(stacked, np.concatenate([data.targets[aside], data.held_out.targets])[:, chosen])
    of_one_length = preprocess(training.with_held_out(others), ["unit_rows"])
    rows = of_one_length.design.block(0)
    rotated = preprocess(of_one_length, [f"svd:{np.linalg.matrix_rank(dense(rows))}"])
    assert rotated.held_out is not None
    scale = 1.0 / float(np.sqrt(np.mean(np.square(rotated.design.block(0)))))
    features, scores = (scale * np.asarray(part.design.block(0)) for part in (rotated, rotated.held_out))
    has_word = rotated.held_out.targets > 0.0
    validation, judged = (Part(scores[own], has_word[own]) for own in (slice(len(aside)), slice(len(aside), None)))
    return Images(tuple(names[k] for k in chosen), Part(features, rotated.targets > 0.0), validation, judged)


def label_names(asked: Mapping[str, Any], data_dir: Path | None) -> list[str]:
    """Return the names of the labels of a file of the data directory. Raises InputError: the file is missing, or has none."""
    _, (path,) = resolved(asked, data_dir)
    with np.load(path, allow_pickle=False) as file:
        if "label_names" not in file.files:
            raise InputError(f"{path} has no names of its labels (array label_names)")
        return [str(name) for name in file["label_names"]]


def training_rows(has_word: Mask, positives: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """For every word the images of its training set: `positives` with it, and twice as many without it.

    Where there are fewer images all that keep the proportion are taken, as the 63,408 samples of the paper's largest set (a multiple of
    3, and not 76,800) suggest. Draws are by word and seed, and a larger set has the smaller one's images in it.
    """
    for k, column in enumerate(has_word.T):
        generator = np.random.default_rng([seed, k])
        with_word, without = (generator.permutation(np.flatnonzero(chosen)) for chosen in (column, ~column))
        count = min(positives, len(with_word), len(without) // 2)
        yield np.concatenate([with_word[:count], without[: 2 * count]])


def training_sets(part: Part, positives: int, seed: int) -> tuple[Sequence[Array], Sequence[Array]]:
    """Return features and labels (-1/+1) of every word's training set."""
    rows = list(training_rows(part.has_word, positives, seed))
    labels = [np.where(part.has_word[own, k], 1.0, -1.0) for k, own in enumerate(rows)]
    return [part.features[own] for own in rows], labels
