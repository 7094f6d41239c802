"""report.md: the words, tables and figures of a report, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.report import registry, words
from bench_mtl.report.columns import escaped, to_markdown
from bench_mtl.report.figures.drawing import FORMATS, Drawing, Kind, Undrawn, first
from bench_mtl.report.formats import COVER, COVER_FILE
from bench_mtl.report.registry import TABLES, printed, without_skipped
from bench_mtl.report.tracebacks import folded
from bench_mtl.report.words import contradictions
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd


def markdown(
    results: Results, tables: Mapping[str, pd.DataFrame], drawn: Sequence[Drawing], undrawn: Sequence[Undrawn], formats: Collection[str]
) -> str:
    """Return the whole text.

    Parameters
    ----------
    drawn, undrawn : the figures, and those that there are none of
    formats : the other forms that the report is written in, which are linked to
    """
    shown: dict[tuple[str, str], list[str]] = {}
    cover = first(drawn) if COVER in formats else None
    for drawing in drawn:
        if cover is None:
            blocks = _shown(drawing, formats)
        else:
            blocks = _cover(drawing, has_others=len(drawn) > 1) if drawing is cover else [_named(drawing)]
        shown.setdefault((drawing.kind, drawing.about), []).extend(blocks)
    for missing in undrawn:
        shown[missing.kind, missing.about] = [escaped(missing.sentence)]

    def figures_of(*kinds: str) -> list[str]:
        return [part for (kind, _), parts in shown.items() if kind in kinds for part in parts]

    parts = [
        words.introduction(results.name, results.description, results.text, results.runs["data"].unique()),
        words.question(results),
        *notices(results),
        "## What it says",
        *main_findings(results, tables),
        *_section("winners", tables, level=""),
        *figures_of("speed_ups"),
        *_section("speed_ups", tables, level=""),
    ]
    for problem in results.runs["problem_label"].unique():
        kinds: tuple[Kind, ...] = ("convergence", "trajectories", "trade_offs", "patterns")
        figures = [part for kind in kinds for part in shown.get((kind, str(problem)), [])]
        parts += _problem(str(problem), results, tables, figures)
    parts += [*shown.get(("trajectories", ""), []), *shown.get(("patterns", ""), [])]
    parts += _across_problems(tables, figures_of("spread", "profiles", "pareto"))
    parts += _section("measures", tables) if "measures" in tables else []
    parts += _section("scaling", tables, figures=figures_of("scaling"))
    parts += [part for name in ("workers", "communication") if name in tables for part in _section(name, tables)]
    parts += [*_section("times", tables), *_section("tolerances", tables)]
    parts += ["## Objectives", *_objectives(tables)]
    parts += ["## Not verified", *_failures(tables), *folded(results)]
    parts += ["## How to read this", words.reading(results.runs["kind"])]
    parts += ["## Known limitations", words.limitations(results.runs)]
    parts += ["## Environment", words.provenance(results.environments, results.runs), words.environment(results.environments)]
    parts += ["## Suite", words.verbatim(results.text, "toml")]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def notices(results: Results) -> list[str]:
    """Return what a reader must know first: that this is an excerpt, that cases are missing, that solvers could reach their judge, that
    there are several machines."""
    different = "" if len(results.machines) > 1 else words.environments_differ(results.environments)
    weaker = words.inline(results.environments)
    parts = escaped(results.view.sentence), words.unfinished(results.missing), weaker, words.machines(results.machines), different
    return [sentence for sentence in parts if sentence]


def main_findings(results: Results, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the findings, in Markdown: contradictions before all else, how the runs ended, who wins where."""
    bounds = tables["enclosures"]
    contradicted = _contradicted_problems(results, bounds)
    bullets = []
    for problem, finding in words.failures(tables["winners"]):
        doubt = " (contradicted, see above)" if problem in contradicted else ""
        bullets.append(f"- **{escaped(problem)}**{doubt}: {escaped(finding)}")
    agreement = ["No run's bounds contradict another's."] if len(bounds) and not contradicted else []
    head = {
        "Success": words.run_counts(results.runs),
        "Speed": " ".join(words.headlines(tables["winners"])),
        "How sure": " ".join(filter(None, [*agreement, words.certainty(tables["winners"])])),
    }
    return [*_warnings(tables), *(f"**{title}.** {words}" for title, words in head.items() if words), "\n".join(bullets)]


