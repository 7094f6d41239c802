"""The report of an experiment: the published numbers beside ours, its own tables and figures, what failed, where it was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import not_written
from bench_mtl.core.types import Status
from bench_mtl.papers.cells import Cell
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Section, Verdict
from bench_mtl.papers.index import experiment as experiment_of
from bench_mtl.papers.store import CellStore
from bench_mtl.report import text
from bench_mtl.report.figures import style
from bench_mtl.report.page.article import Part, article
from bench_mtl.report.render import BLANK, escaped, to_csv, to_markdown
from bench_mtl.report.write import replace_files

if TYPE_CHECKING:
    import pandas as pd

#: How a cell may have ended that has an outcome.
_WITH_OUTCOME = (Status.VERIFIED, Status.INACCURATE)

#: The formats that such a report can have: of the text, of tables, of figures.
FORMATS = ("md", "html", "csv", "svg", "png")

#: In cells.csv; a file of rows that people open in a spreadsheet.
_LONGEST_LIST = 50

#: Failed cells that are listed one by one.
_MOST_FAILURES = 50

_ANY_CODE = """\
Written from rows that were there: that one version of the code made all of them, or that this one would make the same, is not checked."""

_VERDICTS_TEXT = """\
"Reproduced" and "not reproduced" are said
by the rule in the last column; "cannot be known" where the number, the data or the procedure is lost, or where our own repetitions do not
decide; "not run" where this scale or this version leaves it out."""


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
    formats : of `FORMATS`; none stands for all

    Raises
    ------
    InputError : as `write_paper_report` does, and where a format is not known or the folder cannot be used.
    """
    chosen = experiment_of(name)
    wanted = [one_of("--format of a paper's report", form, FORMATS) for form in formats] or FORMATS
    with CellStore.open(folder, name) as store:
        rows = {scale: store.rows_of(chosen.scale(scale).grid) for scale in ("small", "full")}
        scale = "full" if len(rows["full"]) > len(rows["small"]) else "small"
        path = _written(store, chosen, scale, len(chosen.scale(scale).grid), rows[scale], wanted, _ANY_CODE)
    return path, [Status(row["status"]) for row in rows[scale]]


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

    ended = [row for row in rows if row["status"] in _WITH_OUTCOME]
    findings = experiment.read(pd.DataFrame([{key: row[key] for key in row if key != "environment_id"} for row in ended]))
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
    introduction = _introduction(experiment, scale, cells, rows, note)
    parts = _parts(store, rows, findings, {name: made["svg"] for name, made in figures.items() if "svg" in made})
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
        for elsewhere, words in ((False, ""), (True, "on other data in the place of lost ones: "))
        for counts in [Counter(each.verdict for each in comparisons if each.on_other_data is elsewhere)]
    ]
    return "; ".join(f"{words}{listed}" for listed, words in parts if listed) or "nothing to compare"


def _introduction(experiment: Experiment, scale: str, cells: int, rows: Sequence[dict[str, Any]], note: str) -> str:
    """Return what stands before all parts, in Markdown."""
    missing = cells - len(rows)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    parts = [
        f"# {escaped(experiment.title)}",
        f"{experiment.source}. Made by `bench-mtl paper {experiment.name} --scale {scale}`.",
        experiment.about,
        f"Scale `{scale}`: {experiment.scale(scale).sentence} {len(rows)} of {cells} cells are done, in {seconds:.0f} s of computing.",
        f"**{missing} cells are missing: the same command goes on from here.**" if missing else "",
        note,
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _parts(store: CellStore, rows: Sequence[dict[str, Any]], findings: Findings, figures: Mapping[str, bytes]) -> list[Part]:
    """Return the parts of the report in their order; `figures` are SVG drawings by the names of their sections."""
    verdicts = f"**{count_verdicts(findings.comparisons)}.** {_VERDICTS_TEXT}"
    environments = store.environments({int(str(row["environment_id"])) for row in rows})
    return [
        Part("Published beside ours", verdicts, table=_comparisons(findings.comparisons)),
        *(
            Part(section.title, section.text, figures.get(section.name) if section.draw else None, section.display, name=section.name)
            for section in findings.sections
        ),
        _failures(rows),
        *([Part("Environment", text.environment(environments))] if environments else []),
    ]


def _markdown(introduction: str, parts: Sequence[Part], sections: Sequence[Section], formats: Collection[str]) -> str:
    """Return report.md: figures, and the digits of tables, are links to files of their own."""
    by_name = {section.name: section for section in sections if section.name}
    blocks = [introduction]
    for part in parts:
        picture, digits = _links(by_name[part.name], formats) if part.name else ("", "")
        table = "" if part.table is None else to_markdown(part.table)
        blocks += [f"## {escaped(part.title)}", part.words, picture, table, part.after, digits]
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _links(section: Section, formats: Collection[str]) -> tuple[str, str]:
    """Return the links to the figure of a section and to the file of its table, as far as they are written."""
    form = next((form for form in ("svg", "png") if form in formats), "")
    picture = f"![{escaped(section.title)}](figures/{section.name}.{form})" if section.draw is not None and form else ""
    return picture, f"[All digits](tables/{section.name}.csv)" if section.table is not None and "csv" in formats else ""


def _comparisons(comparisons: Sequence[PublishedNumber]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        [each.what, each.published, each.ours, BLANK if each.difference is None else f"{each.difference:+.3g}", str(each.verdict), each.why]
        for each in comparisons
    ]
    return pd.DataFrame(rows, columns=["What", "Published", "Ours", "Difference", "Reading", "Why"], dtype="str")


def _failures(rows: Sequence[dict[str, object]]) -> Part:
    import pandas as pd

    title, failed = "Cells without an outcome", [row for row in rows if row["status"] not in _WITH_OUTCOME]
    if not failed:
        return Part(title, "Every cell that was run has one.")
    hidden = ("status", "reason", "seconds", "environment_id")
    shown = [
        [", ".join(f"{key} {row[key]}" for key in row if key not in hidden), str(row["status"]), str(row["reason"])]
        for row in failed[:_MOST_FAILURES]
    ]
    rest = f"{len(failed) - _MOST_FAILURES} more in cells.csv." if len(failed) > _MOST_FAILURES else ""
    return Part(title, table=pd.DataFrame(shown, columns=["Cell", "Status", "Reason"], dtype="str"), after=rest)


def _flat(value: object) -> object:
    if isinstance(value, list) and len(value) > _LONGEST_LIST:
        return f"{len(value)} values, in cells.sqlite"  # such as a picture
    return str(value) if isinstance(value, (list, dict)) else value
