"""Makes a static site of results beside the place where it belongs, and puts it there when it is complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError, not_written
from bench_mtl.core.files import exists, is_dir
from bench_mtl.core.text import require_label
from bench_mtl.data.catalogue import data_directory
from bench_mtl.engine.registry import load_registry
from bench_mtl.publish.board_pages import board_pages
from bench_mtl.publish.boards import boards
from bench_mtl.publish.pages import history_page, history_path, index_page, suite_files
from bench_mtl.publish.paths import INDEX
from bench_mtl.publish.sources import read_sources, results_folders, versions_of
from bench_mtl.results.files import locked

TITLE = "Comparisons of solvers"

#: Says that a folder is a site, and lists its files.
MARK = "site.json"

_MADE_BY = "bench-mtl publish"


@dataclass(frozen=True)
class Published:
    """A site that has been written, in short."""

    index: Path
    suites: int
    instances: int
    families: int
    contradictions: tuple[str, ...]
    """Suites in which proven bounds exclude each other."""
    left_out: tuple[str, ...]
    """Folders that hold no results of a suite."""


def publish(
    paths: Sequence[Path],
    out: Path,
    *,
    title: str = TITLE,
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
    title : of the index
    instances : whether instances are built again and written as files, with the data in `data_dir` and the plug-ins in `plugins`
    jobs : processes that draw figures; more than one only where the main module can be imported again

    Raises
    ------
    InputError : there are no results, or some cannot be read; `out` holds something else than an earlier site, is a folder of results
        itself, or is being written; a title that is none; no folder of data or plug-ins.
    """
    jobs = whole_number("--jobs", jobs, minimum=1)
    if not require_label("--title", title).strip():
        raise InputError("--title must be visible characters, not nothing")
    if instances:
        data_directory(data_dir)
    elif data_dir or plugins:
        raise InputError("--data-dir and --plugins are for --instances, which builds the problems again")
    folders, left_out = results_folders(paths)
    if out.resolve() in [folder.resolve() for folder in folders]:
        raise InputError(f"--out: {out} is a folder of results: choose another one")
    registry = load_registry(plugins) if instances else None
    with in_place_of(out.resolve()) as new:
        sources, fastest = read_sources(folders), {}
        contests, versions = boards(sources), versions_of(sources)
        histories = {source.slug: history_path(of_suite) for of_suite in versions for source in of_suite}
        families = {board.family: board.path for board in contests}
        for source in sources:
            files, fastest[source.slug] = suite_files(source, histories.get(source.slug), families, registry, data_dir, jobs)
            _write(new, files)
        _write(new, {history_path(of_suite): history_page(of_suite) for of_suite in versions})
        _write(new, {**board_pages(contests, sources), INDEX: index_page(title, sources, fastest)})
    number = sum(source.results.runs["instance_key"].nunique() for source in sources)
    contradictions = tuple(source.title for source in sources if source.contradicted)
    return Published(out / INDEX, len(sources), number, len(families), contradictions, tuple(left_out))


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@contextmanager
def in_place_of(site: Path) -> Iterator[Path]:
    """Yield a folder that takes the place of a site at the end; where that is not reached, the earlier site is as it was.

    It lies in a folder beside the site that is locked, so that a second build of the site fails meanwhile.

    Raises
    ------
    InputError : there is something else than a site, or it cannot be written.
    """
    if not site.name:
        raise InputError(f"a site cannot take the place of {site}")
    work = site.with_name(f".{site.name}.build")
    new, old = work / "new", work / "old"
    try:
        work.mkdir(parents=True, exist_ok=True)
        with locked(work):
            try:
                _settle(site, old)
                _require_site(site)
                shutil.rmtree(new, ignore_errors=True)  # left behind by a build that was killed
                new.mkdir()
                yield new
                _write(new, {MARK: json.dumps({"made by": _MADE_BY, "files": _files(new)}, indent=1).encode("ascii")})
                if site.exists():
                    site.rename(old)
                new.rename(site)
            finally:
                _settle(site, old)
                shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise not_written(f"the site cannot be written to {site}", error) from None
    finally:
        with suppress(OSError):  # another build is at work in it
            work.rmdir()


def _settle(site: Path, old: Path) -> None:
    """End what a build has begun with the earlier site: it goes back where there is no new one, else what is not of it goes there."""
    if not site.exists() and old.exists():
        old.rename(site)
    elif old.exists():
        for other in [path for path in old.iterdir() if path.name.startswith(".")]:
            other.rename(site / other.name)
        shutil.rmtree(old)


def _require_site(folder: Path) -> None:
    """Refuse a folder that holds anything that is not of an earlier site."""
    if exists("output folder", folder) and not is_dir("output folder", folder):
        raise InputError(f"--out: {folder} is not a folder")
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
        listed = {MARK, *mark["files"]} if mark["made by"] == _MADE_BY else set()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        listed = set()
    if others := [path for path in _files(folder) if path not in listed]:
        raise InputError(f"--out: {folder} holds {others[0]}, which is not of an earlier site: choose another folder, or move it away")


def _files(folder: Path) -> list[str]:
    """Return the paths of all files in a folder, but for those whose first name begins with a dot, which are somebody else's, and stay."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path for path in paths if not path.startswith("."))
