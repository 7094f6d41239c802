"""Puts the page together: words, tables and points in, one file out that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.report import words
from bench_mtl.report.columns import LONGEST_CELL, escaped, format_target
from bench_mtl.report.figures import convergence, style
from bench_mtl.report.figures.drawing import Drawing, Undrawn
from bench_mtl.report.markdown import main_findings, notices
from bench_mtl.report.page.around import Around
from bench_mtl.report.page.charts import charts
from bench_mtl.report.page.curves import convergence_charts
from bench_mtl.report.page.markup import json_script
from bench_mtl.report.page.shell import CHART_SCRIPTS, Markdown, rendered
from bench_mtl.report.page.speed_up_map import speed_up_map
from bench_mtl.report.page.tables import Table, html_table
from bench_mtl.report.registry import TABLES, without_skipped
from bench_mtl.report.tracebacks import TITLE, tracebacks
from bench_mtl.report.words import contradictions
from bench_mtl.results.frames import all_skipped
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

#: Which tables are shown elsewhere than under Tables.
_SUMMARY, _FAILURES = ("winners", "speed_ups"), ("not_verified",)
#: And which come first there.
_FIRST = ("summary",)

_LEFT_OUT = "Solvers that were skipped, for they do not fit the problem, are under [Not verified](#not-verified) alone."

#: Pixels of a dash of matplotlib's names.
_DASHES: dict[str, list[float]] = {"-": [], "solid": [], "--": [7.4, 3.2], "dashed": [7.4, 3.2], ":": [2.0, 3.0], "dotted": [2.0, 3.0]}


@dataclass(frozen=True)
class _Problem:
    """What the page says of one problem."""

    label: str
    anchor: str
    parts: Sequence[Markup]


def page(
    results: Results,
    tables: Mapping[str, pd.DataFrame],
    drawn: Sequence[Drawing],
    undrawn: Sequence[Undrawn],
    around: Around | None = None,
) -> bytes:
    """Return the report as one HTML file: the same results give the same bytes.

    Everything is in the file, and its content security policy lets nothing run but the scripts that were put there, and no request out.

    Parameters
    ----------
    results : of a suite
    tables : by name, as of `bench_mtl.report.registry.report_tables`; every one that has a row is shown
    drawn, undrawn : the figures, and those that there are none of
    around : links to other pages and files, where the page is one of a site
    """
    kinds = dict(zip(results.runs["solver_label"], results.runs["kind"], strict=True))
    styles = style.line_styles(kinds)
    places = {solver: place for place, solver in enumerate(styles)}
    captions = {one.about: one.caption for one in reversed(drawn) if one.kind == "convergence"}
    problems = convergence_charts(results.in_full, captions, places)
    others = charts(drawn, places)
    data = {
        "targets": [{"label": format_target(target), "value": target} for target in results.targets],
        "least": convergence.least_gap(results.targets),
        "solvers": [{"label": solver, "kind": str(kinds[solver]), **_line_style(look)} for solver, look in styles.items()],
        "problems": problems,
        "charts": others,
    }
    md = Markdown()
    anchors = {str(label): f"problem-{place}" for place, label in enumerate(results.runs["problem_label"].unique(), start=1)}
    alarms = contradictions(tables["enclosures"])
    *head, findings = main_findings(results, tables)[len(alarms) :]
    parts = {
        "data": json_script(data),
        "name": one_line(results.name, LONGEST_LABEL),
        "contradictions": [one_line(alarm, LONGEST_CELL) for alarm in alarms],
        "head": md("\n\n".join([words.compared(results.runs, results.targets), *head])),
        "provenance": md(words.provenance(results.environments, results.runs)),
        "notices": list(map(md, notices(results))),
        "map": speed_up_map(tables["winners"], anchors, results.view.baseline),
        "findings": md(findings),
        "first": list(_tables(tables, _SUMMARY, md)),
        "choices": _choices(results),
        "drawn": bool(problems),
        "charts": bool(others),
        "measured": any("quantities" in problem for problem in problems),
        "tracks": any(chart.get("track") for chart in others),
        "undrawn": [one_line(missing.sentence, LONGEST_CELL) for missing in undrawn if missing.kind in ("profiles", "pareto", "scaling")],
        "problems": list(_problems(results, tables, undrawn, {problem["label"] for problem in problems}, anchors, md)),
        "tables": list(_tables(tables, _others(tables), md)),
        "failures": list(_tables(tables, _FAILURES, md)),
        "raised": {"title": TITLE, "text": words.suite_text(tracebacks(results.runs, results.places))},
        "reading": md(words.reading(results.runs["kind"])),
        "limitations": md(words.limitations(results.runs)),
        "environment": md(words.environment(results.environments)),
        "description": md(_description(results)),
        "suite": words.suite_text(results.text),
        "around": around,
    }
    return rendered("template.html", parts, CHART_SCRIPTS)


def _description(results: Results) -> str:
    """Return what the suite says of itself, and the command that makes the report again."""
    _title, *rest = words.introduction(results.name, results.description, results.text, results.runs["data"].unique()).split("\n\n")
    return "\n\n".join(rest)


def _line_style(look: style.LineStyle) -> dict[str, Any]:
    """Return the style of a line in the printed figures for the page: a dash is measured in pixels."""
    dash = _DASHES.get(look.dash, []) if isinstance(look.dash, str) else [2.0 * part for part in look.dash[1]]
    return {"colour": look.colour, "marker": look.marker, "dash": dash}


def _problems(
    results: Results,
    tables: Mapping[str, pd.DataFrame],
    undrawn: Sequence[Undrawn],
    charted: set[str],
    anchors: Mapping[str, str],
    md: Markdown,
) -> Iterator[_Problem]:
    missing = {one.about: one.sentence for one in undrawn if one.kind == "convergence" and one.about not in charted}
    of = {name: dict(list(tables[name].groupby("problem", sort=False))) for name in ("summary", "enclosures")}
    for label, runs in results.runs.groupby("problem_label", sort=False):
        sentences = [words.facts(runs), without_skipped(of["summary"][label])[1], words.solver_notes(runs)]
        if label in of["enclosures"]:
            sentences.append(words.enclosure_sentences(of["enclosures"][label]))
        if label in missing:
            sentences.append(escaped(missing[str(label)]))
        yield _Problem(str(label), anchors[str(label)], [md(sentence) for sentence in sentences if sentence])


def _others(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """In the order of `TABLES` but for the first, and what it does not know after that."""
    order = dict.fromkeys((*_FIRST, *TABLES, *tables))
    return [name for name in order if name in tables and name not in (*_SUMMARY, *_FAILURES)]


def _tables(tables: Mapping[str, pd.DataFrame], names: Sequence[str], md: Markdown) -> Iterator[Table]:
    """Those that have a row."""
    for name in names:
        table = tables[name]
        if table.empty:
            continue
        kind = TABLES.get(name)
        title, about = (kind.title, kind.explanation) if kind else (name.replace("_", " ").capitalize(), "")
        if name == "summary":
            table = table[~all_skipped(table["status"])]
            about += f" {_LEFT_OUT}" if len(table) < len(tables[name]) else ""
        yield html_table(name, title, md(about), table)


def _choices(results: Results) -> dict[str, list[str]]:
    """Return what rows of all tables can be chosen by."""
    statuses = set(results.runs["status"])
    return {
        "problem": [str(label) for label in results.runs["problem_label"].unique()],
        "solver": [str(label) for label in results.runs["solver_label"].unique()],
        "status": [str(status) for status in Status if status in statuses],
        "target": [format_target(target) for target in results.targets],
    }
