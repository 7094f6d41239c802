"""A sparse vector under an l1 ball: only non-zeros, a lazy shift, and a projection that does not depend on the dimension.

An entry of value v is stored as sign(v) (|v| + shift), so that subtracting theta from all of them is adding it to the shift. An entry
whose stored number is at most the shift in magnitude is 0, *dead*, and is not visited.

Entries have places 0, 1, 2, ... in the arrays `features` and `stored`, in the order in which they came; `slots` (open addressing, linear
probing, a power of two of them in use) leads from a feature to its place plus 1. `rebuild` drops the dead, subtracts the shift
from the rest and sets it to 0: so memory stays in proportion to the non-zeros, and a shift that grows costs no digits. It is called
when the places are used up or most are dead, so that its cost a change is bounded; its digits rule costs no more: where the shift
exceeds the norm by a factor, whatever is still alive has been changed since the last one. The same holds where a change has led far
outside: the threshold is then no less than the largest number less the radius, which `_rebuild_near_ball` subtracts before anything
is summed.

The threshold comes from the treap of `kernels/tree.py` over the stored numbers of the living, in O(log n), or, where `tree` is false,
from Newton's method over all places, each step one pass (see `kernels/simplex.py`), from the threshold that the last step suggests.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bench_mtl.core.kernels.jit import exact, inlined
from bench_mtl.projections.kernels import tree as treap
from bench_mtl.projections.kernels.simplex import largest_key, rough_pass

#: In the state: slots in use less 1, places used, those alive, changes since `rebuild`.
MASK, FILLED, LIVING, CHANGES = range(treap.STATE, treap.STATE + 4)
STATE = treap.STATE + 4
SHIFT, THETA, PEAK = range(3)  # the shift, what the last projection added to it, the largest number stored since `rebuild`
REALS = 3
DONE, SHORT, REFUSED = range(3)
LARGEST = 1e290  # sum of the magnitudes that one call may add, so that no sum overflows
_FAR = 8.0  # shifts up to this multiple of the radius cost no digits that matter
_MAX_STEPS = 100


class Parts(NamedTuple):
    """The arrays of one vector, or with a line for each of several; `nodes` is unused where there is no tree."""

    features: Any
    stored: Any
    slots: Any
    nodes: Any
    state: Any
    reals: Any
    tree: bool


@inlined
def _scrambled(feature: int) -> int:
    """A number whose low bits depend on all bits of the feature, be it a multiple of a power of two (the end of splitmix64)."""
    mixed = (feature ^ (feature >> 30)) * -4658895280553007687
    mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)


@inlined
def place_of(features: Any, slots: Any, mask: int, feature: int) -> int:
    """The place of the entry of a feature; where there is none, -1 less the slot that it would get."""
    at = _scrambled(feature) & mask
    while slots[at] != 0 and features[slots[at] - 1] != feature:
        at = (at + 1) & mask
    return slots[at] - 1 if slots[at] != 0 else -1 - at


@inlined
def _new_place(features: Any, slots: Any, mask: int, at: int, feature: int, place: int) -> None:
    """Let `place` be that of a feature that has none, by the first free slot from `at` on."""
    while slots[at] != 0:
        at = (at + 1) & mask
    slots[at] = place + 1
    features[place] = feature


@inlined
def value_at(stored: Any, shift: float, place: int) -> float:
    """The value of the entry at a place; 0 where there is none."""
    value = 0.0
    if place >= 0:
        value = math.copysign(max(abs(stored[place]) - shift, 0.0), stored[place])
    return value


@exact
def clear(ball: Any) -> None:
    """Make the vector zero."""
    treap.clear(ball.nodes, ball.state)
    ball.slots[:] = 0
    ball.state[MASK] = min(ball.slots.size, 64) - 1
    ball.state[FILLED:] = 0
    ball.reals[:] = 0.0


@exact
def count_living(ball: Any) -> int:
    """The number of non-zeros."""
    if ball.tree:
        return ball.nodes[ball.state[treap.ROOT]].count
    living = 0
    for place in range(ball.state[FILLED]):
        if abs(ball.stored[place]) > ball.reals[SHIFT]:
            living += 1
    return living


@exact
def _rebuild(ball: Any, coming: int, base: float, floor: float) -> None:
    """Drop entries with a value of at most base - floor - shift, let a stored s > 0 become s - base + floor, and the shift 0.

    Choose how many slots are in use, with room for `coming` more entries.
    """
    features, stored, slots, nodes, state, reals, tree = ball
    shift = reals[SHIFT]
    living = 0
    highest_dead = 0.0
    reals[PEAK] = 0.0
    for place in range(state[FILLED]):
        size = abs(stored[place])
        new = (size - base) + floor
        if size > shift and new > 0.0:
            features[living] = features[place]
            stored[living] = math.copysign(new, stored[place])
            reals[PEAK] = max(reals[PEAK], new)
            living += 1
        else:
            highest_dead = max(highest_dead, size)
    slots[: state[MASK] + 1] = 0
    size = 64
    while size < 4 * (living + coming) and size < slots.size:
        size *= 2
    state[MASK] = size - 1
    mask = size - 1
    for place in range(living):
        _new_place(features, slots, mask, _scrambled(features[place]) & mask, features[place], place)
    state[FILLED] = living
    state[LIVING] = living
    state[CHANGES] = 0
    reals[SHIFT] = 0.0
    if tree:
        treap.cut(nodes, state, highest_dead)
        treap.rebase(nodes, state, base, floor)


@exact
def rebuild(ball: Any, coming: int) -> None:
    """Drop dead entries, make the shift 0, and choose how many slots are in use, with room for `coming` more entries."""
    _rebuild(ball, coming, ball.reals[SHIFT], 0.0)


@exact
def make_room(ball: Any, coming: int) -> bool:
    """Whether there is room for `coming` more entries, after a `rebuild` where one is due."""
    state = ball.state
    filled = state[FILLED]
    if ball.tree:
        state[LIVING] = ball.nodes[state[treap.ROOT]].count
    short = 2 * (filled + coming) > state[MASK] + 1
    mostly_dead = filled - state[LIVING] > state[LIVING] + coming + 32
    if short or mostly_dead or state[CHANGES] > 4 * filled + 4096:
        # A third of the room stays free, so that the next call is not due a `rebuild` again.
        if 3 * (count_living(ball) + coming) > ball.slots.size:
            return False
        rebuild(ball, coming)
    return True


@inlined
def change(ball: Any, feature: int, place: int, delta: float, nonneg: bool) -> None:
    """Add `delta` to the entry of a feature, at what `place_of` returned: not less than 0 where `nonneg`."""
    features, stored, slots, nodes, state, reals, tree = ball
    shift = reals[SHIFT]
    before = value_at(stored, shift, place)
    after = before + delta
    if nonneg and after < 0.0:
        after = 0.0
    size = abs(after) + shift
    if after == before or (place < 0 and size <= shift):
        return
    if place < 0:
        at = -1 - place
        place = state[FILLED]
        state[FILLED] += 1
        _new_place(features, slots, state[MASK], at, feature, place)
    elif tree and before != 0.0:
        treap.remove(nodes, state, abs(stored[place]))
    if size > shift:
        stored[place] = math.copysign(size, after)
        reals[PEAK] = max(reals[PEAK], size)
        if tree:
            treap.insert(nodes, state, size)
    else:
        stored[place] = 0.0
    state[CHANGES] += 1


@exact
def _newton(stored: Any, state: Any, shift: float, theta: float, radius: float) -> float:
    """The threshold in stored numbers, at least the shift: by Newton's method from shift + theta."""
    sizes = stored[: state[FILLED]]
    threshold = shift + theta
    before = -1.0
    for _ in range(_MAX_STEPS):
        total, count = rough_pass(sizes, threshold, True)
        if count == 0.0:  # too far: all would be dead
            if threshold == shift:
                break
            threshold = shift
            continue
        state[LIVING] = int(count)
        new = max(shift, threshold + (total - radius) / count)
        if count == before or new == threshold:
            threshold = new
            break
        before = count if new >= threshold else -1.0  # only from the left of the root does an unchanged count prove it
        threshold = new
    return threshold


