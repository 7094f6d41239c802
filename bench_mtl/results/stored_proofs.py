"""Proofs as a results file keeps them, so that every row can be proven again without its solver."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from bench_mtl.core.types import Array, Proof

#: A row whose arrays take more bytes than that, compressed, keeps none of them.
MOST_BYTES = 2**25

#: More than any array of a proof has.
_MOST_DIMENSIONS = 8


def proof_rows(proofs: Sequence[Proof]) -> Iterator[tuple[int, bytes, bytes | None, bytes | None]]:
    """Yield the rows of table `proof`, without the run's id; none where they are too large."""
    rows = [tuple(map(_packed, (proof.point, proof.dual, proof.bound_point))) for proof in proofs]
    if sum(len(array) for row in rows for array in row if array is not None) > MOST_BYTES:
        return
    for number, (point, dual, bound_point) in enumerate(rows):
        assert point is not None
        yield number, point, dual, bound_point


def read_proof(point: bytes, dual: bytes | None, bound_point: bytes | None) -> Proof:
    """Return the proof of a row; raises ValueError where it is none."""
    return Proof(_array(point), None if dual is None else _array(dual), None if bound_point is None else _array(bound_point))


def _packed(array: Array | None) -> bytes | None:
    """Return the number of dimensions, the dimensions and the float64 of an array, compressed: most of a sparse solution is zero."""
    if array is None:
        return None
    head = struct.pack(f"<B{array.ndim}q", array.ndim, *array.shape)
    return zlib.compress(head + np.ascontiguousarray(array, dtype="<f8").tobytes(), 1)


def _array(content: bytes) -> Array:
    try:
        data = zlib.decompress(content)
        shape = struct.unpack_from(f"<{min(data[0], _MOST_DIMENSIONS)}q", data, 1)
    except (zlib.error, struct.error, IndexError, TypeError) as error:
        raise ValueError(f"no stored array: {error}") from None
    return np.frombuffer(data, dtype="<f8", offset=1 + 8 * len(shape)).astype(np.float64).reshape(shape)
