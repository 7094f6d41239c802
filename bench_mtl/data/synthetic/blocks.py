"""Synthetic data in blocks, for sets that no memory holds: a block is made from the seed and its number alone."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.files import is_file
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.shards import MANIFEST, read_shards, write_shards
from bench_mtl.data.synthetic.common import BLOCKS, signs_of, sizes, stream_of
from bench_mtl.model.task_data import TaskData

KINDS = ("regression", "labels")
VALUES = ("gaussian", "positive")
#: Of the recipe: another number stands for other data of the same parameters.
VERSION = 1
_SHARD_BYTES = 128 * 2**20
#: Entries that are drawn at a time: of a size that processors keep near.
_DRAWN = 2**20
#: The most frequent feature is about 1 + 1/_OFFSET times as frequent as the rarest.
_OFFSET = 0.05


@dataclass(frozen=True, kw_only=True)
class BlockRecipe:
    """Linear models of tasks that share a few relevant features, over examples that are made block by block.

    W (d x m) has max(1, round(relevant d)) rows with entries N(0, s^2), and zeros in all others; s is such that the variance of x . w_k is
    about 1. The examples x have a norm of about 1:

        dense (no `nonzeros`):  d entries N(0, 1/d)
        sparse:                 `nonzeros` = k different features, drawn with probabilities p_r = log(1 + 1/(r + q)) / log(1 + d/q),
                                q = d/20, for r = 0, ..., d-1 in order of frequency (a feature that is drawn again gives way to another);
                                their values are N(0, 1/k) ("gaussian"), or absolute values of these ("positive")

    The relevant features of sparse data are drawn with the same probabilities. With the responses T = X W + noise_std N(0, 1),

        regression:  Y = T
        labels:      Y = sign(T), where 0 counts as +1

    Block b, of `shard_rows` rows (the last may have fewer), is made from the seed and b alone.

    Parameters
    ----------
    examples, features, tasks : n, d and m, each at least 1.
    nonzeros : k, at most d/2; None for dense examples.
    relevant : the share of features whose rows of W are not zero, in (0, 1].
    kind : ``"labels"`` or ``"regression"``.
    noise_std : the standard deviation of the noise of the responses.
    values : of sparse examples, ``"gaussian"`` or ``"positive"``.
    shard_rows : rows of a block; None for as many as take 128 MiB, as features or as targets.
    seed : of all of it.

    Raises
    ------
    InputError : a size below 1, too many non-zeros, a share out of its range, an unknown kind or other values.
    """

    examples: int
    features: int
    tasks: int = 1
    nonzeros: int | None = None
    relevant: float = 0.05
    kind: str = "labels"
    noise_std: float = 0.1
    values: str = "gaussian"
    shard_rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        sizes(examples=self.examples, features=self.features, tasks=self.tasks)
        if self.nonzeros is not None and whole_number("nonzeros", self.nonzeros, minimum=1) > self.features // 2:
            raise InputError("nonzeros", self.nonzeros, f"at most {self.features // 2}, half the number of features")
        if self.shard_rows is not None:
            whole_number("shard_rows", self.shard_rows, minimum=1)
        real_number("relevant", self.relevant, strict=True, maximum=1.0)
        one_of("kind", self.kind, KINDS)
        one_of("values", self.values, VALUES)
        if self.nonzeros is None and self.values != "gaussian":
            raise InputError("values of dense examples are gaussian")
        real_number("noise_std", self.noise_std)
        whole_number("seed", self.seed)

    @property
    def name(self) -> str:
        """The name of these data in the catalogue."""
        return "blocks_dense" if self.nonzeros is None else "blocks_sparse"

    @property
    def block_rows(self) -> int:
        """Rows of every block but the last."""
        if self.shard_rows is not None:
            return self.shard_rows
        row_bytes = 8 * self.features if self.nonzeros is None else 12 * self.nonzeros + 4
        return max(1, _SHARD_BYTES // max(row_bytes, 8 * self.tasks))

    @property
    def n_blocks(self) -> int:
        return -(-self.examples // self.block_rows)

    @cached_property
    def coefficients(self) -> Array:
        """The true W, d x m."""
        generator, d = np.random.default_rng(self.seed), self.features
        count = max(1, round(self.relevant * d))
        frequency = np.full(d, 1.0 / d) if self.nonzeros is None else _law(d)
        rows = np.sort(generator.choice(d, size=count, replace=False, p=frequency))
        W = np.zeros((d, self.tasks))
        W[rows] = generator.standard_normal((count, self.tasks)) / math.sqrt(frequency[rows].sum())
        return frozen(W)

    def block(self, number: int) -> tuple[Matrix, Array]:
        """Return the examples (rows x d) and targets (rows x m) of a block; InputError where there is no such number."""
        if whole_number("number", number) >= self.n_blocks:
            raise InputError(f"there are {self.n_blocks} blocks, numbered from 0, and none has the number {number}")
        generator = stream_of(self.seed, BLOCKS, number)
        rows = min(self.block_rows, self.examples - number * self.block_rows)
        if self.nonzeros is None:
            X: Matrix = generator.standard_normal((rows, self.features))
            X /= math.sqrt(self.features)
        else:
            X = self._sparse(generator, rows, self.nonzeros)
        relevant = np.flatnonzero(self.coefficients.any(axis=1))
        T = np.asarray(X[:, relevant] @ self.coefficients[relevant] if self.nonzeros is None else X @ self.coefficients)
        T += self.noise_std * generator.standard_normal(T.shape)
        return X, T if self.kind == "regression" else signs_of(T)

    def _sparse(self, generator: np.random.Generator, rows: int, k: int) -> sp.csr_array:
        indices, data = np.empty((rows, k), dtype=np.int32), np.empty((rows, k))
        step = max(1, _DRAWN // k)
        for start in range(0, rows, step):
            own = slice(start, min(rows, start + step))
            indices[own] = _different(generator, own.stop - own.start, k, self.features)
            generator.standard_normal(out=data[own])
        if self.values == "positive":
            np.abs(data, out=data)
        data /= math.sqrt(k)
        indptr = np.arange(0, rows * k + 1, k, dtype=np.int32 if rows * k < 2**31 else np.int64)
        return sp.csr_array((data.ravel(), indices.ravel(), indptr), shape=(rows, self.features))


def blocks_dense(
    *, folder: str | Path | None = None, examples: int = 1_000_000, features: int = 100, tasks: int = 1, relevant: float = 0.05,
    kind: str = "labels", noise_std: float = 0.1, shard_rows: int | None = None, seed: int = 0,
    cluster: str | None = None, workers: int | None = None, memory_gib: float | None = None,
) -> TaskData:  # fmt: skip
    """Dense examples of linear models in shards, for data that no memory holds: `BlockRecipe` has the recipe.

    Parameters
    ----------
    folder : where the shards of all such data are stored, each under a name of its own. Those that are there already, made by the same
        recipe, version and release of NumPy, are used again. A relative one is looked for in the current folder.
    examples, features, tasks, relevant, kind, noise_std, shard_rows, seed : as for `BlockRecipe`.
    cluster, workers, memory_gib : who computes with them, as for `read_shards`.

    Returns
    -------
    TaskData : a design in shards, labels -1/+1 or real targets, ``truth={"W": W}``.

    Raises
    ------
    InputError : no folder, as `BlockRecipe` does, or data in the folder that are not what they should be.
    """
    recipe = BlockRecipe(
        examples=examples, features=features, tasks=tasks, relevant=relevant, kind=kind, noise_std=noise_std, shard_rows=shard_rows,
        seed=seed,
    )  # fmt: skip
    return _kept(folder, recipe, cluster=cluster, workers=workers, memory_gib=memory_gib)


def blocks_sparse(
    *, folder: str | Path | None = None, examples: int = 1_000_000, features: int = 2000, tasks: int = 1, nonzeros: int = 25,
    relevant: float = 0.05, kind: str = "labels", noise_std: float = 0.1, values: str = "gaussian", shard_rows: int | None = None,
    seed: int = 0, cluster: str | None = None, workers: int | None = None, memory_gib: float | None = None,
) -> TaskData:  # fmt: skip
    """Sparse examples of linear models in shards, with frequent and rare features; all else is as for `blocks_dense`.

    Parameters
    ----------
    nonzeros, values : as for `BlockRecipe`.
    """
    recipe = BlockRecipe(
        examples=examples, features=features, tasks=tasks, nonzeros=whole_number("nonzeros", nonzeros, minimum=1), relevant=relevant,
        kind=kind, noise_std=noise_std, values=values, shard_rows=shard_rows, seed=seed,
    )  # fmt: skip
    return _kept(folder, recipe, cluster=cluster, workers=workers, memory_gib=memory_gib)


def write_synthetic_shards(folder: str | Path, recipe: BlockRecipe) -> Path:
    """Write the blocks of a recipe in shards, a block in memory at a time; return their manifest, whose ``origin`` tells the recipe.

    Raises InputError: the folder exists.
    """
    blocks = (recipe.block(number) for number in range(recipe.n_blocks))
    return write_shards(folder, blocks, name=recipe.name, origin=_origin(recipe))


def _kept(folder: str | Path | None, recipe: BlockRecipe, **who: Any) -> TaskData:
    """Return the data of a recipe from the shards in a folder, which are written where they are missing."""
    if not isinstance(folder, (str, Path)) or not str(folder):
        raise InputError(f"{recipe.name} needs folder, the path of a folder where its shards are stored, not {folder!r}")
    origin = _origin(recipe)
    digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
    place = Path(os.path.expanduser(folder)) / f"{recipe.name}-{digest}"
    manifest = place / MANIFEST
    with _alone(place):
        if not is_file("folder", manifest):
            write_synthetic_shards(place, recipe)
    try:
        told = json.loads(manifest.read_text(encoding="utf-8")).get("origin")
    except (OSError, ValueError, AttributeError):
        told = None
    if told != origin:
        raise InputError(f"{place} holds other data than {recipe.name} has under that name: remove it")
    return replace(read_shards(manifest, **who), truth={"W": recipe.coefficients})


def _origin(recipe: BlockRecipe) -> dict[str, Any]:
    """Return all that decides the bits of the data, but the processor."""
    parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in asdict(recipe).items()}
    return {"generator": recipe.name, "version": VERSION, "numpy": np.__version__, "parameters": parameters}


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Let one process at a time look for a folder, and write it."""
    import fcntl

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = (place.parent / f".{place.name}.lock").open("a")
    except OSError as error:
        cure = "" if place.parent.is_dir() else "; make it first (a worker makes nothing beside the results)"
        raise InputError(f"folder {place.parent} cannot be used: {error.strerror or error}{cure}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _law(d: int) -> Array:
    """Return the probabilities of features in order of frequency."""
    return np.asarray(np.log1p(1.0 / (np.arange(d) + _OFFSET * d)) / math.log1p(1.0 / _OFFSET))


def _drawn(generator: np.random.Generator, size: int | tuple[int, int], d: int) -> NDArray[np.int32]:
    """Return features of that law, by inversion of its distribution function log(1 + r/q) / log(1 + d/q)."""
    ranks = generator.random(size)
    ranks *= math.log1p(1.0 / _OFFSET)
    np.expm1(ranks, out=ranks)
    ranks *= _OFFSET * d
    return np.minimum(ranks.astype(np.int32), np.int32(d - 1))


def _different(generator: np.random.Generator, rows: int, k: int, d: int) -> NDArray[np.int32]:
    """Return `k` different features for each row, ascending."""
    chosen = np.sort(_drawn(generator, (rows, k), d), axis=1)
    again = np.arange(rows)
    while True:
        part = chosen[again]
        double = part[:, 1:] == part[:, :-1]
        repeated = double.any(axis=1)
        if not repeated.any():
            return chosen
        again, part, double = again[repeated], part[repeated], double[repeated]
        part[:, 1:][double] = _drawn(generator, int(np.count_nonzero(double)), d)
        chosen[again] = np.sort(part, axis=1)
