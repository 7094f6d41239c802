"""A comparison in words, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bench_mtl.core.errors import plural
from bench_mtl.report.columns import BLANK, format_seconds, format_target, to_markdown
from bench_mtl.results.comparison import CONFIDENCE, FEWEST_PAIRS, FLOOR_SECONDS, Cell, Change, Comparison, Difference, Group, Verdict
from bench_mtl.stats import joint_confidence

#: So many cases are named at most: of those that are only counted, and of those whose status changed.
_FEW, _MANY = 3, 20


def to_words(comparison: Comparison) -> str:
    """Return the whole comparison: what was compared, what differs, times, statuses, verdict."""
    lines, changes = ("\n".join(f"- {line}" for line in of) for of in (basis(comparison), map(change, comparison.changes)))
    times = f"{times_table(comparison.groups, comparison.targets)}\n\n{reading(comparison)}"
    parts = {"Times to a proven gap, B / A": times, "Changes of status": changes or "None.", "Verdict": verdict(comparison)}
    head = f"# A: {comparison.names[0]}, B: {comparison.names[1]}\n\n{lines}"
    return "\n\n".join([head, *(f"## {title}\n\n{text}" for title, text in parts.items())])


def verdict(comparison: Comparison) -> str:
    """Return the conclusion in a few sentences."""
    cells, percent = comparison.cells, _percent(comparison.threshold)
    count = Counter(cell.verdict for cell in cells if cell.verdict is not None)
    tested = count.total() - count[Verdict.TOO_FEW]
    contradictory = plural(len(comparison.contradictory), "case")
    regressions = _holding({
        f"{plural(len(comparison.lost), 'run')} lost `verified`.": comparison.lost,
        f"{count[Verdict.SLOWER]} of {plural(tested, 'ratio')} tested say slower by more than {percent}.": count[Verdict.SLOWER],
        f"In {contradictory} A and B prove bounds that cannot both be true: the problem or its data changed, or a bound is false.":
            comparison.contradictory,
    })  # fmt: skip
    if comparison.identical and not regressions:
        return f"**Nothing changed**: {plural(comparison.pairs, 'pair')} ended alike, with the same times to every gap."
    times = f"none of {plural(tested, 'ratio')} tested is slower by more than {percent}" if tested else "no ratio could be tested"
    bound = 1 + comparison.threshold
    lost, gained = (sum(getattr(cell, side) for cell in cells) for side in ("lost", "gained"))
    up = sum(cell.verdict == Verdict.TOO_FEW and cell.ratio is not None and cell.ratio.value > bound for cell in cells)
    slow = f", {up} of them above {bound:g}" if up else ""
    return _holding({
        f"**Regression**: {regressions}" if regressions else f"**No regression**: no run lost `verified`, and {times}.": True,
        f"Faster by more than that: {count[Verdict.FASTER]}.": count[Verdict.FASTER],
        f"Gaps that only one of a pair reached: {lost} by A, {gained} by B.": lost or gained,
        f"Unclear, so that more repetitions or seeds would help: {count[Verdict.UNCLEAR]}.": count[Verdict.UNCLEAR],
        f"Too few pairs to tell: {plural(count[Verdict.TOO_FEW], 'ratio')}{slow}.": count[Verdict.TOO_FEW],
        "A and B were made under different conditions, so that times say little.": comparison.machine,
    })  # fmt: skip


def _holding(sentences: Mapping[str, object]) -> str:
    """Return the sentences that are true."""
    return " ".join(sentence for sentence, holds in sentences.items() if holds)


def basis(comparison: Comparison) -> list[str]:
    """Return what is compared, and what differs besides the results."""
    named = {f"only in {side}": cases for side, cases in zip("AB", comparison.unpaired, strict=True)}
    named["left out, because what A and B prove of the optimum contradicts the other"] = comparison.contradictory
    named["compared although their data differ (their fingerprints do)"] = comparison.other_data
    kinds = {"machine": comparison.machine, "environment": comparison.information, "limits": comparison.limits}
    return [
        f"{plural(comparison.pairs, 'pair')} compared, of {comparison.runs[0]} runs in A and {comparison.runs[1]} in B",
        *(f"{words}: {_cases(cases, _FEW)}" for words, cases in named.items() if cases),
        *(f"{kind}: {_differences(entries, comparison.pairs)}" for kind, entries in kinds.items() if entries),
    ]


def times_table(groups: Sequence[Group], targets: Sequence[float]) -> str:
    """Return the ratios of every solver on every problem as a Markdown table."""
    import pandas as pd

    titles = ["Problem", "Solver", "Pairs", "Verified", *(f"To {format_target(target)}" for target in targets)]
    rows = [
        [of.problem, of.solver, str(of.pairs), " -> ".join(map(str, of.verified)), *(_cell(cell, of.pairs) for cell in of.cells)]
        for of in groups
    ]
    return to_markdown(pd.DataFrame(rows, columns=pd.Index(titles), dtype="str"))


def _cell(cell: Cell, pairs: int) -> str:
    """``1.31 (1.27 to 1.35) slower``, with the number of pairs where not all entered."""
    words = []
    if (ratio := cell.ratio) is not None:
        few = cell.verdict == Verdict.TOO_FEW or ratio.low is None or ratio.high is None
        interval = "" if few else f" ({format_seconds(ratio.low or 0.0)} to {format_seconds(ratio.high or 0.0)})"
        of = "" if ratio.instances == pairs else f", {plural(ratio.instances, 'pair')}"
        words.append(f"{format_seconds(ratio.value)}{interval} {cell.verdict}{of}")
    words += [f"{word} {number}" for word, number in (("lost", cell.lost), ("gained", cell.gained)) if number]
    return ", ".join(words) or BLANK


def reading(comparison: Comparison) -> str:
    """Return what the ratios and their verdicts mean, as a list."""
    tested = sum(cell.verdict not in (None, Verdict.TOO_FEW) for cell in comparison.cells)
    each = _percent(float(f"{joint_confidence(CONFIDENCE, tested):.6g}"))
    joint = f"\n- The {plural(tested, 'interval')} in brackets hold together with {_percent(CONFIDENCE)} (each with {each})."
    return f"""\
- A number is the geometric mean of seconds in B over seconds in A, of the pairs of which both reached the gap: above 1 is slower. Times \
below {FLOOR_SECONDS:g} s count as that.{joint if tested else ""}
- slower, faster: the whole interval is beyond a change of {_percent(comparison.threshold)}; same: within; unclear: neither; \
too few: fewer than {FEWEST_PAIRS} pairs, no interval.
- lost, gained: pairs of which only A, only B reached the gap."""


def change(of: Change) -> str:
    """Return pairs whose status changed in the same way, in a line."""
    return f"{of.old} -> {of.new}: {_cases(of.cases, _MANY)}"


def _differences(entries: Sequence[Difference], pairs: int) -> str:
    return ", ".join(
        f"{entry.what} {entry.old} -> {entry.new}" + ("" if entry.pairs == pairs else f" ({plural(entry.pairs, 'pair')})")
        for entry in entries
    )


def _cases(cases: Sequence[str], most: int) -> str:
    """Return their number, and the names of the first."""
    more = f"; and {len(cases) - most} more" if len(cases) > most else ""
    return f"{len(cases)} ({'; '.join(cases[:most])}{more})"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
