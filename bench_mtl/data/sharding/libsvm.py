"""LIBSVM files in blocks: what `read_libsvm` makes of one, in two passes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import true_or_false, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import opened, parsing
from bench_mtl.data.readers.libsvm import Labels
from bench_mtl.data.selection import Selection, most_frequent, most_frequent_note
from bench_mtl.data.sharding.blocks import Blocks, rows_of

_KIND = "a LIBSVM file"


def libsvm_blocks(
    source: Path,
    block_bytes: int,
    *,
    features: int | None = None,
    zero_based: bool | None = None,
    real: bool | None = None,
    labels: int | None = None,
) -> Blocks:
    """Return the rows of a LIBSVM file in blocks. The first pass counts examples, features and labels; `read_libsvm` explains the options.

    Raises
    ------
    InputError : as `read_libsvm` does.
    """
    n_features = None if features is None else whole_number("features", features, minimum=1)
    Selection(labels=labels)
    seen = _Seen()
    for X, label_sets in _parsed(source, block_bytes, zero_based=True, n_features=None):
        seen.add(X, label_sets)
    if seen.n_rows == 0:
        raise InputError("has no example")
    if n_features is None and seen.last < 0:
        raise InputError("has no feature on any line")
    found = Labels.among(seen.counts, seen.each_alone, real)
    from_0 = not seen.first if zero_based is None else true_or_false("zero_based", zero_based)
    d = max(1, seen.last + from_0)
    if n_features is not None and n_features < d:
        raise InputError(f"not readable as {_KIND}: n_features was set to {n_features}, but input file contains {d} features (ValueError)")
    n_tasks, notes = 1 if found.one_task else len(found.numbers), [found.note]
    chosen: Any = slice(None)
    if labels is not None:
        if found.are_real:
            raise InputError("labels cannot be chosen: the targets are real numbers")
        plus = [seen.counts.get(found.positive, 0)] if found.one_task else [seen.counts[number] for number in found.numbers]
        chosen = most_frequent(np.array(plus), labels)
        notes.append(most_frequent_note(labels, n_tasks))
        n_tasks = len(chosen)
    width = n_features or d

    def parts() -> Iterator[tuple[Matrix, Array]]:
        rows, first = rows_of(block_bytes, 1 if found.one_task else len(found.numbers)), 0
        for X, label_sets in _parsed(source, block_bytes, zero_based=from_0, n_features=width):
            for start in range(0, len(label_sets), rows):
                yield X[start : start + rows], found.matrix(label_sets[start : start + rows], first + start)[:, chosen]
            first += len(label_sets)

    return Blocks(seen.n_rows, width, n_tasks, parts(), tuple(notes))


@dataclass
class _Seen:
    """What the first pass has found so far."""

    n_rows: int = 0
    first: int | None = None
    """The lowest number of a feature."""
    last: int = -1
    """The highest."""
    counts: dict[float, int] = field(default_factory=dict)
    """How many examples have each label."""
    each_alone: bool = True
    """Whether every example has one label."""

    def add(self, X: Any, label_sets: list[tuple[float, ...]]) -> None:
        for labels in label_sets:
            self.each_alone &= len(labels) == 1
            for number in set(labels):
                self.counts[number] = self.counts.get(number, 0) + 1
        self.n_rows += len(label_sets)
        if X.nnz:
            low, high = int(X.indices.min()), int(X.indices.max())
            self.first, self.last = min(low, low if self.first is None else self.first), max(high, self.last)


def _parsed(source: Path, block_bytes: int, *, zero_based: bool, n_features: int | None) -> Iterator[tuple[Any, list[tuple[float, ...]]]]:
    """Yield the features (CSR) and label sets of some lines after the other."""
    from sklearn.datasets import load_svmlight_file

    with parsing(_KIND), opened(source) as file:
        # A line that is parsed takes up to about eight times its bytes for a while.
        while lines := file.read(max(1, block_bytes // 8)) + file.readline():
            X, label_sets = load_svmlight_file(io.BytesIO(lines), n_features=n_features, multilabel=True, zero_based=zero_based)
            yield sp.csr_array(X), label_sets
