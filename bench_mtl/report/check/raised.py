"""What a report shows, folded, of the lines of code where runs raised: derived again from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench_mtl.core.text import one_line, visible
from bench_mtl.report.check import patterns
from bench_mtl.report.check.document import Block
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.rows import Place, Run

#: Characters of a reason, of the names of a file and of a function, and of a line of code.
_REASON, _FILE, _FUNCTION, _SOURCE = 2_000, 300, 200, 200

#: Of one run how many lines are shown, and how many tracebacks in all.
_MOST_LINES, _MOST = 5, 100

#: The status of a run that raised.
_ERROR = "error"


def raised_at(run: Run) -> str:
    """Return file and line of the last of its author's lines of code that the exception of a run passed; empty where there is none."""
    return _at(run.places[-1]) if run.places else ""


def _at(place: Place) -> str:
    return f"{one_line(place.file, _FILE)}:{place.line}"


def raised(runs: Sequence[Run]) -> str:
    """Return what the code block says; empty where no run has a place, so that there is none."""
    named: dict[str, list[str]] = {}
    for run in runs:
        if run.status == _ERROR and run.places:
            named.setdefault("\n".join(_lines(run)), []).append(f"{run.label} on {run.problem}")
    texts = [f"{who[0]}{f' and {len(who) - 1} more' if who[1:] else ''}\n{lines}" for lines, who in named.items()]
    left = len(texts) - _MOST
    rest = [f"and {left} other traceback{'' if left == 1 else 's'}"] if left > 0 else []
    return visible("\n\n".join([*texts[:_MOST], *rest]))


def _lines(run: Run) -> Iterator[str]:
    yield f"  {one_line(run.reason, _REASON)}"
    for place in run.places[-_MOST_LINES:]:
        yield f"  {_at(place)}, in {one_line(place.function, _FUNCTION)}"
        if source := one_line(place.source, _SOURCE):
            yield f"    {source}"


def raised_faults(block: Block, runs: Sequence[Run]) -> Iterator[Finding]:
    """Yield the fault of a code block that does not say where the runs raised."""
    said = "\n".join(block.lines[1:-1])
    if said != raised(runs).rstrip():
        yield block.fault("this is not where the runs raised")


def missing_fold(parts: Sequence[Block], runs: Sequence[Run]) -> str:
    """Say what of the folded part of the section is not there, or there for nothing; empty where all is right."""
    texts = [block.text for block in parts if block.section == patterns.FAILURES and block.kind == "paragraph"]
    codes = [block for block in parts if block.section == patterns.FAILURES and block.kind == "code"]
    wanted = 1 if raised(runs) else 0
    found = {len(codes), texts.count(patterns.FOLD), texts.count(patterns.FOLD_END)}
    return "" if found == {wanted} else f"where the runs raised is {'not there' if wanted else 'there, and no run of the rows has'}"
