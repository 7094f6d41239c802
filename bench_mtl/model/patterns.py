"""Sparsity patterns: where the entries of a solution are not zero, part by part, small enough to be stored for every run."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array

Mask = NDArray[np.bool_]
#: An entry of a part is in its pattern when it is larger than this share of the part's largest: generic solvers return tiny values
#: instead of zeros. A singular value counts for the rank by the same share of the largest one.
NEGLIGIBLE_ENTRY = 1e-6
#: A part with more entries than this has no pattern.
MOST_ENTRIES = 2**22
#: A part whose smaller side is longer than this has a pattern and no rank, which would take too long to find out.
LONGEST_FOR_RANK = 200

_LONGEST_NAME = 100


@dataclass(frozen=True)
class PackedPattern:
    """The pattern of one matrix as it is sent and stored."""

    part: str
    """Name of the matrix, such as W, or P and Q."""
    rows: int
    columns: int
    nonzeros: int
    """Entries that are not exactly zero, however small."""
    rank: int | None
    """The rank by `numerical_rank`; None where the smaller side is longer than `LONGEST_FOR_RANK`."""
    bits: bytes
    """The mask, by `pack`."""


def features_used(W: Array) -> dict[str, float]:
    """Return how many entries of W (d x m) are above `NEGLIGIBLE_ENTRY` of the largest, "non-zeros", and how many rows have one,
    "features used"."""
    size = np.abs(W)
    used = size > NEGLIGIBLE_ENTRY * size.max()
    return {"non-zeros": float(np.count_nonzero(used)), "features used": float(np.count_nonzero(used.any(axis=1)))}


def part_names(shape: Sequence[int]) -> tuple[str, ...]:
    """Names of the matrices in a point of this shape: P and Q of a stack of two, P1, P2, ... of a longer one, otherwise W."""
    if len(shape) != 3:
        return ("W",)
    return ("P", "Q") if shape[0] == 2 else tuple(f"P{number}" for number in range(1, shape[0] + 1))


def parts(point: Array, names: Sequence[str] | None = None) -> dict[str, Array]:
    """The matrices of a point, by `names` or `part_names`: a vector (d,) as a column, a matrix, or the layers of a stack (k, d, m).

    Raises ValueError: a point of another kind, or names that are not one printable text for each matrix, all different.
    """
    if point.ndim not in (1, 2, 3):
        raise ValueError(f"a point must have 1 to 3 dimensions, not {point.ndim}")
    matrices = [point.reshape(len(point), -1)] if point.ndim < 3 else list(point)
    chosen = part_names(point.shape) if names is None else tuple(names)
    if not all(isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME for name in chosen):
        raise ValueError(f"the names of parts must be printable texts of at most {_LONGEST_NAME} characters")
    if len(set(chosen)) != len(chosen):
        raise ValueError("the names of parts must differ")
    return dict(zip(chosen, matrices, strict=True))


def patterns_of(matrices: Mapping[str, Array]) -> tuple[PackedPattern, ...]:
    """The patterns of the matrices that can have one: finite, of at most `MOST_ENTRIES` entries."""
    found = []
    with np.errstate(all="ignore"):  # whatever a solver has set
        for part, matrix in matrices.items():
            if matrix.size > MOST_ENTRIES:
                continue
            sizes = np.abs(np.asarray(matrix, dtype=np.float64))
            largest = float(sizes.max(initial=0.0))
            if np.isfinite(largest):  # NaN is the largest of all that it is among
                rows, columns = sizes.shape
                rank = numerical_rank(matrix) if min(rows, columns) <= LONGEST_FOR_RANK else None
                bits = pack(sizes > NEGLIGIBLE_ENTRY * largest)
                found.append(PackedPattern(part, rows, columns, int(np.count_nonzero(sizes)), rank, bits))
    return tuple(found)


def numerical_rank(matrix: Array) -> int:
    """Number of singular values of a finite matrix (d x m) above `NEGLIGIBLE_ENTRY` of the largest one; 0 of the zero matrix.

    They are the roots of the eigenvalues of the smaller of the products of the matrix with its transpose. Those are exact to about
    1e-16 times the side of the matrix, relative to the largest, and what they are compared with is 1e-12: far cheaper than singular
    values, and as sure.
    """
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest == 0.0:
        return 0
    scaled = np.asarray(matrix, dtype=np.float64) / largest  # squares of it neither overflow nor vanish
    eigenvalues = np.linalg.eigvalsh(scaled @ scaled.T if scaled.shape[0] < scaled.shape[1] else scaled.T @ scaled)
    return int(np.count_nonzero(eigenvalues > NEGLIGIBLE_ENTRY**2 * eigenvalues[-1]))


def pack(mask: Mask) -> bytes:
    """A mask as bytes: a bit an entry, row by row, the first in the highest bit of a byte, compressed by zlib."""
    return zlib.compress(np.packbits(mask).tobytes())


def unpack(bits: bytes, rows: int, columns: int) -> Mask:
    """The mask (rows x columns) that `pack` made `bits` of. Raises ValueError: `bits` are no such thing."""
    count, reader = rows * columns, zlib.decompressobj()
    size = -(-count // 8)
    try:
        content = reader.decompress(bits, size + 1)  # damaged bits could stand for any amount of memory
    except zlib.error as error:
        raise ValueError(f"the bits of a pattern cannot be read: {error}") from None
    if len(content) != size or not reader.eof:
        raise ValueError(f"the bits of a pattern must be {size} bytes")
    packed = np.frombuffer(content, np.uint8)
    return np.unpackbits(packed, count=count).view(np.bool_).reshape(rows, columns)
