"""The results that a site is made of, each read once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists, is_dir, is_file, require_readable
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.engine.environment import machines
from bench_mtl.publish.names import slug
from bench_mtl.report.columns import enumerated
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.words import provenance_lines
from bench_mtl.results import FILE_NAME
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.loading import Results, read_results

if TYPE_CHECKING:
    import pandas as pd

#: Columns that say what times depend on.
_PROVENANCE = ["problem", "solver_label", "repetition", "threads", "limits", "info"]


@dataclass(frozen=True, eq=False)
class Source:
    """One results folder."""

    folder: Path
    slug: str
    """The name of its files."""
    title: str
    """The name of the suite, on one line; with the days on which it was run where there are several results of it."""
    results: Results
    digest: str
    """Of the rows, as they are stored."""
    machine_of: Mapping[int, int]
    """By the id of an environment the place of its machine among those of all results."""
    version: int
    """How many results of the same suite were begun before."""
    is_latest: bool
    """Whether none of that suite were begun later on the same machines. Results that lack cases do not take the place of whole ones: what
    they lack may be what failed."""

    @property
    def date(self) -> str:
        """The days on which its runs were made."""
        return dates_of(self.results)

    @cached_property
    def times(self) -> pd.DataFrame:
        """What it took each run to reach each target, as of `run_times`."""
        return run_times(self.results.runs, self.results.samples, self.results.targets)

    @cached_property
    def enclosures(self) -> pd.DataFrame:
        """What is proven of the optimum of each instance, as of `enclosures`."""
        return enclosures(objectives(self.results.runs, self.results.samples))

    @property
    def contradicted(self) -> frozenset[str]:
        """The instances on which proven bounds exclude each other."""
        return frozenset(self.enclosures.loc[~self.enclosures["agrees"].astype(bool), "instance"])

    @property
    def is_inline(self) -> bool:
        """Whether some of its runs were certified in the process of the solvers alone, which a solver can change."""
        return any(environment.get("isolation") == "inline" for environment in self.results.environments)

    @cached_property
    def instances(self) -> tuple[str, ...]:
        """The keys of the instances, in the order of the runs."""
        return tuple(map(str, self.results.runs["instance_key"].unique()))


def results_folders(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the results folders that are meant by paths, and the names of what has no results of a suite.

    A folder without a results file stands for the folders in it that have one.

    Raises
    ------
    InputError : a path that does not exist, a results file in the place of its folder, or no results at all.
    """
    found: dict[Path, Path] = {}
    others = []
    for path in paths:
        if path.name == FILE_NAME and is_file("results", path):
            raise InputError(f"{path} is a results file: give the folder that it is in")
        if not exists("results folder", path):
            raise InputError(f"results folder {path} does not exist")
        inner = _folders_in(path)
        holding = [path] if _has_results(path) else [folder for folder in inner if _has_results(folder)]
        found |= {folder.resolve(): folder for folder in holding if folder.resolve() not in found}
        if not holding:
            others.append(path.name)
        elif holding != [path]:
            others += [folder.name for folder in inner if folder not in holding]
    if not found:
        raise InputError(f"no results in {', '.join(map(str, paths))}: there is no {FILE_NAME} in them or in the folders in them")
    return list(found.values()), list(dict.fromkeys(others))


def _folders_in(path: Path) -> list[Path]:
    if not is_dir("results folder", path):
        return []
    require_readable("results folder", path)
    return sorted(child for child in path.iterdir() if not child.name.startswith(".") and is_dir("results folder", child))


def _has_results(path: Path) -> bool:
    return is_dir("results folder", path) and is_file("results", path / FILE_NAME)


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """Return the results in these folders, in their order.

    Results of one suite are numbered by the day on which they were begun: `quick`, `quick-2`.

    Raises
    ------
    InputError : results that cannot be read, or that hold no finished run.
    """
    read = [read_results(folder) for folder in folders]
    _, places = machines([environment for results in read for environment in results.environments])
    place = iter(places)
    machine_of = [{int(environment["id"]): next(place) for environment in results.environments} for results in read]
    begun = [min(str(environment["started"]) for environment in results.environments) for results in read]
    in_time = sorted(range(len(read)), key=lambda number: (begun[number], number))
    slugs: dict[int, str] = {}
    of_suite: dict[str, list[int]] = {}
    latest: dict[tuple[str, frozenset[int]], int] = {}
    for number in in_time:
        name = read[number].name
        slugs[number] = slug(name, slugs.values())
        of_suite.setdefault(name, []).append(number)
        before = latest.setdefault((name, frozenset(machine_of[number].values())), number)
        if not read[number].missing or read[before].missing:
            latest[name, frozenset(machine_of[number].values())] = number
    return [
        Source(
            folder=folder,
            slug=slugs[number],
            title=one_line(results.name, LONGEST_LABEL) + (f" ({dates_of(results)})" if len(of_suite[results.name]) > 1 else ""),
            results=results,
            digest=rows_digest(folder),
            machine_of=machine_of[number],
            version=of_suite[results.name].index(number),
            is_latest=number in latest.values(),
        )
        for number, (folder, results) in enumerate(zip(folders, read, strict=True))
    ]


def dates_of(results: Results) -> str:
    """Return the first and the last day on which runs were made."""
    days = sorted(one_line(str(each["started"])[:10], LONGEST_LABEL) for each in results.environments)
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def inline_alarms(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the sentence that says which results prove less than others; nothing where none do."""
    named = [source.title for source in sources if source.is_inline]
    said = "were certified in the process of the solvers alone (isolation inline), which a solver can change: they prove less than others"
    return (f"Runs of {enumerated(named)} {said}.",) if named else ()


def all_machines(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return the machines of all results, in the order of their places."""
    return machines([environment for source in sources for environment in source.results.environments])[0]


def provenance_of(sources: Sequence[Source], family: str | None = None) -> dict[str, str]:
    """Return what the times of several results depend on, or those of one family of problems in them, as of `provenance_lines`."""
    import pandas as pd

    runs = pd.concat([source.results.runs[_PROVENANCE] for source in sources], ignore_index=True)
    if family is not None:
        runs = runs[runs["problem"] == family]
    return provenance_lines([environment for source in sources for environment in source.results.environments], runs)


def rows_digest(folder: Path) -> str:
    """Return a hash of the file that holds the rows, and of what a run has written and not yet moved into it."""
    found = hashlib.sha256()
    for path in (folder / FILE_NAME, folder / f"{FILE_NAME}-wal"):
        if path.is_file():
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def versions_of(sources: Sequence[Source]) -> dict[str, list[Source]]:
    """Return the results of suites that were run more than once, by name, the earliest first."""
    of_suite: dict[str, list[Source]] = {}
    for source in sorted(sources, key=lambda each: each.version):
        of_suite.setdefault(source.results.name, []).append(source)
    return {name: versions for name, versions in of_suite.items() if len(versions) > 1}
