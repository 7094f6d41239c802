"""A multiset of numbers in a treap: inserts, removals, cuts and the search for an l1 threshold, each in O(log n).

A treap (Seidel, Aragon, Algorithmica 1996) is a binary search tree by key and a heap by a random priority, which keeps it balanced
whatever the order of the keys: expected depth 2 ln n. Inserting and removing change two links on average, in one walk from the root.
Every node holds the count and the sum of the keys of its subtree, as in Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, figure 3.

Nodes are lines of one array; node 0 represents no node, with count and sum 0. What is cut off is not visited: the root of a removed
subtree joins the list of free ones, and `_new_node` uses it again, its children joining the list instead. Walks that must come back up
reverse the links on their way down, so there is no stack and no limit on depth.

Counts are exact. Sums along a path change by the key that comes or goes, and so drift by rounding, until `rebase` computes them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact

NODE = np.dtype(
    [("key", np.float64), ("total", np.float64), ("left", np.int32), ("right", np.int32), ("count", np.int32), ("priority", np.int32)]
)
ROOT, FREE, USED, RANDOM = range(4)  # places in the state of a tree: the root, the list of free subtrees, nodes used so far, randomness
STATE = 4


@exact
def clear(nodes: Any, state: Any) -> None:
    """Make the tree empty; the sequence of its random priorities continues."""
    state[ROOT] = 0
    state[FREE] = 0
    state[USED] = 1
    nodes[0].total = 0.0
    nodes[0].count = 0


@exact
def _new_node(nodes: Any, state: Any) -> int:
    """Return an unused node: the root of a free subtree, or a fresh one."""
    at = state[FREE]
    if at == 0:
        state[USED] += 1
        return state[USED] - 1
    node = nodes[at]
    following = node.count  # the next free subtree
    if node.left != 0:
        nodes[node.left].count = following
        following = node.left
    if node.right != 0:
        nodes[node.right].count = following
        following = node.right
    state[FREE] = following
    return at


@exact
def _free(nodes: Any, state: Any, at: int) -> None:
    """Add a subtree to the list of free ones."""
    if at != 0:
        nodes[at].count = state[FREE]
        state[FREE] = at


@exact
def _sum_up(nodes: Any, at: int) -> None:
    """Compute the count and the sum of a node from those of its children."""
    node = nodes[at]
    left, right = nodes[node.left], nodes[node.right]
    node.count = left.count + right.count + 1
    node.total = left.total + right.total + node.key


@exact
def _split(nodes: Any, at: int, key: float) -> tuple[int, int]:
    """Split the subtree in two, the keys up to `key` and those above; return both roots."""
    small = 0  # the last node of either part met so far; the link to its child leads to the one before
    large = 0
    while at != 0:
        node = nodes[at]
        below = node.left
        if node.key <= key:
            below = node.right
            node.right = small
            small = at
        else:
            node.left = large
            large = at
        at = below
    lower = 0
    while small != 0:
        above = nodes[small].right
        nodes[small].right = lower
        _sum_up(nodes, small)
        lower = small
        small = above
    upper = 0
    while large != 0:
        above = nodes[large].left
        nodes[large].left = upper
        _sum_up(nodes, large)
        upper = large
        large = above
    return lower, upper


@exact
def _set_child(nodes: Any, state: Any, parent: int, right: bool, child: int) -> None:
    """Make `child` the right or the left child of `parent`, or the root where `parent` is 0."""
    if parent == 0:
        state[ROOT] = child
    elif right:
        nodes[parent].right = child
    else:
        nodes[parent].left = child


@exact
def insert(nodes: Any, state: Any, key: float) -> None:
    """Add one key. There must be a node left."""
    new = _new_node(nodes, state)
    state[RANDOM] = state[RANDOM] * 6364136223846793005 + 1442695040888963407
    priority = (state[RANDOM] >> 33) & 0x7FFFFFFF
    parent = 0
    right = False
    at = state[ROOT]
    while at != 0:
        node = nodes[at]
        if node.priority < priority:
            break
        node.count += 1
        node.total += key
        parent = at
        right = node.key <= key
        at = node.right if right else node.left
    lower, upper = _split(nodes, at, key)
    node = nodes[new]
    node.key = key
    node.left = lower
    node.right = upper
    node.priority = priority
    _sum_up(nodes, new)
    _set_child(nodes, state, parent, right, new)


@exact
def remove(nodes: Any, state: Any, key: float) -> None:
    """Remove one of the keys equal to `key`. There must be one."""
    parent = 0
    right = False
    at = state[ROOT]
    while nodes[at].key != key:
        node = nodes[at]
        node.count -= 1
        node.total -= key
        parent = at
        right = node.key < key
        at = node.right if right else node.left
    removed = at
    a = nodes[removed].left
    b = nodes[removed].right
    while a != 0 and b != 0:
        left, large = nodes[a], nodes[b]
        if left.priority >= large.priority:
            left.count += large.count
            left.total += large.total
            _set_child(nodes, state, parent, right, a)
            parent = a
            right = True
            a = left.right
        else:
            large.count += left.count
            large.total += left.total
            _set_child(nodes, state, parent, right, b)
            parent = b
            right = False
            b = large.left
    _set_child(nodes, state, parent, right, a if a != 0 else b)
    nodes[removed].left = 0
    nodes[removed].right = 0
    _free(nodes, state, removed)


@exact
def cut(nodes: Any, state: Any, key: float) -> None:
    """Drop all keys up to `key`."""
    lower, upper = _split(nodes, state[ROOT], key)
    state[ROOT] = upper
    _free(nodes, state, lower)


@exact
def pivot(nodes: Any, root: int, radius: float) -> float:
    """The root t of sum_i max(key_i - t, 0) = radius > 0, along one path: Duchi et al., figure 3, of a tree that is not empty.

    A key v is above t just if the sum of max(key_i - v, 0) is below the radius.
    """
    count = 0
    total = 0.0
    at = root
    while at != 0:
        node = nodes[at]
        right = nodes[node.right]
        number = count + right.count + 1
        whole = total + right.total + node.key
        if whole - number * node.key < radius:
            count = number
            total = whole
            at = node.left
        else:
            at = node.right
    return (total - radius) / count


@exact
def rebase(nodes: Any, state: Any, base: float, floor: float) -> None:
    """Replace every key by key - base + floor, and compute all sums again."""
    root = state[ROOT]
    order = np.empty(nodes[root].count, dtype=np.int32)  # parents before children
    if root == 0:
        return
    order[0] = root
    known = 1
    for i in range(order.size):
        node = nodes[order[i]]
        node.key = (node.key - base) + floor
        if node.left != 0:
            order[known] = node.left
            known += 1
        if node.right != 0:
            order[known] = node.right
            known += 1
    for i in range(order.size - 1, -1, -1):
        _sum_up(nodes, order[i])
