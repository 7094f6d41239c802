"""Makes a static site of results, and writes it: what has not changed since the last time is not made again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import require_label
from bench_mtl.data.catalogue import data_directory
from bench_mtl.publish.bundles import Bundle, Order, bundle, bundle_paths, order_digest
from bench_mtl.publish.cards import index_page
from bench_mtl.publish.history_pages import history_page
from bench_mtl.publish.layout import INDEX, history_path
from bench_mtl.publish.leader_pages import family_slugs, leader_pages
from bench_mtl.publish.leaders import boards
from bench_mtl.publish.sources import Source, all_machines, read_sources, results_folders, versions_of
from bench_mtl.publish.writing import Earlier, Suite, earlier_site, hashed, is_whole, write_site

TITLE = "Comparisons of solvers"


@dataclass(frozen=True)
class Published:
    """A site that has been written, in short."""

    index: Path
    suites: int
    instances: int
    families: int
    """Families of problems that have leader boards."""
    rendered: int
    """Suites whose pages were made; those of the others are as they were."""
    contradictions: tuple[str, ...]
    """The titles of suites in which proven bounds exclude each other."""
    left_out: tuple[str, ...]
    """The names of folders that hold no results of a suite."""


def publish(
    paths: Sequence[Path],
    out: Path,
    *,
    title: str | None = None,
    instances: bool = False,
    data_dir: Path | None = None,
    plugins: Path | None = None,
    jobs: int = 1,
) -> Published:
    """Write a site of the results in these folders: the same rows and the same bench-mtl give the same bytes.

    Parameters
    ----------
    paths : results folders, or folders of such
    out : the folder of the site, where nothing or an earlier site is
    title : of the index; `TITLE` by default
    instances : whether instances are built again and written as files
    data_dir : where their data are looked for
    plugins : plug-in folder that they are built with
    jobs : processes that make pages; more than one only where the main module can be imported again

    Raises
    ------
    InputError : there are no results, or some cannot be read; `out` holds something else than an earlier site, or is a folder of results
        itself; a title that is none; no folder of data or plug-ins.
    """
    title, jobs = require_label("--title", TITLE if title is None else title), whole_number("--jobs", jobs, minimum=1)
    if not title.strip():
        raise InputError("--title must be visible characters, not nothing")
    if instances:
        data_directory(data_dir)
    folders, left_out = results_folders(paths)
    for folder in folders:
        if out.resolve() == folder.resolve():
            raise InputError(f"--out: {out} is a folder of results: choose another one")
    earlier = earlier_site(out)
    sources = read_sources(folders)
    found = boards(sources)
    orders = _orders(sources, family_slugs(found), instances=instances, data_dir=data_dir, plugins=plugins)
    digests = {order.slug: order_digest(order, source) for order, source in zip(orders, sources, strict=True)}
    kept = {source.slug: earlier.suites[source.slug] for source in sources if _is_kept(source, digests[source.slug], earlier, out)}
    files: dict[str, bytes] = {}
    suites = dict(kept)
    with _bundles([order for order in orders if order.slug not in kept], jobs) as made:
        files |= leader_pages(found, sources, all_machines(sources))
        files |= {history_path(versions[0].slug): history_page(versions) for versions in versions_of(sources).values()}
        for order, each in made:
            files |= each.files
            hashes = {path: hashed(content) for path, content in each.files.items()}
            suites[order.slug] = Suite(digests[order.slug], each.finding, hashes)
    files[INDEX] = index_page(title, sources, {name: suite.finding for name, suite in suites.items()})
    write_site(out, files, suites, earlier)
    return Published(
        index=out / INDEX,
        suites=len(sources),
        instances=sum(len(source.instances) for source in sources),
        families=len({board.family for board in found}),
        rendered=len(sources) - len(kept),
        contradictions=tuple(source.title for source in sources if source.contradicted),
        left_out=tuple(left_out),
    )


def _orders(
    sources: Sequence[Source], families: Mapping[str, str], *, instances: bool, data_dir: Path | None, plugins: Path | None
) -> list[Order]:
    """Return what is to be made of each results folder."""
    history = {version.slug: versions[0].slug for versions in versions_of(sources).values() for version in versions}
    own = [{family: families[family] for family in families if (source.results.runs["problem"] == family).any()} for source in sources]
    return [
        Order(source.folder, source.slug, source.title, history.get(source.slug), of_source, instances, data_dir, plugins)
        for source, of_source in zip(sources, own, strict=True)
    ]


def _is_kept(source: Source, digest: str, earlier: Earlier, out: Path) -> bool:
    """Return whether the files of a suite are there already, as they would be made now."""
    before = earlier.suites.get(source.slug)
    return before is not None and before.digest == digest and bundle_paths(source) <= set(before.files) and is_whole(out, before.files)


@contextmanager
def _bundles(orders: Sequence[Order], jobs: int) -> Iterator[Iterator[tuple[Order, Bundle]]]:
    """Yield the orders with their files; with several processes these have begun by then.

    The other processes are started anew, not forked, for this one may have threads.
    """
    if min(jobs, len(orders)) < 2:
        yield ((order, bundle(order)) for order in orders)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from bench_mtl.report.figures.printing import ignore_interrupts

    pool = ProcessPoolExecutor(min(jobs, len(orders)), get_context("spawn"), initializer=ignore_interrupts)
    try:
        yield zip(orders, pool.map(bundle, orders), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)
