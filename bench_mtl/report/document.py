"""Puts a report together in memory: results in, the bytes of every file out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.report import text
from bench_mtl.report.figures.drawing import FORMATS, Drawing, Undrawn
from bench_mtl.report.figures.drawing import files as figure_files
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.render import BLANK, display, escaped, to_csv, to_latex, to_markdown
from bench_mtl.report.results import Results
from bench_mtl.report.tables.enclosures import contradictions, enclosures, objectives
from bench_mtl.report.tables.frames import all_skipped
from bench_mtl.report.tables.scaling import scaling_fits, scaling_points
from bench_mtl.report.tables.summary import not_verified, summary, times, tolerances
from bench_mtl.report.tables.winners import findings, headlines, speed_ups, winners

if TYPE_CHECKING:
    import pandas as pd

#: What a table repeats in every row is left out of its printed form.
_CONSTANT = ("Seed", "Repetition", "Runs")

#: Columns for machines: CSV only.
_CSV_ONLY = ("Instance", "Finding")

#: Of a table in print; its CSV file has them all.
MOST_ROWS = 500

_CITED = {
    "summary": "Verified accuracy and time to each target",
    "winners": "The fastest solver to each target, and the fastest of the other kind",
    "speed_ups": "Geometric means of the ratios of like problems",
    "scaling": "Exponents of the time to the last target in the size of the data",
    "times": "Seconds by what they were spent on",
    "tolerances": "What each tolerance asked of a generic solver gave",
    "objectives": "Proven enclosure of the optimum by every run",
    "enclosures": "Best proven enclosure of the optimum of every instance",
    "not_verified": "Runs that are not verified, and why",
}


def report_tables(results: Results) -> dict[str, pd.DataFrame]:
    """The tables of a report, by the names of their files."""
    runs, samples, targets = results.runs, results.samples, results.targets
    objective_table = objectives(runs, samples)
    winner_table = winners(runs, samples, targets)
    return {
        "summary": summary(runs, samples, targets),
        "winners": winner_table,
        "speed_ups": speed_ups(winner_table, runs),
        "scaling": scaling_fits(scaling_points(runs, samples, targets[-1])),
        "times": times(runs),
        "tolerances": tolerances(runs, samples),
        "objectives": objective_table,
        "enclosures": enclosures(objective_table),
        "not_verified": not_verified(runs),
    }


def report_files(results: Results, tables: Mapping[str, pd.DataFrame]) -> dict[str, bytes]:
    """All files of a report by their path inside its folder; the same results give the same bytes."""
    drawn, undrawn = drawings(results, tables)
    files: dict[str, bytes] = {}
    for drawing in drawn:
        files |= figure_files(drawing)
    for name, table in tables.items():
        files[f"tables/{name}.csv"] = to_csv(table)
        files[f"tables/{name}.tex"] = _latex(name, table).encode()
    files["runs.csv"] = to_csv(results.runs)
    files["samples.csv"] = to_csv(results.samples)
    files["report.md"] = _markdown(results, tables, drawn, undrawn).encode()
    return files


def printed(table: pd.DataFrame, *drop: str) -> pd.DataFrame:
    """A table as text for people, without what its rows all share and without the columns titled `drop`."""
    shown = display(table)
    shared = [title for title in _CONSTANT if title in shown and len(set(shown[title]) - {BLANK}) <= 1]
    return shown.drop(columns=[title for title in (*shared, *_CSV_ONLY, *drop) if title in shown])


def without_skipped(summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of solvers that were run, and a sentence that names the others."""
    skipped = all_skipped(summary["status"])
    names = ", ".join(dict.fromkeys(summary.loc[skipped, "solver"].map(str)))
    return summary[~skipped], f"Skipped, for they do not fit: {names}." if names else ""


def _shown(drawing: Drawing) -> list[str]:
    """A figure with its caption and the files it is in."""
    path = f"figures/{drawing.stem}"
    links = ", ".join([*(f"[{form.upper()}]({path}.{form})" for form in FORMATS), f"[data]({path}.csv)"])
    return [f"![{escaped(drawing.title)}]({path}.{FORMATS[0]})", f"*{escaped(drawing.caption)}* ({links})"]