@exact
def _rebuild_near_ball(ball: Any, radius: float) -> None:
    """Subtract the largest number less the radius, which is a lower bound of the threshold, and compute all sums again."""
    shift = ball.reals[SHIFT]
    base, floor = shift, 0.0
    largest = largest_key(ball.stored[: ball.state[FILLED]], True)
    if largest - shift > radius:
        base, floor = largest, radius
        ball.reals[THETA] = largest - shift - radius
    _rebuild(ball, 0, base, floor)


@exact
def project(ball: Any, radius: float) -> None:
    """Project onto the l1 ball exactly; once more after a `rebuild`, where the shift costs digits."""
    stored, nodes, state, reals = ball.stored, ball.nodes, ball.state, ball.reals
    if radius == 0.0:
        theta = max(largest_key(stored[: state[FILLED]], True) - reals[SHIFT], 0.0)
        clear(ball)
        reals[THETA] = theta
        return
    reals[THETA], last = 0.0, reals[THETA]
    if reals[PEAK] - reals[SHIFT] > _FAR * radius:
        _rebuild_near_ball(ball, radius)
        last = 0.0
    for _ in range(2):
        shift = reals[SHIFT]
        if ball.tree:
            whole = nodes[state[treap.ROOT]]
            if whole.total - whole.count * shift <= radius:
                return
            threshold = max(shift, treap.pivot(nodes, state[treap.ROOT], radius))
            treap.cut(nodes, state, threshold)
        else:
            threshold = _newton(stored, state, shift, last, radius)
        reals[THETA] += threshold - shift
        reals[SHIFT] = threshold
        if threshold <= _FAR * radius:
            return
        rebuild(ball, 0)
        last = 0.0


@exact
def shrink(ball: Any, threshold: float) -> None:
    """Soft-threshold all entries."""
    ball.reals[SHIFT] += threshold
    if ball.tree:
        treap.cut(ball.nodes, ball.state, ball.reals[SHIFT])


@exact
def look_up(ball: Any, wanted: Any, out: Any) -> None:
    """out = the values of the features wanted."""
    for i in range(wanted.size):
        out[i] = value_at(ball.stored, ball.reals[SHIFT], place_of(ball.features, ball.slots, ball.state[MASK], wanted[i]))


@exact
def acceptable(indices: Any, values: Any) -> bool:
    """Whether indices are at least 0 and values finite, their magnitudes summing up to `LARGEST` at most."""
    lowest = 0
    total = 0.0
    for i in range(indices.size):
        lowest = min(lowest, indices[i])
        total += abs(values[i])
    return lowest >= 0 and total <= LARGEST


@exact
def add(arrays: Any, indices: Any, values: Any, radius: float, nonneg: bool) -> int:
    """Add to some entries and project: `DONE`, or with nothing changed `SHORT` of room or `REFUSED`, not being `acceptable`.

    `arrays` has the fields of `Parts`, as a plain tuple, which Numba recognises sooner.
    """
    ball = Parts(*arrays)
    if not acceptable(indices, values):
        return REFUSED
    if not make_room(ball, indices.size):
        return SHORT
    for i in range(indices.size):
        place = place_of(ball.features, ball.slots, ball.state[MASK], indices[i])
        change(ball, indices[i], place, values[i], nonneg)
    project(ball, radius)
    return DONE
