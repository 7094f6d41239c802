"""Checks a published report against its rows: every block of report.md goes to the rule that derives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import zip_longest
from pathlib import Path

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import visible
from bench_mtl.report.check import findings, patterns, places, problems, provenance
from bench_mtl.report.check.cells import said_to_be_left_out
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.document import Block, blocks, readable, table
from bench_mtl.report.check.faults import Fault, Finding
from bench_mtl.report.check.raised import missing_fold, raised_faults
from bench_mtl.report.check.rows import SPECIALISED, VERIFIED, read_rows
from bench_mtl.report.check.tables import UNCHECKED, faults_of_table, missing_tables

REPORT = "report.md"

FINDINGS = "What it says"

_WORDS = {"How to read this": "reading", "Known limitations": "limitations"}
_LAST = (
    "Across problems",
    "Measures",
    "Scaling",
    "Workers",
    "Communication",
    "Times",
    "Tolerances asked",
    "Objectives",
    "Not verified",
    *_WORDS,
    "Environment",
    "Suite",
)


@dataclass(frozen=True)
class Checked:
    """What a check of a report has found."""

    faults: tuple[Fault, ...]
    blocks: int
    """How many paragraphs, lists, tables and other parts were derived."""
    unchecked: tuple[str, ...]
    """Names of the tables that no rule derives."""


def check_report(folder: Path) -> Checked:
    """Return what in the report of the results in `folder` does not follow from its rows.

    Raises
    ------
    InputError : there are no readable results, or no report.md, or it is a view of the results.
    """
    path = folder / REPORT
    if not path.is_file():
        raise InputError(f"{folder} has no {REPORT} to check (bench-mtl report {folder} writes one)")
    derived = Derived(read_rows(folder))
    parts = blocks(path.read_text(encoding="utf-8"))
    if any(patterns.VIEW.fullmatch(readable(block.text)) for block in parts if not block.section):
        raise InputError(f"{path} is a view of the results (--target, --baseline or --select), which --check does not cover")
    found = tuple(finding.of(path) for finding in (*_faults(parts, derived), *_missing(parts, derived)))
    unchecked = {name for block in parts if block.kind == "table" for title, name in UNCHECKED.items() if title in table(block).titles}
    return Checked(found, sum(block.kind != "heading" for block in parts), tuple(sorted(unchecked)))


def _faults(parts: Sequence[Block], derived: Derived) -> Iterator[Finding]:
    has_figures = any(patterns.FIGURE.fullmatch(block.text) for block in parts)
    for before, block, following in zip_longest([None, *parts[:-1]], parts, parts[1:]):
        assert block is not None
        if block.kind == "heading":
            yield from _heading(block, derived)
        elif block.section in _WORDS:
            continue  # compared as a whole
        elif block.section == "Suite":
            yield from _suite(block, derived)
        elif block.kind == "code" and block.section == patterns.FAILURES:
            yield from raised_faults(block, derived.rows.runs)
        elif block.kind == "code":
            yield from _command(block, derived)
        elif block.kind == "table":
            yield from _table(block, following, derived)
        elif block.kind == "list":
            yield from _list(block, derived)
        else:
            is_below = not has_figures or (before is not None and patterns.FIGURE.fullmatch(before.text) is not None)
            yield from _paragraph(block, derived, is_below_figure=is_below)


def _heading(block: Block, derived: Derived) -> Iterator[Finding]:
    text = readable(block.text)
    if text.startswith("# ") and text != f"# {' '.join(derived.rows.name.split())}":
        yield block.fault(f"the suite is {derived.rows.name}")
    known = (FINDINGS, *_LAST, *derived.rows.by_problem)
    if text.startswith("## ") and text.removeprefix("## ") not in known:
        yield block.fault("no problem of the rows is called so")


def _command(block: Block, derived: Derived) -> Iterator[Finding]:
    command = "\n".join(block.lines[1:-1])
    first = visible(derived.rows.text.partition("\n")[0].removeprefix("# "))
    if patterns.WITHOUT_FILE.match(first):
        if command != first:
            yield block.fault(f"the rows were made by {first}")
        return
    match = patterns.COMMAND.fullmatch(command)
    if match is None or match["suite"] not in (derived.rows.name, "SUITE.toml"):
        yield block.fault(findings.UNDERIVED)


def _suite(block: Block, derived: Derived) -> Iterator[Finding]:
    from bench_mtl.report.text import verbatim

    if block.text != verbatim(derived.rows.text, "toml"):
        yield block.fault("this is not the suite file of the rows")


def _list(block: Block, derived: Derived) -> Iterator[Finding]:
    if not block.section:
        yield from provenance.provenance_faults(block, derived.rows)
    elif block.section == FINDINGS:
        yield from findings.bullet_faults(block, derived)
    elif block.section in derived.rows.by_problem:
        yield from problems.list_faults(block, derived, block.section)
    else:
        yield block.fault(findings.UNDERIVED)


def _table(block: Block, following: Block | None, derived: Derived) -> Iterator[Finding]:
    found = table(block)
    yield from found.broken_faults()
    left_out = None if following is None else said_to_be_left_out(following.text)
    problem = block.section if block.section in derived.rows.by_problem and block.section not in (FINDINGS, *_LAST) else ""
    if block.section == "Environment":
        yield from provenance.environment_faults(found, derived.rows)
    elif not set(UNCHECKED) & set(found.titles):
        faults = faults_of_table(found, derived, problem, left_out or 0)
        yield from [block.fault("no rule derives this table")] if faults is None else faults


def _paragraph(block: Block, derived: Derived, *, is_below_figure: bool) -> Iterator[Finding]:
    """Yield the faults of a paragraph; a report that was written without any figure has their captions all the same."""
    text = readable(block.text)
    if not block.section:
        yield from provenance.notice_faults(block, derived.rows)
    elif text.startswith("**CONTRADICTION"):
        yield from problems.contradiction_faults(block, derived)
    elif block.section == "Environment":
        yield from provenance.started_faults(block, derived.rows)
    elif text in (patterns.NO_FAILURE, patterns.NO_POINT):
        yield from _whole(block, text, derived)
    elif block.section == patterns.FAILURES and block.text in (patterns.FOLD, patterns.FOLD_END):
        return  # that both are there with what is between them is looked at as a whole
    elif patterns.FIGURE.fullmatch(block.text) or said_to_be_left_out(block.text) is not None or block.text in _explanations():
        return  # what is left out is counted with the table above it
    elif block.section == FINDINGS:
        yield from _findings_paragraph(block, derived)
    elif (caption := patterns.CAPTION.fullmatch(block.text)) is not None and (is_below_figure or caption["name"]):
        return
    elif patterns.matched(patterns.PLACES, text):
        yield from places.place_faults(block, derived)
    elif block.section in derived.rows.by_problem:
        yield from problems.paragraph_faults(block, derived, block.section)
    else:
        yield block.fault(findings.UNDERIVED)


def _findings_paragraph(block: Block, derived: Derived) -> Iterator[Finding]:
    caption = patterns.CAPTION.fullmatch(block.text)
    if caption is not None:
        yield from _map(block, readable(caption["words"]), derived)
    elif block.text == patterns.NO_MAP:
        if any(contest.ratio is not None for contest in derived.contests.values()):
            yield block.fault("the rows give ratios")
    else:
        yield from findings.head_faults(block, derived)


def _map(block: Block, words: str, derived: Derived) -> Iterator[Finding]:
    """Yield the sentences below the map of speed-ups that its figure does not say of the derived ratios."""
    true = patterns.MAP_BREAK.split(_map_words(derived))
    for sentence in patterns.MAP_BREAK.split(words):
        if sentence not in true:
            yield block.fault("this is not what the figure says of the rows' ratios", sentence)


def _map_words(derived: Derived) -> str:
    """Return what the map of speed-ups of the derived ratios says below it."""
    import pandas as pd

    from bench_mtl.report.figures.speed_ups import caption

    rows = []
    for contest in derived.contests.values():
        is_slower = contest.winner is not None and contest.winner.kind != SPECIALISED
        ratio = float("nan") if contest.ratio is None else 1.0 / contest.ratio if is_slower else contest.ratio
        bound = ("<=" if is_slower else ">=") if contest.is_bound else ""
        rows.append({"problem": contest.problem, "target": contest.target, "speed_up": ratio, "bound": bound})
    return caption(pd.DataFrame(rows))


def _whole(block: Block, text: str, derived: Derived) -> Iterator[Finding]:
    if text == patterns.NO_FAILURE and any(run.status != VERIFIED for run in derived.rows.runs):
        yield block.fault("not every run is verified")
    if text == patterns.NO_POINT and derived.enclosures:
        yield block.fault("the rows have proven points")


@cache
def _explanations() -> frozenset[str]:
    """Return what says how tables and figures are made: words of the report, of no result."""
    from bench_mtl.report.contents import TABLES
    from bench_mtl.report.text import NAMED_FIGURES

    return frozenset({NAMED_FIGURES, *(kind.explanation.strip() for kind in TABLES.values())})


def _missing(parts: Sequence[Block], derived: Derived) -> Iterator[Finding]:
    """Yield what a report must say and does not, and sections of fixed words that say something else."""
    first = parts[0]
    for why in provenance.missing_notices([block for block in parts if not block.section and block.kind == "paragraph"], derived.rows):
        yield first.fault(why)
    said = [block for block in parts if block.section == FINDINGS]
    counted = findings.targets_counted([block for block in said if block.kind == "paragraph"])
    for target in derived.rows.targets:
        if counted.count(target) != 1:
            yield (said or [first])[0].fault(f"wins to {target:g} are counted {counted.count(target)} times")
    for why in findings.missing_in_head([block for block in said if block.kind == "paragraph"], derived):
        yield (said or [first])[0].fault(why)
    if not any(block.kind == "list" for block in said):
        yield (said or [first])[0].fault("the findings are not there")
    if not any(block.kind == "list" and not block.section for block in parts):
        yield first.fault("where the runs come from is not there")
    headings = [block.section for block in parts if block.kind == "heading"]
    for problem in derived.rows.by_problem:
        if problem not in headings:
            yield first.fault(f"the problem {problem} has no section")
            continue
        of_problem = [block for block in parts if block.section == problem]
        for why in problems.missing(of_problem[1:], derived, problem):
            yield of_problem[0].fault(why)
    yield from _missing_parts(parts, derived)
    yield from _fixed_words(parts, derived)


def _missing_parts(parts: Sequence[Block], derived: Derived) -> Iterator[Finding]:
    """Yield the tables, warnings and last sections that a report must have and has not."""

    def of(section: str, kind: str) -> list[Block]:
        return [block for block in parts if block.section == section and block.kind == kind]

    first = parts[0]
    outside = [table(block) for block in parts if block.kind == "table" and block.section not in derived.rows.by_problem]
    for why in missing_tables(outside, derived):
        yield first.fault(why)
    for section in (FINDINGS, *(["Objectives"] if derived.enclosures else [])):
        for why in problems.missing_warnings(of(section, "paragraph"), derived):
            yield (of(section, "heading") or [first])[0].fault(why)
    if why := missing_fold(parts, derived.rows.runs):
        yield (of(patterns.FAILURES, "heading") or [first])[0].fault(why)
    is_verified = all(run.status == VERIFIED for run in derived.rows.runs)
    wanted = {
        "the table of environments": of("Environment", "table"),
        "when the runs were started": [block for block in of("Environment", "paragraph") if patterns.STARTED.fullmatch(block.text)],
        "the suite": of("Suite", "code"),
        f"'{patterns.NO_FAILURE}'": [block for block in of("Not verified", "paragraph") if block.text == patterns.NO_FAILURE],
        f"'{patterns.NO_POINT}'": [block for block in of("Objectives", "paragraph") if block.text == patterns.NO_POINT],
    }
    needless = {f"'{patterns.NO_FAILURE}'": not is_verified, f"'{patterns.NO_POINT}'": bool(derived.enclosures)}
    for name, found in wanted.items():
        if not found and not needless.get(name, False):
            yield first.fault(f"{name} is not there")


def _fixed_words(parts: Sequence[Block], derived: Derived) -> Iterator[Finding]:
    """Yield the sections that say how to read a report, and what it does not say, where these are other words."""
    from bench_mtl.report.text import LIMITATIONS, reading

    counts: dict[tuple[str, str], int] = {}
    for run in derived.rows.runs:
        counts[run.instance, run.label] = counts.get((run.instance, run.label), 0) + 1
    once = ", the more so as every case was run once" if max(counts.values()) == 1 else ""
    true = {"reading": reading(run.kind for run in derived.rows.runs), "limitations": LIMITATIONS.format(repeated=once)}
    for section, name in _WORDS.items():
        found = [block for block in parts if block.section == section and block.kind != "heading"]
        wanted = [line for line in true[name].split("\n") if line]
        said = [(block, block.line + place, line) for block in found for place, line in enumerate(block.lines)]
        last = (said or [(parts[-1], parts[-1].line, "")])[-1]
        for tag, low, high, start, end in SequenceMatcher(None, wanted, [line for *_, line in said], autojunk=False).get_opcodes():
            for block, number, line in said[start:end] if tag != "equal" else ():
                yield block.fault("these are not the words of this section", line, number)
            if tag == "delete":
                block, number, _ = said[start] if start < len(said) else last
                yield block.fault(f"{high - low} lines of '{section}' are not there", wanted[low], number)