def _scaling(fits: pd.DataFrame, drawn: Iterable[Drawing]) -> list[str]:
    if fits.empty:
        return []
    return ["## Scaling", text.SCALING, *(part for drawing in drawn for part in _shown(drawing)), _table(fits)]


def _markdown(results: Results, tables: Mapping[str, pd.DataFrame], drawn: Sequence[Drawing], undrawn: Sequence[Undrawn]) -> str:
    figures = {drawing.about: _shown(drawing) for drawing in drawn if drawing.kind == "convergence"}
    figures |= {
        missing.about: [f"{missing.sentence} The reasons are listed below."] for missing in undrawn if missing.kind == "convergence"
    }
    parts = [
        text.opening(results.name, results.description, results.text, results.runs["data"].unique()),
        "## What it says",
        _findings(results, tables),
    ]
    for problem in results.runs["problem_label"].unique():
        parts += _problem(str(problem), results, tables, figures[str(problem)])
    parts += _scaling(tables["scaling"], [drawing for drawing in drawn if drawing.kind == "scaling"])
    parts += ["## Times", _table(tables["times"]), text.TIMES]
    if len(tables["tolerances"]):
        parts += ["## Tolerances asked", text.TOLERANCES, _table(tables["tolerances"])]
    parts += ["## Objectives", *_objectives(tables)]
    failed = tables["not_verified"]
    parts += ["## Not verified", _table(failed) if len(failed) else "Every run is verified."]
    parts += ["## How to read this", text.reading()]
    parts += ["## Known limitations", text.limitations(results.runs)]
    parts += ["## Environment", text.environment(results.environments)]
    parts += ["## Suite", text.verbatim(results.text, "toml")]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _findings(results: Results, tables: Mapping[str, pd.DataFrame]) -> str:
    bounds = tables["enclosures"]
    doubtful = set(bounds.loc[bounds["disagreeing"] != "", "problem"])
    bullets = []
    for problem, finding in findings(tables["winners"]):
        doubt = " (contradicted, see above)" if problem in doubtful else ""
        bullets.append(f"- **{escaped(problem)}**{doubt}: {escaped(finding)}")
    agreement = ["No run's bounds contradict another's."] if len(bounds) and not doubtful else []
    groups = [text.SPEED_UPS, _table(tables["speed_ups"])] if len(tables["speed_ups"]) else []
    counts = " ".join([text.run_counts(results.runs), *agreement, *headlines(tables["winners"])])
    return "\n\n".join([*_warnings(tables), counts, "\n".join(bullets), _table(tables["winners"]), *groups])


def _warnings(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    return [f"**{escaped(sentence)}**" for sentence in contradictions(tables["enclosures"])]


def _problem(problem: str, results: Results, tables: Mapping[str, pd.DataFrame], figure: Sequence[str]) -> list[str]:
    runs = results.runs[results.runs["problem_label"] == problem]
    rows, bounds = (tables[name].loc[tables[name]["problem"] == problem] for name in ("summary", "enclosures"))
    ran, sentence = without_skipped(rows)
    parts = [
        f"## {escaped(problem)}",
        text.facts(runs),
        _table(ran, "Problem") if len(ran) else "",
        sentence,
        text.solver_notes(runs),
        text.enclosure_sentences(bounds),
    ]
    return [*filter(None, parts), *figure]


def _objectives(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    if tables["objectives"].empty:
        return ["No run has a proven point."]
    return [text.OBJECTIVES, *_warnings(tables), _table(tables["objectives"])]


def _table(table: pd.DataFrame, *drop: str) -> str:
    """As Markdown, and only the first rows of what nobody reads to its end."""
    left_out = len(table) - MOST_ROWS
    rest = f"\n\n*{left_out} more rows in the CSV file of this table.*" if left_out > 0 else ""
    return to_markdown(printed(table.head(MOST_ROWS), *drop)) + rest


def _latex(name: str, table: pd.DataFrame) -> str:
    body = to_latex(printed(table.head(MOST_ROWS)), wide="Reason" if name == "not_verified" else None)
    part = f" The first {MOST_ROWS} of {len(table)} rows." if len(table) > MOST_ROWS else ""
    return f"% {_CITED[name]}.{part} Needs \\usepackage{{booktabs}}.\n{body}\n"
