"""The report of an experiment: the published numbers beside ours, its own tables and figures, what failed, where it was run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import not_written
from bench_mtl.core.types import Status
from bench_mtl.papers.cells import Cell
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Section, Verdict
from bench_mtl.papers.index import experiment as experiment_of
from bench_mtl.papers.lines import Notes, paragraphs, table_lines, with_room
from bench_mtl.papers.store import CellStore
from bench_mtl.report import words
from bench_mtl.report.check import linked_forms
from bench_mtl.report.columns import BLANK, escaped, to_csv
from bench_mtl.report.figures import style
from bench_mtl.report.formats import COVER, COVER_FILE
from bench_mtl.report.page.article import Part, article
from bench_mtl.report.write import replace_files

if TYPE_CHECKING:
    import pandas as pd

_SCALE = re.compile(r"^Scale `(small|full)`", re.MULTILINE)

#: How a cell may have ended that has an outcome.
_WITH_OUTCOME = (Status.VERIFIED, Status.INACCURATE)

#: The formats that such a report can have: of the text, of tables, of figures. One may ask for `COVER`, too.
FORMATS = ("md", "html", "csv", "svg", "png")

#: In cells.csv; a file of rows that people open in a spreadsheet.
_LONGEST_LIST = 50

#: Failed cells that are listed one by one.
_MOST_FAILURES = 50

ANY_CODE = """\
Written from rows that were there: that one version of the code made all of them, or that this one would make the same, is not checked."""

_VERDICTS_TEXT = """\
"Reproduced" and "not reproduced" are said by the rule in the note; "depends on the protocol" where it holds under some readings of the
paper, or some conditions that it leaves open, and not under others; "not run" where this scale or this version leaves it out. What cannot
be known stands further below."""

_UNKNOWN_TEXT = """\
Neither reproduced nor not: the number, the data or the procedure is not in our copy of the document, or our own repetitions do not decide.
The note says which."""

FOUND, BESIDE, CANNOT = "What was found", "Published beside ours", "What cannot be known"

#: Statements that are named in the findings, for each reading.
_MOST_NAMED = 8

#: Characters of the cells of a comparison.
_ROOM = {"Published": 18, "Ours": 34}


def write_paper_report(
    store: CellStore, experiment: Experiment, scale: str, cells: Sequence[Cell], formats: Collection[str] = FORMATS
) -> Path:
    """Write report.md, report.html, comparison.csv, cells.csv, tables/ and figures/ beside the rows, as far as they are of these formats.

    Return the path of report.md, or of report.html where that is not among the formats, or of the folder.

    Raises
    ------
    InputError : the files cannot be written, or the rows cannot be read.
    """
    return _written(store, experiment, scale, len(cells), store.rows(cells), formats)


def rewrite_paper_report(folder: Path, name: str, formats: Collection[str] = ()) -> tuple[Path, list[Status]]:
    """Write the report of the experiment `name` again from the rows in `folder`, whatever version of the code made them.

    The scale is the full one where there is a cell that the small one has not. Return the path as `write_paper_report` does, and how the
    cells ended.

    Parameters
    ----------
    formats : of `FORMATS`, which none stands for, and `COVER`

    Raises
    ------
    InputError : as `write_paper_report` does, and where a format is not known or the folder cannot be used.
    """
    chosen = experiment_of(name)
    wanted = [form if form == COVER else one_of("--format of a paper's report", form, FORMATS) for form in formats] or FORMATS
    with CellStore.open(folder, name) as store:
        rows = {scale: store.rows_of(chosen.scale(scale).grid) for scale in ("small", "full")}
        scale = "full" if len(rows["full"]) > len(rows["small"]) else "small"
        path = _written(store, chosen, scale, len(chosen.scale(scale).grid), rows[scale], wanted, ANY_CODE)
    return path, [Status(row["status"]) for row in rows[scale]]


def text_from_rows(folder: Path, name: str, text: str) -> str:
    """Return report.md as the rows in `folder` give it, and write nothing.

    Parameters
    ----------
    text : as it was written: which shows at which scale, in which formats, and whether of a run or of rows that were there

    Raises
    ------
    InputError : the rows cannot be read.
    """
    chosen = experiment_of(name)
    named = _SCALE.search(text)
    note = ANY_CODE if ANY_CODE.split(":")[0] in text else ""
    with CellStore.open(folder, name) as store:
        held = {each: store.rows_of(chosen.scale(each).grid) for each in ("small", "full")}
        scale = named[1] if named else "full" if len(held["full"]) > len(held["small"]) else "small"
        findings = chosen.read(_frame(held[scale]))
        parts = _parts(store, chosen, scale, len(chosen.scale(scale).grid), held[scale], findings, {}, note)
        return _markdown(_introduction(chosen, scale), parts, findings.sections, linked_forms(text))


def findings_in(folder: Path, name: str) -> Findings:
    """Return what the rows in a folder say.

    Raises
    ------
    InputError : they cannot be read.
    """
    chosen = experiment_of(name)
    with CellStore.open(folder, name) as store:
        held = {each: store.rows_of(chosen.scale(each).grid) for each in ("small", "full")}
    return chosen.read(_frame(max(held["small"], held["full"], key=len)))


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows that have an outcome, as experiments read them."""
    import pandas as pd

    return pd.DataFrame([{key: row[key] for key in row if key != "environment_id"} for row in rows if row["status"] in _WITH_OUTCOME])


