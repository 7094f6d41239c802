"""Reader of LIBSVM files: ``label,label,... feature:value feature:value ...``, one example a line."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import true_or_false, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import naming, opened, parsing, readable_file, unpacked_name
from bench_mtl.data.selection import Selection
from bench_mtl.data.table import Table, repeated, rows_of
from bench_mtl.model.task_data import TaskData

_KIND = "a LIBSVM file"
#: A line with features, and how many bytes at the start of a file are searched for one.
_LINE = re.compile(rb"[-+.,\deE]*[ \t]+(qid|\d+):[-+.\deE]+")
_SEARCHED = 2**16


def looks_like_libsvm(path: Path) -> bool:
    """Whether a file without a telling name begins as such a file does; one that cannot be read may be one."""
    try:
        with opened(path) as file:
            return any(_LINE.match(b" " + line.strip()) or _LINE.match(line.strip()) for line in file.read(_SEARCHED).splitlines())
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return True


def read_libsvm(
    path: str | Path, *, features: int | None = None, zero_based: bool | None = None, real: bool | None = None, labels: int | None = None,
    classes: str | None = None, examples: int | None = None, held_out: int = 0, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Tasks from a LIBSVM file: a sparse shared design, and a task for each label number that occurs.

    A line may have no label. Tasks are in ascending order of the label numbers. Files with one label a line, of two in all, are one task,
    in which the larger one is +1. Files with one number a line, of which one is not whole, are one task with these as targets.

    Parameters
    ----------
    path : the file; what ends in .gz, .bz2 or .xz is unpacked.
    features : d, where the file leaves out the last ones; None takes the largest number that occurs.
    zero_based : whether feature numbers count from 0; None: from 1, unless the file uses the number 0.
    real : whether the numbers before the features are real targets; None: where one is not whole.
    labels : the number of labels to keep, the most frequent; ties go to the lower number.
    classes, examples, held_out, seed : as for `read_npz`; `held_out` is a number.

    Raises
    ------
    InputError : anything but such a file; several numbers a line that are not whole; no label or feature at all.
    """
    source = readable_file(path)
    selection = Selection(labels=labels, classes=classes, examples=examples, held_out=whole_number("held_out", held_out), seed=seed)
    with naming(source):
        return selection.of(libsvm_table(source, features=features, zero_based=zero_based, real=real), unpacked_name(source).stem)


def libsvm_table(
    source: Path, size: int | None = None, *, features: int | None = None, zero_based: bool | None = None, real: bool | None = None
) -> Table:
    """Return the rows of a LIBSVM file, in blocks of about `size` bytes. A first pass searches for its labels and features."""
    if features is not None:
        whole_number("features", features, minimum=1)
    from_1 = zero_based is not None and not true_or_false("zero_based", zero_based)
    parsed = repeated(lambda: _parsed(source, size, from_1), size is None)
    n, each_alone, numbers, places = 0, True, set[float](), set[int]()
    for X, label_sets in parsed():
        n += len(label_sets)
        each_alone &= all(len(labels) == 1 for labels in label_sets)
        numbers |= {number for labels in label_sets for number in labels}
        places |= {int(X.indices.min()), int(X.indices.max())} if X.nnz else set()
    if n == 0:
        raise InputError("has no example")
    if features is None and not places:
        raise InputError("has no feature on any line")
    found = Labels.among(numbers, each_alone, real)
    shift = int(zero_based is None and min(places, default=0) > 0)
    d = max(places, default=0) + 1 - shift
    if features is not None and features < d:
        raise InputError(f"features = {features}, but there are {d}")
    width, count = features or d, 1 if found.one_task else len(found.numbers)

    def blocks() -> Iterator[tuple[Matrix, Array]]:
        rows, first = rows_of(size, count), 0
        for X, label_sets in parsed():
            matrix = sp.csr_array((X.data, X.indices - shift, X.indptr), shape=(len(label_sets), width))
            for start in range(0, len(label_sets), rows):
                targets = found.matrix(label_sets[start : start + rows], first + start)
                yield matrix if len(targets) == len(label_sets) else matrix[start : start + rows], targets
            first += len(label_sets)

    return Table(n, width, count, blocks, not found.are_real, notes=(found.note,))


def _parsed(source: Path, size: int | None, from_1: bool) -> Iterator[tuple[Any, list[tuple[float, ...]]]]:
    """Yield the features (CSR) and label sets of some lines after the other; numbers of features less 1 if they are `from_1`."""
    from sklearn.datasets import load_svmlight_file

    def of(lines: IO[bytes]) -> Any:
        return load_svmlight_file(lines, multilabel=True, zero_based=not from_1)

    with parsing(_KIND), opened(source) as file:
        if size is None:  # read as a stream: what is unpacked never is in memory as text
            yield of(file)
            return
        # A line that is parsed takes up to about eight times its bytes for a while.
        while lines := file.read(max(1, size // 8)) + file.readline():
            yield of(io.BytesIO(lines))


class Labels(NamedTuple):
    """What the labels of a file represent."""

    numbers: tuple[float, ...]
    """Those that occur, ascending."""
    one_task: bool
    """Whether they are the two labels of one task, or real targets."""
    are_real: bool = False
    """Whether they are real targets."""

    @classmethod
    def among(cls, numbers: Iterable[float], each_alone: bool, real: bool | None = None) -> Labels:
        """Return what these numbers represent, where `each_alone` says whether every example has exactly one."""
        found = tuple(sorted(numbers))
        if not found:
            raise InputError("has no label on any line")
        if not np.isfinite(found).all():
            raise InputError("has a label that is not finite")
        are_real = (each_alone and not all(map(float.is_integer, found))) if real is None else true_or_false("real", real)
        if are_real and not each_alone:
            raise InputError("has a line with no or several numbers before its features, and real targets are one a line")
        is_pair = len(found) == 2 or found in ((-1.0,), (1.0,))
        return cls(found, are_real or (each_alone and is_pair), are_real)

    @property
    def positive(self) -> float:
        """The label of one task that is +1."""
        return self.numbers[-1] if len(self.numbers) == 2 else 1.0

    def matrix(self, label_sets: Sequence[tuple[float, ...]], first: int = 0) -> Array:
        """The targets, a column, or -1/+1, a row for each set and a column for each task; examples are counted from `first`."""
        if self.are_real:
            return np.array(label_sets, dtype=np.float64).reshape(-1, 1)
        for row, labels in enumerate(label_sets):
            for number in labels:
                if not float(number).is_integer():
                    raise InputError(f"example {first + row} has the label {number:g}: label numbers must be whole")
        if self.one_task:
            return np.where(np.array(label_sets, dtype=np.float64).reshape(-1, 1) == self.positive, 1.0, -1.0)
        column = {number: k for k, number in enumerate(self.numbers)}
        Y = np.full((len(label_sets), len(self.numbers)), -1.0)
        for row, labels in enumerate(label_sets):
            Y[row, [column[number] for number in labels]] = 1.0
        return Y

    @property
    def note(self) -> str:
        """A sentence that says what became of them."""
        if self.are_real:
            return "The numbers before the features are real targets."
        if self.one_task:
            shown = " and ".join(f"{number:g}" for number in self.numbers)
            return f"The labels {shown} of the file became one task with the labels -1 and 1."
        return f"The {len(self.numbers)} label numbers of the file became one-against-all tasks."
