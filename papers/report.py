"""The report of an experiment, as parts: what is published beside ours, its tables and figures, what failed, where it was run."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench_mtl import InputError, Status
from bench_mtl.report import Document, Part, environment_words, escaped, markdown, page, replace_files, to_csv
from bench_mtl.report.figures import figure_files
from papers.experiment import Experiment, Read, Section
from papers.index import experiment as experiment_of
from papers.judge import RULES, UNDECIDED, Judged, Reading, Verdict, digits, judge, words
from papers.published import Claim
from papers.store import WITH_OUTCOME, CellStore
from papers.values import NONE, SEED

#: The protocol that suits a claim best, as tables call it.
_BEST = "the best for each"

#: The figure that stands in report.md, a copy of the first one.
COVER = "cover.svg"

#: Failed cells that are listed; statements that are named at the head; entries of a list in cells.csv.
_MOST_FAILURES, _MOST_NAMED, _LONGEST_LIST = 50, 8, 50

_ANY_CODE = "That one version of the code made all rows, or would make the same, is not checked: they are read by their settings."


def read_folder(folder: Path, name: str = "", scale: str = "") -> tuple[Read, str, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the rows in a folder say, the scale (full where a cell is there that small has not), all rows, and their environments."""
    with CellStore(folder, name) as store:
        chosen = experiment_of(store.experiment)
        held = {each: store.rows(chosen.scale(each).grid) for each in ("small", "full")}
        scale = scale or ("full" if len(held["full"]) > len(held["small"]) else "small")
        rows = held[scale]
        environments = store.environments({row["environment_id"] for row in rows})
    return read_rows(chosen, rows), scale, rows, environments


def read_rows(chosen: Experiment, rows: Sequence[Mapping[str, Any]]) -> Read:
    """Return what rows say."""
    frame = pd.DataFrame([row for row in rows if row["status"] in WITH_OUTCOME])
    values = chosen.values(frame) if len(frame) else pd.DataFrame(columns=["measure"])
    return Read(chosen, frame, values, tuple(each for claim in chosen.claims for each in judge(claim, values, chosen)))


def write_report(folder: Path, *, scale: str = "") -> tuple[Path, Counter[str]]:
    """Write all files of the report beside the rows, from them alone; return the path of report.md, and how many cells ended how."""
    files, statuses = report_files(folder, scale=scale)
    try:
        replace_files(folder, files)
    except OSError as error:
        raise InputError(f"the report cannot be written to {folder}: {error}") from None
    return folder / "report.md", statuses


def report_files(folder: Path, *, scale: str = "", drawn: bool = True) -> tuple[dict[str, bytes], Counter[str]]:
    """Return all files of the report by name, figures and the page where `drawn`; and how many cells ended how."""
    read, scale, rows, environments = read_folder(folder, scale=scale)
    title = read.experiment.title
    sections = [section for make in read.experiment.sections if len(read.rows) and (section := make(read)) is not None]
    cover = next((each for each in sections if each.draw is not None), None)
    introduction = f"# {escaped(title)}\n\n{read.experiment.source}. Made by `python -m papers {read.experiment.name} --scale {scale}`."
    before = [_found(read, scale, rows), Part("What was run", _run(read.experiment, scale, rows)), *_beside(read)]
    last = [_failures(rows), *([Part("Environment", environment_words(environments))] if environments else [])]
    shown = [_part(each, is_cover=each is cover) for each in sections]
    files = {
        "report.md": markdown(Document(title, introduction, (*before, *shown, *last))).encode(),
        "comparison.csv": to_csv(comparison(read)),
        "values.csv": to_csv(read.values),
        "cells.csv": to_csv(pd.DataFrame([{key: _flat(value) for key, value in row.items()} for row in rows])),
        **{f"tables/{each.name}.csv": to_csv(each.digits) for each in sections if each.digits is not None},
    }
    if drawn:
        svg = {each.name: figure_files(each.draw(), ["svg"])["svg"] for each in sections if each.draw is not None}
        files |= {f"figures/{name}.svg": drawing for name, drawing in svg.items()}
        files |= {COVER: svg[cover.name]} if cover is not None else {}
        files["report.html"] = page(
            Document(title, introduction, (*before, *(_part(each, svg.get(each.name)) for each in sections), *last))
        )
    return files, Counter(str(row["status"]) for row in rows)