def _written(
    store: CellStore,
    experiment: Experiment,
    scale: str,
    cells: int,
    rows: Sequence[dict[str, Any]],
    formats: Collection[str],
    note: str = "",
) -> Path:
    import pandas as pd

    findings = experiment.read(_frame(rows))
    files = {}
    if "csv" in formats:
        files["comparison.csv"] = to_csv(comparison_frame(findings.comparisons))
        files["cells.csv"] = to_csv(pd.DataFrame([{key: _flat(value) for key, value in row.items()} for row in rows]))
    pictures = [form for form in ("svg", "png") if form in formats]
    drawn = sorted({*pictures, *(["svg"] if "html" in formats else [])})
    figures: dict[str, dict[str, bytes]] = {}
    for section in findings.sections:
        if section.table is not None and "csv" in formats:
            files[f"tables/{section.name}.csv"] = to_csv(section.table)
        if section.draw is not None and drawn:
            figures[section.name] = style.files(section.draw(), drawn)
            files |= {f"figures/{section.name}.{form}": figures[section.name][form] for form in pictures}
    if COVER in formats and (draw := next((section.draw for section in findings.sections if section.draw), None)) is not None:
        files[COVER_FILE] = style.files(draw(), ["svg"])["svg"]
    introduction = _introduction(experiment, scale)
    svg = {name: made["svg"] for name, made in figures.items() if "svg" in made}
    parts = _parts(store, experiment, scale, cells, rows, findings, svg, note)
    if "md" in formats:
        files["report.md"] = _markdown(introduction, parts, findings.sections, formats).encode()
    if "html" in formats:
        files["report.html"] = article(experiment.title, introduction, parts)
    folder = store.path.parent
    try:
        replace_files(folder, files)
    except OSError as error:
        raise not_written(f"the report cannot be written to {folder}", error) from None
    return next((folder / name for name in ("report.md", "report.html") if name in files), folder)


def comparison_frame(comparisons: Sequence[PublishedNumber]) -> pd.DataFrame:
    """Return the comparisons as a table, one row each."""
    import pandas as pd

    columns = ["what", "published", "ours", "published_value", "our_value", "difference", "reading", "on_other_data", "why"]
    rows = [{"reading": str(each.verdict)} | {name: getattr(each, name) for name in columns if name != "reading"} for each in comparisons]
    return pd.DataFrame(rows, columns=columns)


