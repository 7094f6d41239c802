"""Passes over the rows of a matrix for the l1,inf projections, by one thread or several: the way to the compiled kernels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench_mtl.core.threads import start_together
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.matrix_rows import MatrixRows
from bench_mtl.projections.scratch import forget_scratch, own_scratch

#: Looks at the state of a job before a thread lets others run; some tens of microseconds.
_TURNS = 20_000

#: Parts of the rows for each thread, so that one that comes late or is slow holds nobody up.
_PARTS_EACH = 8


@dataclass(frozen=True)
class Passes:
    """What the calling thread does with a matrix, and what it knows of its rows."""

    rows: MatrixRows
    nonneg: Any
    """None or True, as kernels take it."""
    result: AnyArray
    """Where the clipped rows go, laid out as the data."""
    state: Array
    prediction: Array

    @classmethod
    def of(cls, rows: MatrixRows, nonneg: bool, result: AnyArray) -> Passes:
        size = kernels().STATE_ROWS
        state = own_scratch("l1inf", size * rows.d).reshape(size, rows.d)
        return cls(rows, True if nonneg else None, result, state, own_scratch("prediction", kernels().COEFFICIENTS))

    @property
    def shared(self) -> bool:
        """Whether other threads help."""
        return False

    def first(self, theta: float) -> int:
        """`kernels.l1inf_passes.first_pass` over all rows."""
        rows = self.rows
        return kernels().first_pass(rows.matrix, rows.lanes, 1, 0, rows.d, theta, self.prediction, self.state, self.nonneg)

    def following(self, old: float, theta: float) -> int:
        """`kernels.l1inf_passes.next_pass` over all rows."""
        rows = self.rows
        return kernels().next_pass(rows.matrix, rows.lanes, 1, 0, rows.d, old, theta, self.state, self.nonneg)

    def dismiss(self) -> None:
        """Go on without help."""

    def clip(self, levels: Array) -> None:
        """Write the data, cut at the levels, into the result."""
        kernels().clip(self.rows.matrix, self.rows.lanes, 0, self.rows.d, levels, self.nonneg, self.result)


@dataclass(frozen=True)
class SharedPasses(Passes):
    """The same with helpers, who take parts of each pass (`kernels/l1inf_team.py`)."""

    control: AnyArray
    values: Array

    @property
    def shared(self) -> bool:
        return True

    def first(self, theta: float) -> int:
        self._run(kernels().FIRST, theta, theta)
        return -1 if self.control[kernels().BAD] else int(self.control[kernels().RESULT])

    def following(self, old: float, theta: float) -> int:
        self._run(kernels().FOLLOWING, theta, old)
        return int(self.control[kernels().RESULT])

    def clip(self, levels: Array) -> None:
        if not np.may_share_memory(levels, self.state):
            self.state[kernels().LEVEL] = levels
        self._run(kernels().CLIP, 0.0, 0.0)

    def dismiss(self) -> None:
        kernels().dismiss(self.control)

    def _run(self, kind: int, theta: float, old: float) -> None:
        kernels().publish(self.control, self.values, kind, theta, old)
        self._take_part()
        while not kernels().finished(self.control, _TURNS):
            if self.control[kernels().FAILED]:
                raise MemoryError("a thread that helps with a projection had no memory left")
            time.sleep(0)

    def _take_part(self) -> None:
        rows = self.rows
        kernels().take_part(
            rows.matrix, rows.lanes, rows.d, self.prediction, self.state, self.nonneg, self.result, self.control, self.values
        )

    def help(self) -> None:
        """What a helper does, until it is dismissed."""
        try:
            while not kernels().dismissed(self.control, _TURNS):
                self._take_part()
                time.sleep(0)
        except BaseException:
            self.control[kernels().FAILED] = 1
            raise

    def abandon(self) -> None:
        """Hand out no more work, and wait a little for what is being done."""
        taken = kernels().withdraw(self.control)
        patience = time.monotonic() + 1.0
        while self.control[kernels().FINISHED] < taken and time.monotonic() < patience:
            time.sleep(1e-3)
        forget_scratch()  # should one be writing to it still


@contextmanager
def shared_passes(alone: Passes, workers: int) -> Iterator[SharedPasses]:
    """The same passes, shared with so many other threads less one."""
    kernel, rows = kernels(), alone.rows
    size = -(-rows.d // (_PARTS_EACH * workers))
    size = size if rows.lanes is None else -(-size // kernel.LANES) * kernel.LANES
    parts = -(-rows.d // size)
    control = np.zeros(kernel.CONTROL, dtype=np.int64)
    control[kernel.ROWS], control[kernel.PARTS], control[kernel.NEXT] = size, parts, parts
    team = SharedPasses(**vars(alone), control=control, values=np.zeros(2))
    try:
        start_together(team.help, workers - 1)
        yield team
    except BaseException:
        team.abandon()
        raise
    finally:
        team.dismiss()


@cache
def kernels() -> Any:
    """All kernels, loaded at the first use; an import statement in each function would cost as much as a small projection."""
    from bench_mtl.projections.kernels import l1inf, l1inf_merge, l1inf_passes, l1inf_team, levels

    modules = (levels, l1inf_merge, l1inf_passes, l1inf_team, l1inf)
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})
