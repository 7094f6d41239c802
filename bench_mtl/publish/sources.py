"""The results that a site is made of, each read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists, is_dir, is_file, require_readable
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.engine.environment import machines
from bench_mtl.publish.paths import links, slug
from bench_mtl.report.columns import escaped
from bench_mtl.report.document import Document, Part
from bench_mtl.report.render.html import page
from bench_mtl.report.words import inline, machine_words, provenance_lines
from bench_mtl.results import FILE_NAME
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.loading import Results, machine_name, read_results


@dataclass(frozen=True, eq=False)
class Source:
    """One results folder."""

    folder: Path
    slug: str  # the name of its files
    title: str  # the name of the suite, on one line; with the days on which it was run where there are several results of it
    results: Results
    begun: str
    machine_of: Mapping[int, int]  # by the id of an environment the place of its machine in `machines`
    machines: Sequence[Mapping[str, Any]]  # those of all results of the site

    @cached_property
    def contradicted(self) -> frozenset[str]:
        """The instances on which proven bounds exclude each other."""
        table = enclosures(objectives(self.results.runs, self.results.samples))
        return frozenset(table.loc[~table["agrees"].astype(bool), "instance"])


def results_folders(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the results folders that are meant by paths, and the names of what has no results of a suite.

    A folder without a results file means the folders in it that have one.

    Raises
    ------
    InputError : a path that does not exist, a results file in the place of its folder, or no results at all.
    """
    folders: dict[Path, Path] = {}
    others = []
    for path in paths:
        if path.name == FILE_NAME and is_file("results", path):
            raise InputError(f"{path} is a results file: give the folder that it is in")
        if not exists("results folder", path):
            raise InputError(f"results folder {path} does not exist")
        inner = [path]
        if is_dir("results folder", path) and not is_file("results", path / FILE_NAME):
            require_readable("results folder", path)
            inner = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
        holding = [folder for folder in inner if is_file("results", folder / FILE_NAME)]
        folders |= {folder.resolve(): folder for folder in holding if folder.resolve() not in folders}
        others += [folder.name for folder in inner if folder not in holding] if holding else [path.name]
    if not folders:
        raise InputError(f"no results in {', '.join(map(str, paths))}: there is no {FILE_NAME} in them or in the folders in them")
    return list(folders.values()), list(dict.fromkeys(others))


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """Return the results in these folders, in their order. Those of one suite are numbered as they were begun: `quick`, `quick-2`.

    Raises
    ------
    InputError : results that cannot be read, or that hold no finished run.
    """
    results = [read_results(folder) for folder in folders]
    names = [each.name for each in results]
    every, places = machines([environment for each in results for environment in each.environments])
    next_place = iter(places)
    machine_of = [{int(environment["id"]): next(next_place) for environment in each.environments} for each in results]
    begun = [min(str(environment["started"]) for environment in each.environments) for each in results]
    slugs: dict[int, str] = {}
    for number in sorted(range(len(results)), key=begun.__getitem__):
        slugs[number] = slug(names[number], slugs.values())
    titles = [one_line(each.name, LONGEST_LABEL) + (f" ({dates_of(each)})" if names.count(each.name) > 1 else "") for each in results]
    return [
        Source(folder, slugs[number], titles[number], results[number], begun[number], machine_of[number], every)
        for number, folder in enumerate(folders)
    ]


def latest(sources: Sequence[Source]) -> list[Source]:
    """Return the last results of each suite on the same machines, of those that have all cases if any have: what others lack may be what
    failed."""
    last: dict[tuple[str, frozenset[int]], Source] = {}
    for source in sorted(sources, key=lambda each: (not each.results.missing, each.begun)):
        last[source.results.name, frozenset(source.machine_of.values())] = source
    return [source for source in sources if source in last.values()]


def dates_of(results: Results) -> str:
    """Return the first and the last day on which runs were made."""
    days = sorted(one_line(str(each["started"])[:10], LONGEST_LABEL) for each in results.environments)
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def versions_of(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the results of each suite that was run more than once, the earliest first."""
    of_suite: dict[str, list[Source]] = {}
    for source in sorted(sources, key=lambda each: each.begun):
        of_suite.setdefault(source.results.name, []).append(source)
    return [versions for versions in of_suite.values() if len(versions) > 1]


def site_page(place: str, title: str, head: Sequence[str], parts: Sequence[Part], sources: Sequence[Source]) -> bytes:
    """Return a page that is no report: before all whether its runs prove less than others, `head` in Markdown, and machines at the end."""
    import pandas as pd

    environments = [environment for source in sources for environment in source.results.environments]
    lines = provenance_lines(environments, pd.concat([source.results.runs for source in sources], ignore_index=True))
    machines = sources[0].machines
    if len(machines) > 1:
        places = sorted({place for source in sources for place in source.machine_of.values()})
        lines["Machine"] = "; ".join(f"{machine_name(place)}: {escaped(machine_words(machines[place]))}" for place in places)
    listed = "\n".join(f"- {name}: {lines[name]}" for name in ("Machine", "Run", "Versions", "Libraries", "Threads") if name in lines)
    alarm = [f"> {inline(environments)}"] if inline(environments) else []
    introduction = "\n\n".join([f"# {escaped(title)}", *alarm, *head])
    whence = Part("Machines and versions", listed, name="environment")
    return page(Document(one_line(title, LONGEST_LABEL), introduction, (*parts, whence)), above=links(place))
