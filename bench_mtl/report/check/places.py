"""Sentences that say which figures there are, where they claim something of results.

Not derived of these: "No verified run on this problem has a pattern of its solution" and "No group of like problems has ... ratios of
single runs": patterns of solutions are not read here, and which runs make a pair is the figure's own rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench_mtl.report.check import patterns
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.document import Block, readable
from bench_mtl.report.check.entrants import entrants
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.findings import UNDERIVED
from bench_mtl.report.check.tables import groups


def place_faults(block: Block, derived: Derived) -> Iterator[Finding]:
    """Yield what of such a sentence the rows do not give."""
    found = patterns.matched(patterns.PLACE_CLAIMS, readable(block.text))
    if found is None:
        return
    name, match = found
    if name != "no point":
        yield from (block.fault(why) for why in _group_faults(name, match, derived))
    elif block.section not in derived.rows.by_problem:
        yield block.fault(UNDERIVED)
    elif any(run.samples for run in derived.rows.by_problem[block.section]):
        yield block.fault("runs on this problem have proven points")


def _group_faults(name: str, match: re.Match[str], derived: Derived) -> Iterator[str]:
    labels = groups(derived.rows).get(match["group"])
    if labels is None:
        yield "no group of problems is called so"
        return
    target = derived.rows.targets[-1] if name == "no profiles" else float(match["target"])
    runs = [run for label in labels for run in derived.rows.by_problem[label]]
    places, found = entrants(runs, derived.counts, target)
    common = [each for each in found if each.is_tried_everywhere]
    if name == "no profiles":
        if common:
            yield f"{common[0].label} was run on every instance"
        return
    least = (len(places) + 1) // 2 if match["half"] else 1
    proving = [each for each in common if sum(bool(attempt.seconds) for attempt in each.tried) >= least]
    if proving:
        yield f"{proving[0].label} proves it on {least} or more of {len(places)} instances"
