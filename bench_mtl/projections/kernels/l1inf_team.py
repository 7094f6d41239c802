"""Passes that several threads share: each takes the next part of the rows until none is left.

Handing work to a sleeping thread takes as long as a pass over a million entries. So helpers are woken once, take parts of every pass of a
projection, and turn in place in between; and who hands out the work takes part in it, and waits for nobody who is late.

`control` is a vector of integers. Its entry NEXT holds the number of the job times 2^32 and that of the next part to take, which
`add` takes and moves on at once; a part that has been taken is of the job that `control` and `values` describe, since that stays
until all its parts are finished. The number of parts never changes.
"""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import exact
from bench_mtl.projections.kernels.atomics import add, load, store
from bench_mtl.projections.kernels.l1inf_passes import LEVEL, clip, first_pass, next_pass

#: Places in `control`, those written in a hurry on cache lines of their own. FAILED says that a helper did not finish its part.
NEXT, FINISHED, RESULT, BAD, STOP, FAILED, KIND, PARTS, ROWS = 0, 16, 32, 33, 48, 49, 64, 65, 66
CONTROL = 80

#: Kinds of jobs. `values` holds theta, and the theta before.
FIRST, FOLLOWING, CLIP = range(3)

_PART = (1 << 32) - 1


@exact
def publish(control: Any, values: Any, kind: int, theta: float, old: float) -> None:
    """Hand out a job; the one before must be finished."""
    control[KIND], control[RESULT], control[BAD], control[FINISHED] = kind, 0, 0, 0
    values[0], values[1] = theta, old
    store(control, NEXT, ((load(control, NEXT) >> 32) + 1) << 32)


@exact
def take_part(matrix: Any, lanes: Any, d: int, prediction: Any, state: Any, nonneg: Any, out: Any, control: Any, values: Any) -> None:
    """Take parts of the job until none is left."""
    while load(control, NEXT) & _PART < control[PARTS]:
        part = add(control, NEXT, 1) & _PART
        if part >= control[PARTS]:
            return
        lo = part * control[ROWS]
        hi = min(lo + control[ROWS], d)
        kind = control[KIND]
        if kind == FIRST:
            unsettled = first_pass(matrix, lanes, 1, lo, hi, values[0], prediction, state, nonneg)
            if unsettled < 0:
                store(control, BAD, 1)
            else:
                add(control, RESULT, unsettled)
        elif kind == FOLLOWING:
            add(control, RESULT, next_pass(matrix, lanes, 1, lo, hi, values[1], values[0], state, nonneg))
        else:
            clip(matrix, lanes, lo, hi, state[LEVEL], nonneg, out)
        add(control, FINISHED, 1)


@exact
def finished(control: Any, turns: int) -> bool:
    """Whether all parts are finished, after so many looks at most."""
    while turns > 0 and load(control, FINISHED) < control[PARTS]:
        turns -= 1
    return turns > 0


@exact
def withdraw(control: Any) -> int:
    """Hand out no more parts of the job; returns how many had been taken."""
    taken = add(control, NEXT, control[PARTS]) & _PART
    return min(taken, control[PARTS])


@exact
def dismissed(control: Any, turns: int) -> bool:
    """Look out for parts to take so many times at most; whether there will be none any more."""
    for _ in range(turns):
        if load(control, STOP) != 0:
            return True
        if load(control, NEXT) & _PART < control[PARTS]:
            return False
    return False


@exact
def dismiss(control: Any) -> None:
    """Send the helpers home."""
    store(control, STOP, 1)
