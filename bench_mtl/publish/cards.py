"""The index of a site: what each suite is, and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.publish.layout import LEADERS, Link, history_path, site_page, suite_path
from bench_mtl.publish.sources import Source, all_machines, inline_alarms, provenance_of, versions_of
from bench_mtl.report import words
from bench_mtl.report.columns import enumerated, format_target, paragraphs
from bench_mtl.report.render.shell import Markdown

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Card:
    """One suite in the index."""

    title: str
    address: str
    alarms: tuple[str, ...]
    description: Markup
    finding: Markup
    facts: Mapping[str, str]
    problems: tuple[str, ...]
    """Families of problems."""
    solvers: tuple[str, ...]
    """Labels of the solvers that were run."""
    data: tuple[str, ...]
    links: tuple[Link, ...]


def index_page(title: str, sources: Sequence[Source], findings: Mapping[str, str]) -> bytes:
    """Return the index.

    Parameters
    ----------
    title : of the site
    findings : by `slug` what the rows of each say, in Markdown, as `bench_mtl.report.index.finding` gives it
    """
    md = Markdown()
    history = {version.slug: versions[0].slug for versions in versions_of(sources).values() for version in versions}
    cards = [card(source, findings[source.slug], history.get(source.slug), md) for source in sources]
    parts = {
        "cards": cards,
        "problems": sorted({name for each in cards for name in each.problems}),
        "solvers": sorted({name for each in cards for name in each.solvers}),
        "data": sorted({name for each in cards for name in each.data}),
    }
    lines = provenance_of(sources)
    provenance = "\n".join(f"- {name}: {lines[name]}" for name in ("Machine", "Run", "Versions") if name in lines)
    statuses = [status for source in sources for status in source.results.runs["status"]]
    verified = statuses.count(Status.VERIFIED)
    head = f"{plural(len(sources), 'suite')}, {plural(len(statuses), 'run')}, {verified} of them verified, from the problems' own data."
    head += " Times of different machines are never compared." if len(all_machines(sources)) > 1 else ""
    above = (Link("Leader boards", LEADERS),)
    return site_page("index.html", title, above, md(head), md(provenance), parts, scripts=("index.js",))


def card(source: Source, finding: str, history: str | None, md: Markdown) -> Card:
    """Return what the index says of one suite.

    Parameters
    ----------
    finding : in Markdown
    history : the `slug` of the first results of the suite, where there are several
    """
    results = source.results
    runs = results.runs
    ran = runs[runs["status"] != Status.SKIPPED]
    doubted = len(source.contradicted)
    alarms = (f"Proven bounds contradict each other on {plural(doubted, 'instance')}: no number of these should be trusted.",)
    missing = f" ({plural(results.missing, 'case')} of the suite not run yet)" if results.missing else ""
    facts = {
        "Problems": enumerated(list(dict.fromkeys(map(str, runs["problem"])))),
        "Data": enumerated(list(data_names(runs["data"]))),
        "Solvers": plural(ran["solver_label"].nunique(), "solver") + ", settings counted apart",
        "Runs": f"{len(runs)}, {int((runs['status'] == Status.VERIFIED).sum())} of them verified{missing}",
        "Instances": str(len(source.instances)),
        "Proven gaps": enumerated([format_target(target) for target in results.targets]),
        "Machine": "; ".join(one_line(words.machine_words(machine), LONGEST_LABEL) for machine in results.machines),
        "Run on": source.date,
    }
    more = (Link("History", history_path(history)),) if history is not None else ()
    return Card(
        title=source.title,
        address=suite_path(source.slug),
        alarms=(*(alarms if doubted else ()), *inline_alarms([source])),
        description=md(paragraphs(results.description)),
        finding=md(finding),
        facts=facts,
        problems=tuple(dict.fromkeys(map(str, runs["problem"]))),
        solvers=tuple(dict.fromkeys(map(str, ran["solver_label"]))),
        data=data_names(runs["data"]),
        links=(Link("Report", suite_path(source.slug)), *more),
    )


def data_names(specs: Iterable[str]) -> tuple[str, ...]:
    """Return what data are called in the tables that ask for them."""
    tables = [json.loads(spec) for spec in dict.fromkeys(specs)]
    return tuple(dict.fromkeys(one_line(str(table.get("name") or table.get("file") or "data"), LONGEST_LABEL) for table in tables))