def count_verdicts(comparisons: Sequence[PublishedNumber]) -> str:
    """Count the comparisons by verdict, in words; those on other data than the paper's are counted apart."""
    parts = [
        (", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]), words)
        for elsewhere, words in ((False, ""), (True, "on other data in the place of the paper's: "))
        for counts in [Counter(each.verdict for each in comparisons if each.on_other_data is elsewhere)]
    ]
    return "; ".join(f"{words}{listed}" for listed, words in parts if listed) or "nothing to compare"


def _introduction(experiment: Experiment, scale: str) -> str:
    """Return what stands before all parts, in Markdown."""
    made = f"{experiment.source}. Made by `bench-mtl paper {experiment.name} --scale {scale}`."
    return f"# {escaped(experiment.title)}\n\n{made}"


def _parts(
    store: CellStore, experiment: Experiment, scale: str, cells: int, rows: Sequence[dict[str, Any]], findings: Findings,
    figures: Mapping[str, bytes], note: str,
) -> list[Part]:  # fmt: skip
    """Return the parts of the report in their order; `figures` are SVG drawings by the names of their sections."""
    environments = store.environments({int(str(row["environment_id"])) for row in rows})
    unknown = [each for each in findings.comparisons if each.verdict is Verdict.UNKNOWN]
    return [
        _found(findings, cells - len(rows)),
        Part("What was run", _run(experiment, scale, cells, rows, note)),
        _beside([each for each in findings.comparisons if each.verdict is not Verdict.UNKNOWN]),
        *(
            Part(section.title, section.text, figures.get(section.name) if section.draw else None, section.display, name=section.name)
            for section in findings.sections
        ),
        *([_table_of(CANNOT, _UNKNOWN_TEXT, unknown, with_verdict=False)] if unknown else []),
        _failures(rows),
        *([Part("Environment", words.environment(environments))] if environments else []),
    ]


def _found(findings: Findings, missing: int) -> Part:
    """Return what comes first: how many statements and numbers were reproduced, and which statements were and were not."""
    warning = f"**{missing} cells are missing: the same command goes on from here.**" if missing else ""
    words = "\n\n".join(filter(None, [warning, found_words(findings)]))
    return Part(FOUND, words, table=verdict_counts(findings.comparisons))


def found_words(findings: Findings) -> str:
    """Return which statements were reproduced and which were not, in Markdown."""
    return "\n\n".join(filter(None, [findings.headline, "\n".join(_named(findings.comparisons))]))


def _named(comparisons: Sequence[PublishedNumber]) -> Iterator[str]:
    """Yield a list entry for each verdict with the statements that have it."""
    for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.DEPENDS):
        named = list(dict.fromkeys(place_of(each.what)[0] for each in comparisons if each.is_statement and each.verdict is verdict))
        more = f"; {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        if named:
            yield f"- **{verdict}**: {escaped('; '.join(named[:_MOST_NAMED]))}{more}."


def verdict_counts(comparisons: Sequence[PublishedNumber]) -> pd.DataFrame:
    """Return how many statements and numbers have each verdict; those on other data than the paper's have rows of their own."""
    import pandas as pd

    rows = []
    for elsewhere, where in ((False, ""), (True, ", other data")):
        for is_statement, kind in ((True, "statements"), (False, "numbers")):
            of = [each.verdict for each in comparisons if each.on_other_data is elsewhere and each.is_statement is is_statement]
            if of:
                rows.append([f"{kind}{where}", *(str(of.count(verdict)) for verdict in Verdict)])
    return pd.DataFrame(rows, columns=["", *map(str, Verdict)], dtype="str")


