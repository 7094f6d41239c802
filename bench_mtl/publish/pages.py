"""The pages of a suite, of its instances and of its history, the index, and what can be taken away."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.engine.registry import Registry
from bench_mtl.publish.instances import Attachments, attachments
from bench_mtl.publish.paths import INDEX, instance_path, linked, links, suite_path
from bench_mtl.publish.sources import Source, dates_of, site_page
from bench_mtl.report import words
from bench_mtl.report.columns import enumerated, escaped, to_csv
from bench_mtl.report.comparison_words import basis, change, reading, times_table, verdict
from bench_mtl.report.document import Part
from bench_mtl.report.figures.gallery import gallery
from bench_mtl.report.figures.printing import printed_figures
from bench_mtl.report.index import Counts, counts
from bench_mtl.report.registry import TABLES, printed, report_tables
from bench_mtl.report.render.html import page
from bench_mtl.report.suite_report import skipped, suite_document
from bench_mtl.results.comparison import NotComparableError, compare
from bench_mtl.results.frames import all_skipped
from bench_mtl.results.loading import OF_READING

if TYPE_CHECKING:
    import pandas as pd

#: Columns whose texts are JSON.
_JSON = ("data", "parameters", "dimensions", "notes", "options", "limits", "info")

_NO_FILES: Attachments = {}, "The instance itself is not among the files of this site (bench-mtl publish --instances)."


def suite_files(
    source: Source, history: str | None, families: Mapping[str, str], registry: Registry | None, data_dir: Path | None, jobs: int
) -> tuple[dict[str, bytes], Counts]:
    """Return the files of a suite by path, its report, its instances and its rows, and on how many problems who is fastest.

    Parameters
    ----------
    history : the path of its history, if it has one
    families : the paths of leader boards by the families of problems
    registry : to build the instances again with, with the data in `data_dir`; without it they are not
    jobs : processes that draw figures
    """
    results, place = source.results, suite_path(source.slug)
    rows = {
        "runs.csv": _runs_csv(results.runs),
        "runs.json": _rows_json(source, results.runs),
        "samples.csv": to_csv(results.samples),
        "suite.toml": words.suite_text(results.text).encode(),
    }
    files, titles = {f"suites/{source.slug}/{name}": content for name, content in rows.items()}, {}
    for key, runs in results.runs.groupby("instance_key", sort=False):
        samples = results.samples[results.samples["run_id"].isin(runs["id"])]
        seed = "" if runs["seed"].isna().any() else f", seed {runs['seed'].iloc[0]}"
        title = titles[instance_path(source.slug, str(key))] = f"{runs['problem_label'].iloc[0]}{seed}"
        attached = _NO_FILES if registry is None else attachments(runs, samples, registry, data_dir)
        files |= _instance_files(source, title, runs.reset_index(drop=True), samples.reset_index(drop=True), attached)
    listed = {
        "Instances": titles,
        "Leader boards of these problems": {families[name]: name for name in map(str, results.runs["problem"]) if name in families},
        "Downloads": {f"suites/{source.slug}/{name}": name for name in rows},
    }
    tables = report_tables(results)
    entries = gallery(results, tables)
    document = suite_document(results, tables, entries, every_table=True)
    drawn = printed_figures(entries, ["svg"], jobs)
    parts = (*document.parts, *(Part(title, _list(of, place)) for title, of in listed.items() if of))
    above = links(place, *([("History of this suite", history)] if history else []))
    return {**files, place: page(replace(document, parts=parts), drawn, above=above)}, counts(results)


def _list(paths: Mapping[str, str], place: str) -> str:
    """Return links from the page at `place` in Markdown, by path their words."""
    return "\n".join(f"- {linked(words, path, place)}" for path, words in paths.items())


def _instance_files(source: Source, title: str, runs: pd.DataFrame, samples: pd.DataFrame, attached: Attachments) -> dict[str, bytes]:
    """Return the page of an instance and its files, by path: what it is, what is proven of its optimum, what every solver came to."""
    key = str(runs["instance_key"].iloc[0])
    tables = report_tables(replace(source.results, runs=runs, samples=samples), ["summary", "not_verified", "objectives", "enclosures"])
    place, best, outcomes = instance_path(source.slug, key), tables.pop("enclosures"), tables["summary"]
    enclosure = next(iter(best[["dual", "dual_solver", "primal", "primal_solver", "agrees"]].to_dict("records")), None)
    contents = {"csv": _runs_csv(runs), "json": _rows_json(source, runs, instance=key, enclosure=enclosure), **attached[0]}
    files = {place.removesuffix("html") + ending: content for ending, content in contents.items()}
    tables["summary"] = outcomes[~all_skipped(outcomes["status"])]
    unverified = tables["not_verified"]
    tables["not_verified"] = unverified[unverified["status"] != Status.SKIPPED]
    parts = [
        Part("The optimum", words.enclosure_sentences(best) or "No run has proven anything of it."),
        *(Part(TABLES[name].title, table=printed(name, table, "problem")) for name, table in tables.items() if len(table)),
        *skipped(unverified),
        Part("Downloads", _list({path: Path(path).name for path in files}, place), after=escaped(attached[1])),
    ]
    alarms = [f"> **{escaped(sentence)}**" for sentence in words.contradictions(best)]
    head = [*alarms, f"Of {linked(source.title, suite_path(source.slug), place)}.", words.facts(runs)]
    return {**files, place: site_page(place, title, head, parts, [source])}


def _runs_csv(runs: pd.DataFrame) -> bytes:
    """Return runs with the columns that reports write; the machine only where there are several."""
    return to_csv(runs.drop(columns=[*OF_READING, *([] if (runs["machine"] != "").any() else ["machine"])]))


def _rows_json(source: Source, runs: pd.DataFrame, **about: Any) -> bytes:
    """Return runs and their environments as a JSON object: JSON in rows stands in it as objects, what is missing or infinite is null."""
    table = runs.drop(columns=[*OF_READING, "machine"]).astype(object)
    for column in _JSON:
        table[column] = table[column].map(json.loads, na_action="ignore")
    environments = [each for each in source.results.environments if each["id"] in set(runs["environment_id"])]
    rows = table.where(table.notna(), None).to_dict("records")
    content = json.dumps({"suite": source.results.name, **about, "environments": environments, "runs": rows})
    return (json.dumps(json.loads(content, parse_constant=lambda _: None), indent=1) + "\n").encode("ascii")


def index_page(title: str, sources: Sequence[Source], fastest: Mapping[str, Counts]) -> bytes:
    """Return the index: a table of all suites; `fastest` says by their `slug` on how many problems who is fastest."""
    import pandas as pd

    rows = []
    for source in sources:
        runs, missing = source.results.runs, source.results.missing
        specs = [json.loads(spec) for spec in runs["data"].unique()]
        row = {
            "Suite": source.title,
            **{name.capitalize(): cell for name, cell in fastest[source.slug].cells().items()},
            "Families": ", ".join(map(str, runs["problem"].unique())),
            "Data": ", ".join(
                dict.fromkeys(one_line(str(spec.get("name") or spec.get("file") or "data"), LONGEST_LABEL) for spec in specs)
            ),
            "Solvers": runs.loc[runs["status"] != Status.SKIPPED, "solver"].nunique(),
            "Instances": runs["instance_key"].nunique(),
            "Runs": f"{len(runs)}" + (f" ({plural(missing, 'case')} not run yet)" if missing else ""),
            "Verified": (runs["status"] == Status.VERIFIED).sum(),
            "Machine": "; ".join(one_line(words.machine_words(machine), LONGEST_LABEL) for machine in source.results.machines),
            "Run on": dates_of(source.results),
        }
        rows.append({heading: str(cell) for heading, cell in row.items()})
    doubted = enumerated([escaped(source.title) for source in sources if source.contradicted])
    head = [f"> **Proven bounds contradict each other in {doubted}: no number of these problems should be trusted.**"] if doubted else []
    table = Part("Suites", table=pd.DataFrame(rows), name="suites", addresses=[suite_path(source.slug) for source in sources])
    return site_page(INDEX, title, head, [table], sources)


def history_path(versions: Sequence[Source]) -> str:
    """Return the path of the history of a suite."""
    return f"history/{versions[0].slug}.html"


def history_page(versions: Sequence[Source]) -> bytes:
    """Return the page of a suite that was run several times, the earliest first: each against the one before, and the first."""
    place = history_path(versions)
    parts = [Part("Results", _list({suite_path(each.slug): f"{each.slug} ({dates_of(each.results)})" for each in versions}, place))]
    for old, new in [*pairwise(versions), *((versions[0], each) for each in versions[2:])]:
        parts.append(Part(f"From {old.slug} ({dates_of(old.results)}) to {new.slug} ({dates_of(new.results)})", _step(old, new, versions)))
    head = "Ratios are of cases that all results have: same problem, data, parameters, seed, solver, options, target, clock, repetition."
    return site_page(place, f"History of {one_line(versions[0].results.name, LONGEST_LABEL)}", [head], parts, versions)


def _step(old: Source, new: Source, versions: Sequence[Source]) -> str:
    """Return the comparison of two results in Markdown; A is the older one."""
    try:
        comparison = compare(old.folder, new.folder, among=[each.folder for each in versions if each not in (old, new)])
    except NotComparableError as error:
        return f"Not compared: {escaped(error.reason)}."
    parts = [verdict(comparison), "\n".join(f"- {escaped(line)}" for line in basis(replace(comparison, names=("A", "B"))))]
    parts += [times_table(comparison.groups, comparison.targets), reading(comparison)] if comparison.groups else []
    changes = "\n".join(f"- {escaped(change(each))}" for each in comparison.changes)
    return "\n\n".join([*parts, "Changes of status:" if changes else "No run changed its status.", changes])
