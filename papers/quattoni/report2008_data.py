"""Images and topics of the report of 2008: its partition into four sets, and features from the images that have no labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl import InputError
from bench_mtl.core.designs import dense
from bench_mtl.data import TaskData, load, preprocess
from papers import Array
from papers.quattoni.annotation_data import Images, Part, label_names

#: The file in the place of the report's images. (Corel5k has too few of a word: 18 of its words have 80 images in such a training part.)
DATA = "corel16k001"
TOPICS = 40
#: Images of the collection, and of the report's four sets. Ours are the same shares of all.
IMAGES = 13_766
SETS: Mapping[str, int] = {"basis": 5000, "validation": 5000, "training": 10589, "test": 5000}
_SEED = 0
#: Features: coordinates in the basis that the images without labels give, as in the report, or the visual words themselves.
SVD, WORDS = "svd", "words"


def spec() -> dict[str, Any]:
    """Return what `load` is asked for: all images, whatever split the file has."""
    return {"name": DATA}


def sizes(count: int) -> dict[str, int]:
    """Return how many images each of `SETS` has."""
    all_of_them = sum(SETS.values())
    ends = [end * count // all_of_them for end in accumulate(SETS.values(), initial=0)]
    return {name: after - before for name, (before, after) in zip(SETS, pairwise(ends), strict=True)}


def partition(count: int) -> dict[str, NDArray[np.intp]]:
    """Return the images of each of `SETS`, by their numbers: drawn once, in the report's shares of all."""
    ends = np.cumsum(list(sizes(count).values()))[:-1]
    parts = np.split(np.random.default_rng(_SEED).permutation(count), ends)
    return {name: np.sort(part) for name, part in zip(SETS, parts, strict=True)}


@cache
def images_of(features: str, data_dir: Path | None) -> Images:
    """Return the images of the three labelled sets with the topics as tasks.

    The topics are the `TOPICS` words most frequent in the training set (ties go to the earlier column).

    Features: `SVD`, coordinates X V in the right singular vectors V of the images of the set `basis`, uncentred and unscaled; or `WORDS`.
    Raises InputError: the file is missing, or has no names of labels, or fewer labels than are wanted.
    """
    names = label_names(spec(), data_dir)
    data = load(spec(), data_dir=data_dir)
    if len(names) < TOPICS:
        raise InputError(f"data '{DATA}' has {len(names)} labels, but {TOPICS} are wanted")
    rows = partition(data.design.sizes[0])
    has_word = data.targets > 0.0
    chosen = np.argsort(-has_word[rows["training"]].sum(axis=0), kind="stable")[:TOPICS]
    described = _in_basis(data, rows["basis"]) if features == SVD else dense(data.design.block(0))
    parts = {name: Part(described[own], has_word[np.ix_(own, chosen)]) for name, own in rows.items()}
    return Images(tuple(names[k] for k in chosen), parts["training"], parts["validation"], parts["test"])


def _in_basis(data: TaskData, basis: NDArray[np.intp]) -> Array:
    """Return all images in the basis of the right singular vectors of some of them, as many as these have rank."""
    X = data.design.block(0)
    from_some = TaskData.shared(X[basis], data.targets[basis]).with_held_out(data)
    found = preprocess(from_some, [f"svd:{np.linalg.matrix_rank(dense(X[basis]))}"]).held_out
    assert found is not None
    return np.asarray(found.design.block(0))
