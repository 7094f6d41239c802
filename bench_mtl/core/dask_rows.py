"""Arrays and frames of Dask: their blocks of rows, and shards that are made of these.

Blocks are computed by the workers of the client that is active, or by this process, whenever they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.blocks import Blocks, Here, Lazy
from bench_mtl.core.checks import canonical_csr, is_sparse, not_real, real_matrix
from bench_mtl.core.dask_blocks import Key, OnDask, Workers
from bench_mtl.core.dask_cluster import require_same_code
from bench_mtl.core.designs import frozen, frozen_matrix, largest_entry, stored_entries
from bench_mtl.core.errors import InputError
from bench_mtl.core.shards import HeldShard, Shards, Sizes, digest_of
from bench_mtl.core.types import Array, Matrix


def is_dask(value: Any) -> bool:
    """Whether `value` is a collection of Dask, which nobody needs to import to know that."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr")


def is_frame(collection: Any) -> bool:
    """Whether a collection of Dask is a frame, or a series."""
    return hasattr(type(collection), "to_dask_array")  # of the class: an object of Dask may have any attribute


def require_array_or_frame(name: str, collection: Any) -> None:
    """Raise InputError where a collection of Dask is neither an array nor a frame."""
    if not is_frame(collection) and not hasattr(type(collection), "chunks"):
        raise InputError(name, collection, "an array or a frame of Dask")


def active_client() -> Any:
    """Return the client that Dask would compute with, None where there is none."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        return None


def blocks_of(name: str, collection: Any) -> Blocks:
    """Return the blocks of an array, whose columns are then in one chunk, or the partitions of a frame, on the client that is active.

    Messages call the collection by `name`. Raises InputError: another collection; one that a client holds which is not active; the workers
    have other code than this process.
    """
    from dask.core import flatten
    from dask.optimization import cull
    from dask.utils import ensure_dict

    require_array_or_frame(name, collection)
    if not is_frame(collection) and collection.ndim == 2 and len(collection.chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    # `dask.optimize` of Dask 2026.8 takes filtered frames for unfiltered ones.
    quick = collection.optimize() if is_frame(collection) else collection
    whole = ensure_dict(quick.__dask_graph__())
    keys = list(flatten(quick.__dask_keys__()))
    held = {key: value for key, value in whole.items() if type(value).__name__ == "Future"}  # which optimisation may take for known
    optimised = whole if quick is not collection else ensure_dict(quick.__dask_optimize__(quick.__dask_graph__(), keys))
    graph = {**held, **optimised}
    client = active_client()
    if client is not None:
        require_same_code(name, client, None)
        ones = (1,) * len(keys)
        return OnDask(Workers(client=client), ones, ((),) * len(keys), tuple((key,) for key in keys), graph, origin=collection)
    if held:
        raise InputError(f"{name} is held by the workers of a Dask client that is not active here: fit within client.as_current()")
    return Here([Lazy(_computed, cull(graph, [key])[0], key) for key in keys])  # what a block takes, and no more


class _Facts(NamedTuple):
    """What a block turns out to be."""

    rows: int
    columns: int
    is_sparse: bool
    stored: int
    digest: bytes
    """Of its numbers."""
    largest: float
    """The size of the largest of them."""


def shards_of(X: Any, name: str = "X") -> Shards:
    """Return a Dask array or frame as shards that have no targets yet; every block is looked at, in one pass over the data.

    Raises InputError: not two dimensions, no row or no column, entries that are no finite real numbers, blocks of different kinds or
    widths.
    """
    require_array_or_frame(name, X)
    if X.ndim != 2:
        raise InputError(name, X.ndim, "have 2 dimensions")
    blocks = blocks_of(name, X)
    facts = [(k, facts) for k, facts in enumerate(blocks.map(_facts_of, (name,), lambda k: (k,))) if facts.rows]
    if not facts:
        raise InputError(f"{name} is empty: a task needs at least one example")
    first, like = facts[0]
    if like.columns == 0:
        raise InputError(f"{name} has no features: at least one is needed")
    for k, one in facts:
        if one.columns != like.columns:
            raise InputError(f"block {k} of {name} has {one.columns} columns, but block {first} has {like.columns}")
        if one.is_sparse != like.is_sparse:
            raise InputError(f"{name} has dense and sparse blocks, such as block {first} and block {k}: all must be of one kind")
    counts, stored = tuple(one.rows for _, one in facts), sum(one.stored for _, one in facts)
    sizes = Sizes(counts, like.columns, 0, like.is_sparse, stored, largest=max(one.largest for _, one in facts))
    return Shards(blocks.some([k for k, _ in facts]), sizes, tuple(one.digest for _, one in facts), _shard_of)


def values_of(name: str, collection: Any) -> NDArray[Any]:
    """Return a Dask array, frame or series as an array in memory, computed block by block. Raises InputError: another collection."""
    parts = list(blocks_of(name, collection).map(_values))
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


# What follows runs where the blocks are.


def _computed(graph: Mapping[Key, Any], key: Key) -> Any:
    from dask.local import get_sync

    return get_sync(graph, key)


def rows_of_block(block: Any) -> Matrix:
    """Return a block as a C-contiguous array of float64 or a CSR matrix without duplicates, at an address of its type."""
    if is_sparse(block):
        matrix = canonical_csr("a block", block, np.float64)
        return matrix if matrix.data.flags.aligned else matrix.copy()
    return np.require(numbers_of_block(block), np.float64, ["C", "A"])


def numbers_of_block(block: Any) -> Any:
    """Return the numbers of a frame, NaN where one is missing; another block as it is."""
    return block.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(block, "to_numpy") else block


def _values(block: Any) -> Any:
    if is_sparse(block):
        return block.toarray()
    return block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)


def _facts_of(block: Any, name: str, k: int) -> _Facts:
    where = f"block {k} of {name}"
    try:
        numbers = numbers_of_block(block)
    except (TypeError, ValueError) as error:  # a column of text
        raise not_real(where, block, error) from None
    matrix = real_matrix(where, numbers)
    return _Facts(matrix.shape[0], matrix.shape[1], is_sparse(matrix), stored_entries(matrix), digest_of(matrix), largest_entry(matrix))


def _shard_of(block: Any, targets: Array) -> HeldShard:
    return HeldShard(frozen_matrix(rows_of_block(block)), frozen(targets))