def place_of(what: str) -> tuple[str, str]:
    """Return a comparison's words without the place in the paper that they end in, and that place; it is in brackets."""
    if not what.endswith(")"):
        return what, ""
    depth = 0
    for place in range(len(what) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(what[place], 0)
        if depth == 0:
            return (what[:place].rstrip(), what[place + 1 : -1]) if what[:place].endswith(" ") else (what, "")
    return what, ""


def _run(experiment: Experiment, scale: str, cells: int, rows: Sequence[dict[str, Any]], note: str) -> str:
    seconds = sum(float(str(row["seconds"])) for row in rows)
    done = f"{len(rows)} of {cells} cells are done, in {seconds:.0f} s of computing."
    parts = [experiment.about, f"Scale `{scale}`: {experiment.scale(scale).sentence} {done}", note]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _beside(comparisons: Sequence[PublishedNumber]) -> Part:
    """Return the published statements and numbers that have been compared."""
    if not comparisons:
        return Part(BESIDE, "Nothing can be compared.")
    statements = "\n".join(_item(each) for each in comparisons if each.is_statement)
    numbers = [each for each in comparisons if not each.is_statement]
    words = f"{_VERDICTS_TEXT}\n\n{statements}".rstrip()
    return _table_of(BESIDE, words, numbers, with_verdict=True) if numbers else Part(BESIDE, words)


def _item(each: PublishedNumber) -> str:
    """Return a statement as an entry of a list."""
    parts = [f"{each.what}.", f"Published: {each.published}.", f"Ours: {each.ours}.", f"Rule: {each.why}."]
    return f"- **{each.verdict}**: {escaped(' '.join(part.replace('..', '.') for part in parts))}"


def _table_of(title: str, words: str, comparisons: Sequence[PublishedNumber], *, with_verdict: bool) -> Part:
    """Return comparisons as one table; places, rules, and what a cell has no room for, are numbered notes below it."""
    notes, rows = Notes(), []
    for each in comparisons:
        what, place = place_of(each.what)
        row = {"What": what, "Published": each.published, "Ours": each.ours}
        if with_verdict:
            row |= {"Difference": BLANK if each.difference is None else f"{each.difference:+.3g}", "Reading": str(each.verdict)}
        rows.append({**row, "Note": str(notes.number(f"{place}: {each.why}" if place else each.why))})
    return Part(title, words, table=with_room(rows, _ROOM, notes, "What"), after=notes.words())


def _markdown(introduction: str, parts: Sequence[Part], sections: Sequence[Section], formats: Collection[str]) -> str:
    """Return report.md: figures, and the digits of tables, are links to files of their own."""
    by_name, drawn = {section.name: section for section in sections if section.name}, [section.name for section in sections if section.draw]
    blocks = [paragraphs(introduction)]
    for part in parts:
        pictures = _pictures(by_name[part.name], drawn, formats) if part.name in drawn else []
        table = "" if part.table is None else table_lines(part.table)
        blocks += [f"## {escaped(part.title)}", paragraphs(part.words), *pictures, table, paragraphs(part.after)]
        if "csv" in formats and part.name and by_name[part.name].table is not None:
            blocks.append(f"[All digits](tables/{part.name}.csv)")
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _pictures(section: Section, drawn: Sequence[str], formats: Collection[str]) -> list[str]:
    """Return the link to the figure of a section, or its name where of the figures in `drawn` the first alone is shown, as the cover."""
    title = escaped(section.title)
    if COVER in formats:
        rest = [words.NAMED_FIGURES] if len(drawn) > 1 else []
        return [f"![{title}]({COVER_FILE})", *rest] if section.name == drawn[0] else [f"Figure: `figures/{section.name}.svg`"]
    form = next((form for form in ("svg", "png") if form in formats), "")
    return [f"![{title}](figures/{section.name}.{form})"] if form else []


def _failures(rows: Sequence[dict[str, object]]) -> Part:
    title, failed = "Cells without an outcome", [row for row in rows if row["status"] not in _WITH_OUTCOME]
    if not failed:
        return Part(title, "Every cell that was run has one.")
    hidden = ("status", "reason", "seconds", "environment_id")
    notes = Notes()
    shown = [
        {
            "Cell": ", ".join(f"{key} {row[key]}" for key in row if key not in hidden),
            "Status": str(row["status"]),
            "Reason": str(row["reason"]),
            "Note": "",
        }
        for row in failed[:_MOST_FAILURES]
    ]
    rest = f"\n\n{len(failed) - _MOST_FAILURES} more in cells.csv." if len(failed) > _MOST_FAILURES else ""
    table = with_room(shown, {"Reason": 40}, notes, "Cell")
    return Part(title, table=table if notes.texts else table.drop(columns="Note"), after=notes.words() + rest)


def _flat(value: object) -> object:
    if isinstance(value, list) and len(value) > _LONGEST_LIST:
        return f"{len(value)} values, in cells.sqlite"  # such as a picture
    return str(value) if isinstance(value, (list, dict)) else value
