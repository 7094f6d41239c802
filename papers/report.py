"""The report of an experiment, as parts: what is published beside ours, its tables and figures, what failed, where it was run."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench_mtl import InputError, Status
from bench_mtl.report import Part, article, environment_words, escaped, replace_files, to_csv, to_markdown
from bench_mtl.report.figures import figure_files
from papers.experiment import Experiment, Read, Section
from papers.index import experiment as experiment_of
from papers.judge import RULES, UNDECIDED, Judged, Reading, Verdict, judge, words
from papers.published import Claim
from papers.store import CellStore
from papers.values import NONE

#: How a cell may have ended that has an outcome.
_WITH_OUTCOME = (Status.VERIFIED, Status.INACCURATE)

#: The figure that stands in report.md, a copy of the first one.
COVER = "cover.svg"

#: Failed cells that are listed; statements that are named at the head; entries of a list in cells.csv.
_MOST_FAILURES, _MOST_NAMED, _LONGEST_LIST = 50, 8, 50

ANY_CODE = (
    "That one version of the code made all rows, or that this one would make the same, is not checked: they are read by their settings."
)


def read_folder(folder: Path, name: str = "", scale: str = "") -> tuple[Read, str, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the rows in a folder say, the scale (full where a cell is there that small has not), all rows, and their environments.

    Raises
    ------
    InputError : they cannot be read.
    """
    with CellStore(folder, name) as store:
        chosen = experiment_of(store.experiment)
        held = {each: store.rows(chosen.scale(each).grid) for each in ("small", "full")}
        scale = scale or ("full" if len(held["full"]) > len(held["small"]) else "small")
        rows = held[scale]
        environments = store.environments({row["environment_id"] for row in rows})
    return read_rows(chosen, rows), scale, rows, environments


def read_rows(chosen: Experiment, rows: Sequence[Mapping[str, Any]]) -> Read:
    """Return what rows say."""
    frame = pd.DataFrame([row for row in rows if row["status"] in _WITH_OUTCOME])
    values = chosen.values(frame) if len(frame) else pd.DataFrame(columns=["measure"])
    return Read(chosen, frame, values, tuple(each for claim in chosen.claims for each in judge(claim, values, chosen)))


def write_report(folder: Path, *, scale: str = "") -> tuple[Path, Counter[str]]:
    """Write report.md and report.html, their tables as CSV files and their figures beside the rows, from them alone.

    Return the path of report.md, and how many cells ended how.

    Raises
    ------
    InputError : the rows cannot be read, or the files cannot be written.
    """
    files, statuses = report_files(folder, scale=scale)
    try:
        replace_files(folder, files)
    except OSError as error:
        raise InputError(f"the report cannot be written to {folder}: {error}") from None
    return folder / "report.md", statuses


def report_files(folder: Path, *, scale: str = "", drawn: bool = True) -> tuple[dict[str, bytes], Counter[str]]:
    """Return all files of the report by name, figures and the page where `drawn`; and how many cells ended how."""
    read, scale, rows, environments = read_folder(folder, scale=scale)
    sections = [section for make in read.experiment.sections if len(read.rows) and (section := make(read)) is not None]
    svg = {each.name: figure_files(each.draw(), ["svg"])["svg"] for each in sections if drawn and each.draw is not None}
    introduction = f"# {escaped(read.experiment.title)}\n\n{read.experiment.source}. Made by `{_command(read.experiment, scale)}`."
    cells = len(read.experiment.scale(scale).grid)
    parts = [
        _found(read, cells - len(rows)),
        Part("What was run", _run(read.experiment, scale, cells, rows)),
        *_beside(read),
        *(_part(each, svg.get(each.name)) for each in sections),
        _failures(rows),
        *([Part("Environment", environment_words(environments))] if environments else []),
    ]
    files = {
        "report.md": _markdown(introduction, parts, sections).encode(),
        "comparison.csv": to_csv(comparison(read)),
        "values.csv": to_csv(read.values),
        "cells.csv": to_csv(pd.DataFrame([{key: _flat(value) for key, value in row.items()} for row in rows])),
        **{f"tables/{each.name}.csv": to_csv(each.digits) for each in sections if each.digits is not None},
        **{f"figures/{name}.svg": drawing for name, drawing in svg.items()},
    }
    if svg:
        files[COVER] = next(iter(svg.values()))
    if drawn:
        files["report.html"] = article(read.experiment.title, introduction, parts)
    return files, Counter(str(row["status"]) for row in rows)


def differences_of(folder: Path) -> list[str]:
    """Return the lines in which report.md and its tables of text are not what the rows give, as a unified diff.

    Raises
    ------
    InputError : there is no report, or the rows cannot be read.
    """
    if not (folder / "report.md").is_file():
        raise InputError(f"{folder} has no report.md to compare")
    lines: list[str] = []
    for name, content in report_files(folder, drawn=False)[0].items():
        held = (folder / name).read_text(encoding="utf-8") if (folder / name).is_file() else ""
        lines += difflib.unified_diff(
            held.splitlines(), content.decode().splitlines(), str(folder / name), "from the rows", lineterm="", n=0
        )
    return lines


