"""All files of one suite: its report as a page, its instances, and what can be taken away."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata, resources
from pathlib import Path

from bench_mtl.core.code_digests import code_digests
from bench_mtl.core.errors import BenchError
from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.publish.attachments import attachments
from bench_mtl.publish.instance_pages import Instance, instance_files, instances
from bench_mtl.publish.layout import address, family_path, history_path, instance_path, links, suite_path
from bench_mtl.publish.names import key_name
from bench_mtl.publish.rows import rows_json, runs_csv
from bench_mtl.publish.sources import Source
from bench_mtl.report import words
from bench_mtl.report.columns import escaped, to_csv
from bench_mtl.report.document import Part
from bench_mtl.results.loading import Results, read_results

#: Packages that pages are rendered with.
_RENDERERS = ("numpy", "pandas", "scipy", "matplotlib", "jinja2", "markdown-it-py", "pyarrow", "tabulate", "cvxpy", "highspy")


@dataclass(frozen=True)
class Order:
    """What is to be made of one results folder, for any process."""

    folder: Path
    slug: str
    title: str
    history: str | None
    """The `slug` that the history of the suite goes by, where there is one."""
    families: Mapping[str, str]
    """The names of the files of leader boards, by the families of its problems."""
    with_instances: bool
    data_dir: Path | None = None
    plugins: Path | None = None


@dataclass(frozen=True)
class Bundle:
    """The files of one suite."""

    files: Mapping[str, bytes]
    """By path."""
    finding: str
    """What its rows say, in Markdown."""


def order_digest(order: Order, source: Source) -> str:
    """Return a hash of all that the files of a suite are made from: its rows, the code, what it is linked to, and the data."""
    around = [order.slug, order.title, order.history, sorted(order.families.items()), order.with_instances]
    data = _fingerprints(source, order.data_dir) if order.with_instances else []
    content = [source.digest, around, _made_with(order.plugins), data]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _made_with(plugins: Path | None) -> list[str]:
    """Return the versions of all that renders pages."""
    assets = hashlib.sha256()
    for package in ("bench_mtl.report.render", "bench_mtl.publish"):
        files = (file for file in resources.files(package).iterdir() if file.name.endswith((".html", ".css", ".js")))
        for file in sorted(files, key=lambda each: each.name):
            assets.update(f"{package} {file.name}\n".encode() + file.read_bytes())
    versions = [f"{name} {metadata.version(name)}" for name in _RENDERERS]
    return [platform.python_version(), *versions, assets.hexdigest(), json.dumps(code_digests(plugins), sort_keys=True)]


def _fingerprints(source: Source, data_dir: Path | None) -> list[str]:
    """Return the fingerprints of the data of all instances; empty ones of data that are not to be had."""
    runs = source.results.runs.drop_duplicates("instance_key")
    found = []
    for spec, seed in zip(runs["data"], runs["seed"].tolist(), strict=True):
        try:
            found.append(fingerprint(json.loads(spec), data_dir=data_dir, seed=int(seed) if isinstance(seed, int) else None))
        except (BenchError, TypeError):
            found.append("")
    return found


def bundle(order: Order) -> Bundle:
    """Return the files of one suite: the same rows, code and order give the same bytes.

    Raises
    ------
    InputError : its results, or the plug-in folder, cannot be read.
    """
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.report.index import finding
    from bench_mtl.report.render.shell import Markdown

    results = read_results(order.folder)
    found, md = instances(results), Markdown()
    registry = load_registry(order.plugins) if order.with_instances else None
    files = {suite_path(order.slug): _report_page(order, results, found)}
    files |= _downloads(order.slug, results)
    for instance in found:
        attached = None if registry is None else attachments(instance.runs, instance.samples, registry, order.data_dir)
        files |= instance_files(results, order.slug, order.title, instance, md, attached)
    return Bundle(files, finding(results))


def bundle_paths(source: Source) -> set[str]:
    """Return the paths that the files of a suite have at the least."""
    endings = ("html", "csv", "json")
    own = {instance_path(source.slug, key, ending) for key in source.instances for ending in endings}
    return own | {suite_path(source.slug), *(f"suites/{source.slug}/{name}" for name in _DOWNLOADS)}


#: Files to take away, and what they are.
_DOWNLOADS = {
    "runs.csv": "Runs as CSV",
    "runs.json": "Runs as JSON, with the environments that they were made in",
    "samples.csv": "Certified points of all runs as CSV",
    "suite.toml": "The suite file, by which it is run again",
}


def _downloads(suite: str, results: Results) -> dict[str, bytes]:
    """Return the files to take away of a whole suite, by path."""
    made = {
        "runs.csv": runs_csv(results.runs),
        "runs.json": rows_json(results.runs, results.environments, suite=results.name),
        "samples.csv": to_csv(results.samples),
        "suite.toml": words.suite_text(results.text).encode(),
    }
    return {f"suites/{suite}/{name}": made[name] for name in _DOWNLOADS}


def _report_page(order: Order, results: Results, found: list[Instance]) -> bytes:
    """Return the report of a suite, with links to the pages and files of the site that are about it."""
    from bench_mtl.report.figures.gallery import gallery
    from bench_mtl.report.figures.printing import printing
    from bench_mtl.report.registry import report_tables
    from bench_mtl.report.render.html import page
    from bench_mtl.report.suite_report import suite_document

    tables = report_tables(results)
    entries = gallery(results, tables)
    document = suite_document(results, tables, entries, every_table=True)
    with printing(entries, ["svg"]) as figures:
        drawn = figures()
    history = [] if order.history is None else [("History of this suite", history_path(order.history))]
    parts = (*document.parts, *_links(order, results, found))
    return page(replace(document, parts=parts), drawn, above=links(suite_path(order.slug), *history))


def _links(order: Order, results: Results, found: list[Instance]) -> list[Part]:
    """Return the links to instances, leader boards and files to take away, as parts of the report."""
    page = suite_path(order.slug)
    families = [name for name in dict.fromkeys(map(str, results.runs["problem"])) if name in order.families]
    listed = {
        "Instances": [(each.title, f"{order.slug}/{key_name(each.key)}.html") for each in found],
        "Leader boards of these problems": [(name, address(family_path(order.families[name]), page)) for name in families],
        "Downloads": [(words, f"{order.slug}/{name}") for name, words in _DOWNLOADS.items()],
    }
    return [Part(title, "\n".join(f"- [{escaped(words)}]({path})" for words, path in each)) for title, each in listed.items() if each]
