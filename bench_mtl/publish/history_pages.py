"""The history of a suite that was run several times: how its times changed, on the cases that all results have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.publish.layout import address, history_path, links, site_page, suite_path
from bench_mtl.publish.sources import Source, provenance_of
from bench_mtl.report.columns import escaped
from bench_mtl.report.comparison_words import basis, change, reading, times_table, verdict
from bench_mtl.report.render.shell import Markdown
from bench_mtl.results.comparison import Comparison, NotComparableError, compare

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Step:
    """Two results of one suite."""

    old: Source
    new: Source
    comparison: Comparison | None
    why: str = ""
    """Why there is none."""


@dataclass(frozen=True)
class _Part:
    """A part of the page as the template draws it."""

    name: str
    title: str
    words: Markup


def steps(versions: Sequence[Source]) -> list[Step]:
    """Return the comparisons of every results with those before, and then with the first where these are others.

    Parameters
    ----------
    versions : results of one suite, the earliest first
    """
    pairs = [*pairwise(versions), *((versions[0], new) for new in versions[2:])]
    return [_step(old, new, versions) for old, new in pairs]


def _step(old: Source, new: Source, versions: Sequence[Source]) -> Step:
    among: list[Path] = [each.folder for each in versions if each not in (old, new)]
    try:
        return Step(old, new, compare(old.folder, new.folder, among=among))
    except NotComparableError as error:
        return Step(old, new, None, error.reason)


def history_page(versions: Sequence[Source]) -> bytes:
    """Return the page of a suite's history.

    Parameters
    ----------
    versions : its results, the earliest first
    """
    md, page = Markdown(), history_path(versions[0].slug)
    parts = [_Part("versions", "Results", md(_listed(versions, page)))]
    for number, step in enumerate(steps(versions), start=1):
        parts.append(_Part(f"step-{number}", f"From {_named(step.old)} to {_named(step.new)}", md(_words(step, len(versions)))))
    provenance = md("\n".join(f"- {name}: {line}" for name, line in provenance_of(versions).items()))
    head = md(
        f"{plural(len(versions), 'result')} of this suite, made at different times. Ratios are of cases that all of them have; a case is "
        "the same problem, data, parameters, seed, solver, options, target and repetition. Times of different machines are not compared."
    )
    title = f"History of {one_line(versions[0].results.name, LONGEST_LABEL)}"
    return site_page("history.html", title, links(page), head, provenance, {"parts": parts})


def _named(version: Source) -> str:
    return f"{version.slug} ({version.date})"


def _listed(versions: Sequence[Source], page: str) -> str:
    """Return the results as a list, with what they were made with."""
    lines = []
    for version in versions:
        facts = provenance_of([version])
        about = "; ".join(facts[name] for name in ("Machine", "Versions") if name in facts)
        lines.append(f"- [{escaped(_named(version))}]({address(suite_path(version.slug), page)}): {about}")
    return "\n".join(lines)


def _words(step: Step, versions: int) -> str:
    """Return one comparison in Markdown; A is the older one."""
    comparison = step.comparison
    if comparison is None:
        return f"Not compared: {escaped(step.why)}."
    parts = [verdict(comparison), "\n".join(f"- {escaped(line)}" for line in basis(replace(comparison, names=("A", "B"))))]
    parts += [f"Of these only cases that all {versions} results have."] if versions > 2 else []
    parts += [times_table(comparison.groups, comparison.targets), reading(comparison)] if comparison.groups else []
    changes = "\n".join(f"- {escaped(change(each))}" for each in comparison.changes)
    return "\n\n".join([*parts, "Changes of status:" if changes else "No run changed its status.", changes])