def _contradicted_problems(results: Results, enclosures: pd.DataFrame) -> set[str]:
    """Labels of the problems that have an instance on which bounds contradict each other."""
    instances = enclosures.loc[enclosures["disagreeing"] != "", "instance"]
    return set(results.runs.loc[results.runs["instance_key"].isin(instances), "problem_label"])


def _warnings(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    return [f"**{escaped(sentence)}**" for sentence in contradictions(tables["enclosures"])]


def _problem(problem: str, results: Results, tables: Mapping[str, pd.DataFrame], figures: Sequence[str]) -> list[str]:
    runs = results.runs[results.runs["problem_label"] == problem]
    rows, bounds = (tables[name].loc[tables[name]["problem"] == problem] for name in ("summary", "enclosures"))
    ran, sentence = without_skipped(rows)
    return [
        f"## {escaped(problem)}",
        words.facts(runs),
        _table("summary", ran, "problem") if len(ran) else "",
        sentence,
        words.solver_notes(runs),
        words.enclosure_sentences(bounds),
        *figures,
    ]


def _across_problems(tables: Mapping[str, pd.DataFrame], figures: Sequence[str]) -> list[str]:
    """Return what the report says of groups of several problems, to the tightest target."""
    last = tables["winners"]["target"].min()
    read = {name: tables[name][(tables[name]["target"] == last) & (tables[name]["instances"] > 1)] for name in ("means", "comparisons")}
    parts = [*figures, *(part for name in read for part in _section(name, read, level="###"))]
    rest = "The tables are to the tightest target; all targets are in their CSV files and on the HTML page."
    return ["## Across problems", *([] if all(table.empty for table in read.values()) else [rest]), *parts] if parts else []


def _section(name: str, tables: Mapping[str, pd.DataFrame], figures: Sequence[str] = (), *, level: str = "##") -> list[str]:
    """Return a table with its figures before it and its explanation; nothing where it has no rows."""
    if tables[name].empty:
        return []
    return [f"{level} {TABLES[name].title}" if level else "", TABLES[name].explanation, *figures, _table(name, tables[name])]


def _objectives(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    if tables["objectives"].empty:
        return ["No run has a proven point."]
    return [TABLES["objectives"].explanation, *_warnings(tables), _table("objectives", tables["objectives"])]


def _failures(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    failed, statuses = tables["not_verified"], tables["statuses"]
    return [_table("statuses", statuses), _table("not_verified", failed)] if len(failed) else ["Every run is verified."]


def _shown(drawing: Drawing, formats: Collection[str]) -> list[str]:
    """Return a figure with its caption and the files it is in."""
    path = f"figures/{drawing.stem}"
    written = [form for form in FORMATS if form in formats]
    links = [f"[{form.upper()}]({path}.{form})" for form in written] + ([f"[data]({path}.csv)"] if "csv" in formats else [])
    pictures = [f"![{escaped(drawing.title)}]({path}.{form})" for form in written if form != "pdf"]
    others = f" ({', '.join(links)})" if len(links) > 1 else ""
    return [*pictures[:1], f"*{escaped(drawing.caption)}*{others}"]


def _cover(drawing: Drawing, *, has_others: bool) -> list[str]:
    """Return the one figure that is shown with its caption, and how the others are made."""
    rest = [words.NAMED_FIGURES] if has_others else []
    return [f"![{escaped(drawing.title)}]({COVER_FILE})", f"*{escaped(drawing.caption)}*", *rest]


def _named(drawing: Drawing) -> str:
    """Return the caption of a figure that is not shown, after the name of its file."""
    return f"`figures/{drawing.stem}.svg`: *{escaped(drawing.caption)}*"


def _table(name: str, table: pd.DataFrame, *hidden: str) -> str:
    """Return the table as Markdown, with the first `registry.MOST_ROWS` rows alone."""
    left_out = len(table) - registry.MOST_ROWS
    rest = f"\n\n*{left_out} more rows in the CSV file of this table.*" if left_out > 0 else ""
    return to_markdown(printed(name, table.head(registry.MOST_ROWS), *hidden)) + rest