def comparison(read: Read) -> pd.DataFrame:
    """Return the claims with their verdicts as a table, one row each."""
    return pd.DataFrame(
        [
            {"what": what(each), "where": each.claim.where, "published": said(each.claim, read.experiment), "ours": each.ours,
             "verdict": str(each.verdict),
             "here": each.reading, "why": each.why, "published_value": each.claim.number if each.claim.is_number else None,
             "our_value": None if math.isnan(each.value) else each.value}
            for each in read.judged
        ]
    )  # fmt: skip


def what(each: Judged) -> str:
    """Return what a claim is about: where it is, its measure, of a number its subject, and its statement."""
    claim = each.claim
    names = [values[0] if column == "data" else f"{column} {values[0]}" for column, values in claim.places.items() if len(values) == 1]
    subject = claim.subject if claim.is_number and claim.subject != "*" else ""
    about = ", ".join(filter(None, [*(name for name in names if "*" not in name), claim.measure, subject, each.case]))
    return f"{about}: {claim.statement}" if claim.statement else about


def said(claim: Claim, experiment: Experiment) -> str:
    """Return what is published, in short."""
    if claim.is_number:
        return " ± ".join(filter(None, [claim.published, claim.deviation]))
    if claim.relation in UNDECIDED:
        return claim.published or NONE
    names = {"*": "all", "": ""}
    subject, rival = (
        " and ".join(names.get(name, experiment.text(name)) for name in side.split("|")) for side in (claim.subject, claim.rival)
    )
    parts = [subject, claim.relation, f"{rival} others" if rival == "all" else rival or claim.published]
    return " ".join(filter(None, [*parts, f"(margin {claim.margin})" if claim.margin else ""]))


