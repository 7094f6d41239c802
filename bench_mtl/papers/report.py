"""The report of an experiment: the published numbers beside ours, its own tables and figures, what failed, where it was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
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
from bench_mtl.report.render import BLANK, escaped, to_csv, to_markdown
from bench_mtl.report.write import replace_files

if TYPE_CHECKING:
    import pandas as pd

#: How a cell may have ended that has an outcome.
_WITH_OUTCOME = (Status.VERIFIED, Status.INACCURATE)

#: The formats that such a report can have: of the text, of tables, of figures.
FORMATS = ("md", "csv", "svg", "png")

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
    """Write report.md, comparison.csv, cells.csv, tables/ and figures/ beside the rows, as far as they are of these formats.

    Return the path of report.md.

    Raises
    ------
    InputError : the files cannot be written, or the rows cannot be read.
    """
    return _written(store, experiment, scale, len(cells), store.rows(cells), formats)


def rewrite_paper_report(folder: Path, name: str, formats: Collection[str] = ()) -> tuple[Path, list[Status]]:
    """Write the report of the experiment `name` again from the rows in `folder`, whatever version of the code made them.

    The scale is the full one where there is a cell that the small one has not. Return the path of report.md and how the cells ended.

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
    if "md" in formats:
        files["report.md"] = _markdown(store, experiment, scale, cells, rows, findings, formats, note).encode()
    pictures = [form for form in ("svg", "png") if form in formats]
    for section in findings.sections:
        if section.table is not None and "csv" in formats:
            files[f"tables/{section.name}.csv"] = to_csv(section.table)
        if section.draw is not None and pictures:
            made = style.files(section.draw(), pictures)
            files |= {f"figures/{section.name}.{form}": made[form] for form in pictures}
    folder = store.path.parent
    try:
        replace_files(folder, files)
    except OSError as error:
        raise not_written(f"the report cannot be written to {folder}", error) from None
    return folder / "report.md"


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


def _markdown(
    store: CellStore, experiment: Experiment, scale: str, cells: int, rows: Sequence[dict[str, Any]], findings: Findings,
    formats: Collection[str], note: str,
) -> str:  # fmt: skip
    missing = cells - len(rows)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    environments = store.environments({int(str(row["environment_id"])) for row in rows})
    parts = [
        f"# {escaped(experiment.title)}",
        f"{experiment.source}. Made by `bench-mtl paper {experiment.name} --scale {scale}`.",
        experiment.about,
        f"Scale `{scale}`: {experiment.scale(scale).sentence} {len(rows)} of {cells} cells are done, in {seconds:.0f} s of computing.",
        f"**{missing} cells are missing: the same command goes on from here.**" if missing else "",
        note,
        "## Published beside ours",
        f"**{count_verdicts(findings.comparisons)}.** {_VERDICTS_TEXT}",
        _comparisons(findings.comparisons),
        *(part for section in findings.sections for part in _section(section, formats)),
        "## Cells without an outcome",
        _failures(rows),
        *(["## Environment", text.environment(environments)] if environments else []),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _comparisons(comparisons: Sequence[PublishedNumber]) -> str:
    import pandas as pd

    rows = [
        [each.what, each.published, each.ours, BLANK if each.difference is None else f"{each.difference:+.3g}", str(each.verdict), each.why]
        for each in comparisons
    ]
    return to_markdown(pd.DataFrame(rows, columns=["What", "Published", "Ours", "Difference", "Reading", "Why"], dtype="str"))


def _section(section: Section, formats: Collection[str]) -> list[str]:
    form = next((form for form in ("svg", "png") if form in formats), "")
    picture = [f"![{escaped(section.title)}](figures/{section.name}.{form})"] if section.draw is not None and form else []
    table = [to_markdown(section.display)] if section.display is not None else []
    files = [f"[All digits](tables/{section.name}.csv)"] if section.table is not None and "csv" in formats else []
    return [f"## {escaped(section.title)}", section.text, *picture, *table, *files]


def _failures(rows: Sequence[dict[str, object]]) -> str:
    import pandas as pd

    failed = [row for row in rows if row["status"] not in _WITH_OUTCOME]
    if not failed:
        return "Every cell that was run has one."
    hidden = ("status", "reason", "seconds", "environment_id")
    shown = [
        [", ".join(f"{key} {row[key]}" for key in row if key not in hidden), str(row["status"]), str(row["reason"])]
        for row in failed[:_MOST_FAILURES]
    ]
    rest = f"\n\n{len(failed) - _MOST_FAILURES} more in cells.csv." if len(failed) > _MOST_FAILURES else ""
    return to_markdown(pd.DataFrame(shown, columns=["Cell", "Status", "Reason"], dtype="str")) + rest


def _flat(value: object) -> object:
    if isinstance(value, list) and len(value) > _LONGEST_LIST:
        return f"{len(value)} values, in cells.sqlite"  # such as a picture
    return str(value) if isinstance(value, (list, dict)) else value
