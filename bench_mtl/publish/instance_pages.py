"""A page for every instance: what it is, what is proven of its optimum, what every solver came to, and its rows to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.publish.attachments import Attachments
from bench_mtl.publish.layout import Link, instance_path, links, site_page, suite_path
from bench_mtl.publish.rows import rows_json, runs_csv
from bench_mtl.report import words
from bench_mtl.report.registry import TABLES, printed
from bench_mtl.report.render.shell import SCRIPT, Markdown
from bench_mtl.report.render.tables import Table, text_table
from bench_mtl.report.tables.summary import not_verified, summary
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.frames import all_skipped, numbers
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd

_NO_FILES = Attachments(said=("The instance itself is not among the files of this site (bench-mtl publish --instances).",))

#: Rows of a table that needs no script.
_FEW = 20

#: What files are, by their endings.
_KINDS = {
    "csv": "Rows as CSV",
    "json": "Rows as JSON",
    "npz": "Arrays (npz): features, targets, parameters",
    "mps": "Linear programme (MPS)",
    "cbf": "Cone programme (CBF)",
}


@dataclass(frozen=True)
class Instance:
    """The rows of one instance."""

    key: str
    title: str
    runs: pd.DataFrame
    samples: pd.DataFrame


def instances(results: Results) -> list[Instance]:
    """Return the instances of a suite, in the order of the runs."""
    found = []
    for key, runs in results.runs.groupby("instance_key", sort=False):
        samples = results.samples[results.samples["run_id"].isin(runs["id"])].reset_index(drop=True)
        found.append(Instance(str(key), _title(runs), runs.reset_index(drop=True), samples))
    return found


def _title(runs: pd.DataFrame) -> str:
    """Return the label of the problem, without the machine, and the seed."""
    label, machine, seed = str(runs["problem_label"].iloc[0]), str(runs["machine"].iloc[0]), numbers(runs, "seed").iloc[0]
    label = label.removesuffix(f" [{machine}]") if machine else label
    return label if seed != seed else f"{label}, seed {seed:.0f}"


def instance_files(
    results: Results, suite: str, title: str, instance: Instance, md: Markdown, attached: Attachments | None = None
) -> dict[str, bytes]:
    """Return the page of an instance and its files, by path.

    Parameters
    ----------
    results : that it is from
    suite : their `slug`
    title : of the suite
    attached : the instance itself, where that is wanted
    """
    attached = _NO_FILES if attached is None else attached
    bounds = objectives(instance.runs, instance.samples)
    best = enclosures(bounds)
    environments = [entry for entry in results.environments if entry["id"] in set(instance.runs["environment_id"])]
    files = {
        "csv": runs_csv(instance.runs),
        "json": rows_json(instance.runs, environments, suite=results.name, instance=instance.key, enclosure=_enclosure(best)),
        **attached.files,
    }
    page = instance_path(suite, instance.key)
    named = page.rpartition("/")[2].removesuffix("html")
    tables = _tables(instance, bounds, results.targets, md)
    parts = {
        "optimum": md(words.enclosure_sentences(best) or "No run has proven anything of it."),
        "tables": tables,
        "downloads": [Link(_KINDS[ending], named + ending) for ending in files],
        "said": attached.said,
    }
    html = site_page(
        "instance.html",
        instance.title,
        links(page, (title, suite_path(suite))),
        md(words.facts(instance.runs)),
        md(words.provenance(environments, instance.runs)),
        parts,
        alarms=words.contradictions(best),
        scripts=SCRIPT if any(len(table.rows) > _FEW for table in tables) else (),  # there are many pages
    )
    return {page: html} | {instance_path(suite, instance.key, ending): content for ending, content in files.items()}


def _enclosure(best: pd.DataFrame) -> dict[str, Any] | None:
    """Return what is proven of the optimum for the file of rows."""
    row: Mapping[Any, Any] | None = next(iter(best.to_dict("records")), None)
    return None if row is None else {name: row[name] for name in ("dual", "dual_solver", "primal", "primal_solver", "agrees")}


def _tables(instance: Instance, bounds: pd.DataFrame, targets: Sequence[float], md: Markdown) -> list[Table]:
    outcomes = summary(instance.runs, instance.samples, targets)
    skipped = all_skipped(outcomes["status"])
    failed = not_verified(instance.runs)
    shown = {
        "summary": ("Outcomes", "Seconds until each gap was proven; `(k/N)` where only k of N runs got there.", outcomes[~skipped]),
        "not_verified": ("Not verified", "Every run that did not reach its target, or was skipped, with its reason.", failed),
        "objectives": ("Enclosures", TABLES["objectives"].explanation, bounds),
    }
    one = instance.runs["problem_label"].nunique() == 1
    return [
        text_table(name, title, md(about), printed(name, table, *(["problem"] if one else [])))
        for name, (title, about, table) in shown.items()
        if len(table)
    ]
