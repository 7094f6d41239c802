"""What the experiment of `toy_jobs` is told, and what it has done. It stands apart because it is no part of the experiment's code."""

from __future__ import annotations

#: Numbers whose cells fail, and those after which the user has had enough.
failing: set[int] = set()
interrupting: set[int] = set()
#: Numbers of the cells that were computed, in their order.
computed: list[int] = []