def totals(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return how many statements and numbers have each verdict."""
    rows = []
    for is_number, kind in ((False, "statements"), (True, "numbers")):
        counts = Counter(each.verdict for each in judged if each.claim.is_number is is_number)
        if counts:
            rows.append([kind, *(str(counts[verdict]) for verdict in Verdict), str(counts.total())])
    if len(rows) == 2:
        counts = Counter(each.verdict for each in judged)
        rows.append(["together", *(str(counts[verdict]) for verdict in Verdict), str(len(judged))])
    return pd.DataFrame(rows, columns=["", *map(str, Verdict), "all"], dtype="str")


def found_words(judged: Sequence[Judged]) -> str:
    """Return which statements have which verdict, and what those on other data say there, in Markdown."""
    lines = []
    for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.DEPENDS):
        lines += _named(str(verdict), [each for each in judged if each.verdict is verdict and not each.claim.is_number])
    for reading in (Reading.HOLDS, Reading.FAILS, "depends", Reading.OPEN):
        lines += _named(
            f"on other data: {reading}", [each for each in judged if each.verdict is Verdict.OTHER_DATA and each.reading == reading]
        )
    return "\n".join(lines)


def _named(title: str, judged: Sequence[Judged]) -> list[str]:
    names = list(dict.fromkeys(what(each) for each in judged))
    more = f"; {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [f"- **{title}** ({len(judged)}): {escaped('; '.join(names[:_MOST_NAMED]))}{more}."] if names else []


def _found(read: Read, missing: int) -> Part:
    """Return what comes first: how many statements and numbers have which verdict, and which statements."""
    warning = f"**{missing} cells are missing: the same command goes on from here.**" if missing else ""
    others = [f"the paper's data could not be had; ours are {read.experiment.other_data}"] if read.experiment.other_data else []
    others += [f"{theirs} could not be had; in its place {ours}" for theirs, ours in read.experiment.stand_ins.items()]
    note = f"{'; '.join(others)}. What is compared on them is counted as other data, neither reproduced nor not." if others else ""
    return Part("What was found", "\n\n".join(filter(None, [warning, found_words(read.judged), escaped(note[:1].upper() + note[1:])])),
                table=totals(read.judged))  # fmt: skip


def _command(experiment: Experiment, scale: str) -> str:
    return f"python -m papers {experiment.name} --scale {scale}"


def _run(experiment: Experiment, scale: str, cells: int, rows: Sequence[Mapping[str, Any]]) -> str:
    seconds = sum(float(row["seconds"]) for row in rows)
    done = f"{len(rows)} of {cells} cells are done, in {seconds:.0f} s of computing."
    return "\n\n".join([experiment.about.strip("\n"), f"Scale `{scale}`: {experiment.scale(scale).sentence} {done}", ANY_CODE])


def _beside(read: Read) -> Iterator[Part]:
    """Yield the published statements and numbers beside ours, and how many of each protocol decides."""
    statements, numbers = ([each for each in read.judged if each.claim.is_number is kind] for kind in (False, True))
    relations = dict.fromkeys(each.claim.relation.removeprefix("exponent ") for each in read.judged)
    rules = "\n".join(f"- {escaped(rule)}" for name, rule in RULES.items() if name in relations)
    about = f"Intervals are 95 % t intervals over the repetitions. A claim holds where it does at every place that it names.\n\n{rules}"
    if read.experiment.protocols:
        names = ", ".join(map(read.experiment.head, read.experiment.protocols))
        about += f"\n\nProtocols differ in {names}; where some say yes and others no, the claim depends on the protocol."
    if statements:
        rows = [
            [f"{what(each)} ({each.claim.where})", said(each.claim, read.experiment), each.ours, shown(each), each.why]
            for each in statements
        ]
        yield Part("Published statements", about, table=_table(["Statement", "Published", "Ours", "Verdict", "Why"], rows))
    if numbers:
        heads = ["Number", "Published", "Ours", "Difference", *(["Nearest"] if read.experiment.protocols else []), "Verdict", "Why"]
        rows = [[f"{what(each)} ({each.claim.where})", said(each.claim, read.experiment), each.ours, _difference(each),
                 *([_nearest(each)] if read.experiment.protocols else []), shown(each), each.why] for each in numbers]  # fmt: skip
        after = "The difference is that of the default protocol, which is the first of each choice. " if read.experiment.protocols else ""
        after += "That a protocol's number is the nearest does not make it the paper's: of many one is near by chance too." if after else ""
        yield Part("Published numbers", "" if statements else about, table=_table(heads, rows), after=after)
    if read.experiment.protocols:
        yield Part(
            "Under each protocol", "Of all claims, how many hold under a protocol, do not, and are open.", table=_by_protocol(read.judged)
        )


def shown(each: Judged) -> str:
    """Return a verdict, and of a statement on other data what ours say there."""
    return f"{each.verdict} ({each.reading})" if each.reading else str(each.verdict)


def _difference(each: Judged) -> str:
    number = each.claim.number
    return NONE if number is None or math.isnan(each.value) else f"{each.value - number:+.3g}"


def _nearest(each: Judged) -> str:
    number, values = each.claim.number, each.by_protocol
    if number is None or not values:
        return NONE
    nearest = min(values, key=lambda protocol: abs(values[protocol].value - number))
    return f"{values[nearest].ours}: {words(nearest)}"


def _by_protocol(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return a line for the claims of a measure under each protocol that matters to it, and under the one that suits each claim best."""
    counts: dict[tuple[str, str], Counter[Reading]] = {}
    names = (Reading.HOLDS, Reading.OPEN, Reading.FAILS)
    for each in judged:
        claims = f"{'numbers' if each.claim.is_number else 'statements'}, {each.claim.measure}"
        readings = {words(protocol): outcome.reading for protocol, outcome in each.by_protocol.items()}
        for protocol, reading in {**readings, "the best for each": min(readings.values(), key=names.index, default=Reading.OPEN)}.items():
            counts.setdefault((claims, protocol), Counter())[reading] += bool(readings)
    rows = [[*key, *(str(count[name]) for name in names)] for key, count in counts.items() if count.total()]
    order = {claims: place for place, (claims, _) in reversed(list(enumerate(counts)))}
    last = [row[1] == "the best for each" for row in rows]
    rows = [row for _, _, row in sorted(zip((order[row[0]] for row in rows), last, rows, strict=True), key=lambda item: item[:2])]
    return _table(["Claims", "Protocol", *(name.capitalize() for name in names)], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(heads), dtype="str")


def _part(section: Section, svg: bytes | None) -> Part:
    return Part(section.title, section.words, figure=svg, table=section.table, after=section.after, name=section.name)


def _markdown(introduction: str, parts: Sequence[Part], sections: Sequence[Section]) -> str:
    """Return report.md: its first figure is the cover, the others are named, and so are the digits of tables."""
    by_name = {section.name: section for section in sections if section.name}
    figures = [section.name for section in sections if section.draw is not None]
    blocks = [introduction]
    for part in parts:
        section = by_name.get(part.name)
        picture = f"Figure: `figures/{part.name}.svg`" if part.name in figures else ""
        if part.name in figures[:1]:
            picture = f"![{escaped(part.title)}]({COVER})"
        digits = f"All digits: `tables/{part.name}.csv`" if section is not None and section.digits is not None else ""
        blocks += [
            f"## {escaped(part.title)}",
            part.words,
            picture,
            "" if part.table is None else to_markdown(part.table),
            part.after,
            digits,
        ]
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _failures(rows: Sequence[Mapping[str, Any]]) -> Part:
    title, failed = "Cells without an outcome", [row for row in rows if row["status"] not in _WITH_OUTCOME]
    if not failed:
        return Part(title, "Every cell that was run has one.")
    hidden = ("status", "reason", "seconds", "environment_id")
    table = [[", ".join(f"{key} {row[key]}" for key in row if key not in hidden), row["status"], row["reason"]] for row in failed]
    rest = f"{len(failed) - _MOST_FAILURES} more in cells.csv." if len(failed) > _MOST_FAILURES else ""
    return Part(title, table=_table(["Cell", "Status", "Reason"], table[:_MOST_FAILURES]), after=rest)


def _flat(value: object) -> object:
    if isinstance(value, list) and len(value) > _LONGEST_LIST:
        return f"{len(value)} values, in cells.sqlite"  # such as a picture
    return str(value) if isinstance(value, (list, dict)) else value
