"""Puts the page together: words, tables and points in, one file out that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.report import text
from bench_mtl.report.contents import TABLES, without_skipped
from bench_mtl.report.figures import convergence, style
from bench_mtl.report.figures.drawing import Drawing, Undrawn
from bench_mtl.report.markdown import main_findings, notices
from bench_mtl.report.page.charts import charts
from bench_mtl.report.page.curves import convergence_charts
from bench_mtl.report.page.markup import json_script, raw
from bench_mtl.report.page.tables import Table, html_table
from bench_mtl.report.render import LONGEST_CELL, escaped, format_target
from bench_mtl.report.text import contradictions
from bench_mtl.results.frames import all_skipped
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd
    from markdown_it import MarkdownIt
    from markupsafe import Markup

#: In the order in which they must run.
_SCRIPTS = ("vendor/chart.umd.min.js", "vendor/hammer.min.js", "vendor/chartjs-plugin-zoom.min.js", "page.js")

#: Which tables are shown elsewhere than under Tables.
_SUMMARY, _FAILURES = ("winners", "speed_ups"), ("not_verified",)
#: And which come first there.
_FIRST = ("summary",)

_LEFT_OUT = "Solvers that were skipped, for they do not fit the problem, are under [Not verified](#not-verified) alone."


@dataclass(frozen=True)
class _Problem:
    """What the page says of one problem."""

    label: str
    parts: Sequence[Markup]


def page(results: Results, tables: Mapping[str, pd.DataFrame], drawn: Sequence[Drawing], undrawn: Sequence[Undrawn]) -> bytes:
    """Return the report as one HTML file: the same results give the same bytes.

    Everything is in the file, and its content security policy lets nothing run but the scripts that were put there, and no request out.

    Parameters
    ----------
    results : of a suite
    tables : by name, as of `bench_mtl.report.contents.report_tables`; every one that has a row is shown
    drawn, undrawn : the figures, and those that there are none of
    """
    styles = style.line_styles(results.runs["solver_label"])
    places = {solver: place for place, solver in enumerate(styles)}
    problems = convergence_charts(results, {one.about: one.caption for one in drawn if one.kind == "convergence"}, places)
    others = charts(drawn, places)
    data = {
        "targets": [{"label": format_target(target), "value": target} for target in results.targets],
        "least": convergence.least_gap(results.targets),
        "solvers": [{"label": solver, **_line_style(look)} for solver, look in styles.items()],
        "problems": problems,
        "charts": others,
    }
    md = _Markdown()
    alarms = contradictions(tables["enclosures"])
    scripts, sheet = [_script(name) for name in _SCRIPTS], _asset("page.css")
    parts = {
        "policy": _policy(scripts, sheet),
        "sheet": raw(sheet),
        "scripts": list(map(raw, scripts)),
        "data": json_script(data),
        "name": one_line(results.name, LONGEST_LABEL),
        "introduction": md(text.introduction(results.name, results.description, results.text, results.runs["data"].unique())),
        "contradictions": [one_line(alarm, LONGEST_CELL) for alarm in alarms],
        "notices": list(map(md, notices(results))),
        "findings": md("\n\n".join(main_findings(results, tables)[len(alarms) :])),
        "first": list(_tables(tables, _SUMMARY, md)),
        "choices": _choices(results),
        "drawn": bool(problems),
        "charts": bool(others),
        "measured": any("quantities" in problem for problem in problems),
        "tracks": any(chart.get("track") for chart in others),
        "undrawn": [one_line(missing.sentence, LONGEST_CELL) for missing in undrawn if missing.kind in ("profiles", "pareto", "scaling")],
        "problems": list(_problems(results, tables, undrawn, {problem["label"] for problem in problems}, md)),
        "tables": list(_tables(tables, _others(tables), md)),
        "failures": list(_tables(tables, _FAILURES, md)),
        "reading": md(text.reading(results.runs["kind"])),
        "limitations": md(text.limitations(results.runs)),
        "environment": md(text.environment(results.environments)),
        "suite": text.suite_text(results.text),
    }
    return _template().render(parts).encode()


class _Markdown:
    """Markdown to HTML in which nothing of the text is markup of its own and nothing is fetched."""

    def __init__(self) -> None:
        from markdown_it import MarkdownIt

        self._parser: MarkdownIt = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        rules: dict[str, Any] = self._parser.renderer.rules  # type: ignore[attr-defined]
        rules["table_open"] = lambda *_: '<div class="scroll"><table>\n'
        rules["table_close"] = lambda *_: "</table></div>\n"

    def __call__(self, words: str) -> Markup:
        return raw(self._parser.render(words))


def _line_style(look: style.LineStyle) -> dict[str, Any]:
    """Return the style of a line in the printed figures for the page: a dash is measured in pixels."""
    dash = [] if look.dash == "-" else [2.0 * part for part in look.dash[1]]
    return {"colour": look.colour, "marker": look.marker, "dash": dash}


def _problems(
    results: Results, tables: Mapping[str, pd.DataFrame], undrawn: Sequence[Undrawn], charted: set[str], md: _Markdown
) -> Iterator[_Problem]:
    missing = {one.about: one.sentence for one in undrawn if one.kind == "convergence" and one.about not in charted}
    of = {name: dict(list(tables[name].groupby("problem", sort=False))) for name in ("summary", "enclosures")}
    for label, runs in results.runs.groupby("problem_label", sort=False):
        sentences = [text.facts(runs), without_skipped(of["summary"][label])[1], text.solver_notes(runs)]
        if label in of["enclosures"]:
            sentences.append(text.enclosure_sentences(of["enclosures"][label]))
        if label in missing:
            sentences.append(escaped(missing[str(label)]))
        yield _Problem(str(label), [md(sentence) for sentence in sentences if sentence])


def _others(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """In the order of `TABLES` but for the first, and what it does not know after that."""
    order = dict.fromkeys((*_FIRST, *TABLES, *tables))
    return [name for name in order if name in tables and name not in (*_SUMMARY, *_FAILURES)]


def _tables(tables: Mapping[str, pd.DataFrame], names: Sequence[str], md: _Markdown) -> Iterator[Table]:
    """Those that have a row."""
    for name in names:
        table = tables[name]
        if table.empty:
            continue
        kind = TABLES.get(name)
        title, about = (kind.title, kind.explanation or kind.sentence) if kind else (name.replace("_", " ").capitalize(), "")
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


def _policy(scripts: Sequence[str], sheet: str) -> str:
    """Return the content security policy: these scripts and this style sheet, by their hashes, and nothing else."""
    hashed = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {hashed}; style-src {_hash(sheet)}; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files("bench_mtl.report.page").joinpath(name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    """Without the line that names a source map, which a browser's tools would fetch."""
    return "\n".join(line for line in _asset(name).splitlines() if not line.startswith("//# sourceMappingURL"))


def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return made.from_string(_asset("template.html"))