def differences_of(folder: Path) -> list[str]:
    """Return the lines in which report.md, and the tables of text that are there, are not what the rows give, as a unified diff."""
    if not (folder / "report.md").is_file():
        raise InputError(f"{folder} has no report.md to compare")
    scale = re.search(r"--scale (small|full)`", (folder / "report.md").read_text(encoding="utf-8"))
    return differing_lines(folder, report_files(folder, scale=scale[1] if scale else "", drawn=False)[0])


def differing_lines(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Return the lines in which files that are in the folder have other content, as a unified diff."""
    lines: list[str] = []
    for name, content in files.items():
        if (folder / name).is_file():  # a repository leaves out what can be made again
            held = (folder / name).read_text(encoding="utf-8").splitlines()
            lines += difflib.unified_diff(held, content.decode().splitlines(), str(folder / name), "from the rows", lineterm="", n=0)
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
    statements, numbers = ([each for each in judged if each.claim.is_number is kind] for kind in (False, True))
    kinds = {"statements": statements, "numbers": numbers, "together": judged if statements and numbers else ()}
    rows = [
        [kind, *(str(sum(each.verdict is verdict for each in of)) for verdict in Verdict), str(len(of))] for kind, of in kinds.items() if of
    ]
    return _table(["", *map(str, Verdict), "all"], rows)


def found_words(judged: Sequence[Judged]) -> str:
    """Return which statements have which verdict, and what those on other data say there, in Markdown."""
    named: dict[str, list[str]] = {str(verdict): [] for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.DEPENDS)}
    named |= {f"on other data: {reading}": [] for reading in (Reading.HOLDS, Reading.FAILS, "depends", Reading.OPEN)}
    for each in judged:
        title = f"on {each.verdict}: {each.reading}" if each.reading else str(each.verdict)
        if title in named and not each.claim.is_number:
            named[title].append(what(each))
    lines = []
    for title, every in named.items():
        names = list(dict.fromkeys(every))
        more = f"; {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        lines += [f"- **{title}** ({len(every)}): {escaped('; '.join(names[:_MOST_NAMED]))}{more}."] if names else []
    return "\n".join(lines)


def _found(read: Read, scale: str, rows: Sequence[Mapping[str, Any]]) -> Part:
    """Return what comes first: how many statements and numbers have which verdict, which statements, and what leaves them open."""
    missing = len(read.experiment.scale(scale).grid) - len(rows)
    warning = f"**{missing} cells are missing: the same command goes on from here.**" if missing else ""
    others = [f"the paper's data could not be had; ours are {read.experiment.other_data}"] if read.experiment.other_data else []
    others += [f"{theirs} could not be had; in its place {ours}" for theirs, ours in read.experiment.stand_ins.items()]
    note = f"{'; '.join(others)}. What is compared on them is counted as other data, neither reproduced nor not." if others else ""
    words = _joined(warning, found_words(read.judged), escaped(note[:1].upper() + note[1:]))
    count = sum(row["status"] == Status.INACCURATE for row in rows)
    inaccurate = f"{count} of {len(rows)} cells {_INACCURATE}" if count else ""
    return Part("What was found", words, table=totals(read.judged), after=_joined(_small(read, scale, len(rows)), inaccurate))


def _small(read: Read, scale: str, cells: int) -> str:
    """Return why a small scale decides little."""
    if scale != "small":
        return ""
    seeds = read.rows[SEED].nunique() if SEED in read.rows else 0
    few = {0: "", 1: " and one repetition, which has no interval"}.get(seeds, f" and {seeds} repetitions at most, whose intervals are wide")
    return (
        f"The small scale has {cells} of {len(read.experiment.scale('full').grid)} cells{few}: what these do not decide cannot be known "
        f"here, or was not run; `python -m papers {read.experiment.name} --scale full` runs all."
    )


_INACCURATE = (
    "count as inaccurate: they have an outcome, and no proof of a wanted gap, be it that a rule, a number of steps or a limit ended them, "
    "that their learner has no bound, or that they measure a time."
)


def _run(experiment: Experiment, scale: str, rows: Sequence[Mapping[str, Any]]) -> str:
    seconds, chosen = sum(float(row["seconds"]) for row in rows), experiment.scale(scale)
    done = f"{len(rows)} of {len(chosen.grid)} cells are done, in {seconds:.0f} s of computing."
    return _joined(experiment.about, f"Scale `{scale}`: {chosen.sentence} {done}", _ANY_CODE)


def _beside(read: Read) -> Iterator[Part]:
    """Yield the published statements and numbers beside ours, and how many of each protocol decides."""
    relations = {each.claim.relation for each in read.judged}
    rules = "\n".join(f"- {escaped(rule)}" for name, rule in RULES.items() if name in relations)
    about = f"Intervals are 95 % t intervals over the repetitions. A claim holds where it does at every place that it names.\n\n{rules}"
    protocols = read.experiment.protocols
    if protocols:
        names = ", ".join(map(read.experiment.head, protocols))
        about += f"\n\nProtocols differ in {names}; where some say yes and others no, the claim depends on the protocol."
    for is_number, title in ((False, "Published statements"), (True, "Published numbers")):
        if rows := [_row(each, read.experiment) for each in read.judged if each.claim.is_number is is_number]:
            yield Part(title, about, table=pd.DataFrame(rows, dtype="str"), after=_AFTER_NUMBERS if is_number and protocols else "")
            about = ""
    if protocols:
        about = "Of all claims, how many hold under a protocol, do not, and are open."
        yield Part("Under each protocol", about, table=_by_protocol(read.judged))


_AFTER_NUMBERS = (
    "The difference is that of the default protocol, which is the first of each choice. "
    "That a protocol's number is the nearest does not make it the paper's: of many one is near by chance too."
)


def _row(each: Judged, experiment: Experiment) -> dict[str, str]:
    """Return the line of a claim; the nearest protocol's number is one of the columns where there are protocols."""
    is_number = each.claim.is_number
    number, values = each.claim.number if is_number else None, each.by_protocol
    row = {"Number" if is_number else "Statement": f"{what(each)} ({each.claim.where})",
           "Published": said(each.claim, experiment), "Ours": each.ours}  # fmt: skip
    if is_number:
        row["Difference"] = NONE if number is None or math.isnan(each.value) else digits(each.value - number, 3, "+")
    if is_number and experiment.protocols:
        nearest = min(values, key=lambda protocol: abs(values[protocol].value - (number or 0.0)), default=())
        row["Nearest"] = NONE if number is None or not values else f"{values[nearest].ours}: {words(nearest)}"
    return {**row, "Verdict": f"{each.verdict} ({each.reading})" if each.reading else str(each.verdict), "Why": each.why}


def _by_protocol(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return a line for the claims of a measure under each protocol that matters to it, and under the one that suits each claim best."""
    counts: dict[str, dict[str, Counter[Reading]]] = {}
    names = (Reading.HOLDS, Reading.OPEN, Reading.FAILS)
    for each in judged:
        if each.by_protocol:
            of = counts.setdefault(f"{'numbers' if each.claim.is_number else 'statements'}, {each.claim.measure}", {_BEST: Counter()})
            readings = {words(protocol): outcome.reading for protocol, outcome in each.by_protocol.items()}
            for protocol, reading in {**readings, _BEST: min(readings.values(), key=names.index)}.items():
                of.setdefault(protocol, Counter())[reading] += 1
    rows = [
        [claims, protocol, *(str(of[protocol][name]) for name in names)]
        for claims, of in counts.items()
        for protocol in [*(name for name in of if name != _BEST), _BEST]
    ]
    return _table(["Claims", "Protocol", *(name.capitalize() for name in names)], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(heads), dtype="str")


def _part(section: Section, svg: bytes | None = None, *, is_cover: bool = False) -> Part:
    """Return a section as a part with its drawing; without one, of report.md, it shows the cover or names the file of its figure."""
    file = f"![{escaped(section.title)}]({COVER})" if is_cover else f"Figure: `figures/{section.name}.svg`"
    place = "" if section.digits is None else f"All digits: `tables/{section.name}.csv`"
    text = _joined(section.words, file if section.draw is not None and svg is None else "")
    return Part(section.title, text, figure=svg, table=section.table, after=_joined(section.after, place), name=section.name)


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(text.strip("\n") for text in paragraphs if text)


def _failures(rows: Sequence[Mapping[str, Any]]) -> Part:
    title, failed = "Cells without an outcome", [row for row in rows if row["status"] not in WITH_OUTCOME]
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
