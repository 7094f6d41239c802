"""Two results of the same cases side by side: what they were made in, how they ended, how their times compare.

The first, A, is the old one and the second, B, the new one: a ratio above 1 is a slowdown. `docs/results.md` says how to read it.
"""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.engine.environment import MACHINE, same_memory
from bench_mtl.results.enclosures import ROUNDING, ROUNDING_OF_START, bounds
from bench_mtl.results.frames import times_to_gap
from bench_mtl.results.loading import Results, read_results
from bench_mtl.stats import Interval, geometric_mean_ratio, joint_confidence

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array

#: A ratio of fewer pairs is shown, but never called significant: their scatter is hardly known.
FEWEST_PAIRS = 5

#: All intervals that verdicts rest on hold at once with this probability.
CONFIDENCE = 0.95

#: Shorter times count as this: below it a timer, the caches and the scheduler are measured, not the solver, and a time may be zero.
FLOOR_SECONDS = 1e-4

#: What tells a case from others. No version, hash or label is among it: those are what one compares, or mere names.
_CASE = ["instance", "solver", "options", "target", "clock", "repetition"]
_CASE_WORDS = "a case is the same problem, data, parameters, seed, solver, options, target, clock and repetition"

#: What times depend on besides code: keys of an environment's description and how people are told of them.
_CONDITIONS = (*MACHINE, "processor_details", "isolation", "slots")
_MACHINE = {key: "memory (GiB)" if key == "memory_gib" else key.replace("_", " ") for key in _CONDITIONS}
_NOT_SOFTWARE = {*_MACHINE, "id", "started", "threads", "packages"}

_UNRECORDED = "not recorded"


class NotComparableError(InputError):
    """Two results whose times say nothing of each other; `reason` says why in words that name no folder."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Verdict(enum.StrEnum):
    """What the interval of a ratio says: `same` lies within the threshold, `unclear` reaches over it."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNCLEAR = "unclear"
    TOO_FEW = "too few"


@dataclass(frozen=True)
class Difference:
    """Something that differs between the two sides, with the number of pairs in which it does."""

    what: str
    old: str
    new: str
    pairs: int

    @property
    def is_known(self) -> bool:  # to both sides; else they may be the same
        return _UNRECORDED not in (self.old, self.new)


@dataclass(frozen=True)
class Cell:
    """The times to one gap in one group: pairs of which only A, or only B, reached it, and the ratio over those of which both did."""

    target: float
    lost: int
    gained: int
    ratio: Interval | None
    verdict: Verdict | None


@dataclass(frozen=True)
class Group:
    """One solver on one problem, by the labels of B: verified runs of A and of B, and a cell for each gap, loose to tight."""

    problem: str
    solver: str
    pairs: int
    verified: tuple[int, int]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Change:
    """Pairs whose status changed in the same way."""

    old: str
    new: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """How B compares with A.

    The `pairs` are the cases of both, less the `contradictory` ones, of whose optimum A and B prove what cannot both be true; `unpaired`
    are those of A alone, and of B alone. Those with `other_data` are compared although the fingerprints of their data differ. `machine` is
    what keeps times from being compared, `information` the versions, and what one side alone has recorded. The `targets` are of both
    suites. They are `identical` where every pair ended alike, with the same times to every gap.
    """

    names: tuple[str, str]
    runs: tuple[int, int]
    pairs: int
    unpaired: tuple[tuple[str, ...], tuple[str, ...]]
    contradictory: tuple[str, ...]
    machine: tuple[Difference, ...]
    information: tuple[Difference, ...]
    limits: tuple[Difference, ...]
    other_data: tuple[str, ...]
    targets: tuple[float, ...]
    groups: tuple[Group, ...]
    changes: tuple[Change, ...]
    threshold: float
    identical: bool

    @property
    def cells(self) -> list[Cell]:
        return [cell for group in self.groups for cell in group.cells]

    @property
    def lost(self) -> tuple[str, ...]:
        """Cases that are verified in A and not in B."""
        return tuple(case for change in self.changes if change.old == Status.VERIFIED for case in change.cases)

    @property
    def has_regressed(self) -> bool:
        """Whether there is a significant slowdown, a lost `verified`, or a bound that is false in A or in B."""
        return bool(self.lost or self.contradictory) or any(cell.verdict == Verdict.SLOWER for cell in self.cells)


def compare(old: Path, new: Path, *, threshold: float = 0.1, anyway: bool = False, among: Sequence[Path] = ()) -> Comparison:
    """Compare the results in two folders, A and B, case by case; a slowdown of the share `threshold` is accepted.

    Only cases are compared that the other folders `among` have too. Raises InputError where a folder has no results, and NotComparableError
    where they have no case in common or none of the same problem, or were made on different machines or with different numbers of threads
    (unless `anyway`).
    """
    threshold = real_number("threshold", threshold)
    a, b = read_results(old), read_results(new)
    sides = _keyed(a), _keyed(b)
    paired = sides[0].merge(sides[1], on=_CASE, suffixes=("_a", "_b"), validate="one_to_one")
    unpaired = [_titles(side[~side["place"].isin(paired[f"place_{name}"])], "") for side, name in zip(sides, "ab", strict=True)]
    for other in among:
        paired = paired.merge(_keyed(read_results(other))[_CASE], on=_CASE, validate="one_to_one")
    paired = paired.sort_values("place_b")
    if paired.empty:
        raise NotComparableError(f"{old} and {new} have no case in common: {_CASE_WORDS}", "they have no case in common")
    contradictory = paired["instance"].isin(_contradictions((a, b), sides))
    pairs = paired[~contradictory].reset_index(drop=True)
    if pairs.empty:
        reason = f"what they prove of the optimum contradicts the other in each of the {len(paired)} cases that both have"
        raise NotComparableError(f"{old} and {new} did not solve the same problems: {reason}", reason)
    # A run that crashed or was skipped has no times, and may be put down to the machine that waited for it.
    timed = pairs[~pairs[["status_a", "status_b"]].isin([Status.CRASHED, Status.SKIPPED]).any(axis=1)]
    conditions = _differences(timed, "conditions")
    machine = [entry for entry in conditions if entry.is_known]
    if machine and not anyway:
        words = ", ".join(f"{entry.what} ({entry.old} in A, {entry.new} in B)" for entry in machine)
        raise NotComparableError(
            f"times of A ({old}) and B ({new}) do not compare, for they differ in {words}: compare them all the same with --anyway",
            f"they were made under different conditions: {words}",
        )
    targets = tuple(target for target in a.targets if target in b.targets)
    times = _times(a, pairs["id_a"], targets), _times(b, pairs["id_b"], targets)
    has_fingerprints = (pairs["data_fingerprint_a"] != "") & (pairs["data_fingerprint_b"] != "")  # problems in memory have none
    changed = pairs[pairs["status_a"] != pairs["status_b"]]
    return Comparison(
        names=(str(old), str(new)), runs=(len(sides[0]), len(sides[1])), pairs=len(pairs), unpaired=(unpaired[0], unpaired[1]),
        contradictory=_titles(paired[contradictory]), machine=tuple(machine),
        information=(*_versions(pairs), *(entry for entry in conditions if not entry.is_known)),
        limits=tuple(entry for entry in _differences(pairs, "limits") if entry.is_known),
        other_data=_titles(pairs[has_fingerprints & (pairs["data_fingerprint_a"] != pairs["data_fingerprint_b"])]), targets=targets,
        groups=tuple(_groups(pairs, times, targets, threshold)), changes=_changes(changed), threshold=threshold,
        identical=changed.empty and np.array_equal(times[0], times[1], equal_nan=True),
    )  # fmt: skip


def _keyed(results: Results) -> pd.DataFrame:
    """The runs with the columns that tell a case in one form, their place, and what differs between versions and machines as JSON."""
    runs = results.runs.assign(place=range(len(results.runs)))
    for column in ("data", "parameters", "options"):
        runs[column] = runs[column].map({text: json.dumps(json.loads(text), sort_keys=True) for text in runs[column].unique()})
    instances = zip(runs["problem"], runs["data"], runs["parameters"], map(str, runs["seed"]), strict=True)
    runs["instance"] = list(map(json.dumps, instances))
    environments = {entry["id"]: entry for entry in results.environments}
    conditions = {number: {title: of[key] for key, title in _MACHINE.items() if key in of} for number, of in environments.items()}
    versions = {
        number: {key: of[key] for key in of if key not in _NOT_SOFTWARE} | of.get("packages", {}) for number, of in environments.items()
    }
    solvers = zip(runs["solver_label"], runs["solver_version"], strict=True)
    numbers = runs["environment_id"]
    runs["conditions"] = [json.dumps(conditions[of] | {"threads": int(count)}) for of, count in zip(numbers, runs["threads"], strict=True)]
    runs["software"] = numbers.map({number: json.dumps(of) for number, of in versions.items()})
    runs["solvers"] = [json.dumps({f"solver {label}": version} if version else {}) for label, version in solvers]
    # Of a case that was run under two limits, the later run counts.
    return runs[~runs.sort_values("id").duplicated(_CASE, keep="last").sort_index()]


def _differences(pairs: pd.DataFrame, column: str) -> list[Difference]:
    """Where the two sides of pairs differ in a column of JSON, and of how many pairs."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for texts, count in pairs[[f"{column}_a", f"{column}_b"]].value_counts(sort=False).items():
        old, new = (json.loads(text) for text in texts)  # type: ignore[attr-defined]
        for what in {**old, **new}:
            before, after = old.get(what, _UNRECORDED), new.get(what, _UNRECORDED)
            if before != after and not (what == _MACHINE["memory_gib"] and same_memory(before, after)):
                counts[what, _words(before), _words(after)] += count
    return [Difference(*key, count) for key, count in counts.items()]


def _words(value: Any) -> str:
    return "none" if value is None else one_line(value if isinstance(value, str) else json.dumps(value), LONGEST_LABEL)


def _versions(pairs: pd.DataFrame) -> list[Difference]:
    """Versions in the environments, and those of solvers that these do not have."""
    software = _differences(pairs, "software")
    listed = {(entry.old, entry.new) for entry in software}
    return software + [entry for entry in _differences(pairs, "solvers") if entry.is_known and (entry.old, entry.new) not in listed]


def _contradictions(results: tuple[Results, Results], sides: tuple[pd.DataFrame, pd.DataFrame]) -> set[str]:
    """Instances of which the enclosures by all runs of A and of B do not meet, beyond rounding and what A contradicts itself already."""
    a, b = (bounds(side, result.samples, "instance") for result, side in zip(results, sides, strict=True))
    both = a.merge(b, left_index=True, right_index=True, suffixes=("_a", "_b"))
    across = np.maximum(both["dual_a"] - both["primal_b"], both["dual_b"] - both["primal_a"])
    already = np.maximum(both["dual_a"] - both["primal_a"], 0.0)
    scale = ROUNDING * both[["lowest_a", "lowest_b"]].min(axis=1)
    rounding = np.maximum(scale, ROUNDING_OF_START * both[["start_a", "start_b"]].max(axis=1))
    return set(both.index[across - already > rounding])


def _times(results: Results, ids: pd.Series[int], targets: tuple[float, ...]) -> Array:
    """Seconds to every target of the runs `ids`: a row per run, a column per target; NaN where it was not reached."""
    if not targets:
        return np.empty((len(ids), 0))
    # Of all runs: near an optimum of 0 what one has proven says what counts for others.
    table = times_to_gap(results.runs, results.samples, targets).pivot(index="run_id", columns="target", values="seconds")
    return table.reindex(index=ids, columns=list(targets)).to_numpy(dtype=np.float64, copy=True)


def _groups(pairs: pd.DataFrame, times: tuple[Array, Array], targets: tuple[float, ...], threshold: float) -> Iterator[Group]:
    rows_of: Mapping[Any, Any] = pairs.groupby(["problem_label_b", "solver_label_b"], sort=False).indices
    both = ~(np.isnan(times[0]) | np.isnan(times[1]))
    tested = sum(int((both[rows].sum(axis=0) >= FEWEST_PAIRS).sum()) for rows in rows_of.values())
    confidence = joint_confidence(CONFIDENCE, tested)
    verified = [(pairs[f"status_{side}"] == Status.VERIFIED).to_numpy() for side in "ab"]
    for (problem, solver), rows in rows_of.items():
        columns = zip(targets, times[0][rows].T, times[1][rows].T, strict=True)
        cells = tuple(_cell(target, old, new, confidence, threshold) for target, old, new in columns)
        yield Group(str(problem), str(solver), len(rows), (int(verified[0][rows].sum()), int(verified[1][rows].sum())), cells)


def _cell(target: float, old: Array, new: Array, confidence: float, threshold: float) -> Cell:
    both = ~(np.isnan(old) | np.isnan(new))
    lost, gained = int((~np.isnan(old) & ~both).sum()), int((~np.isnan(new) & ~both).sum())
    if not both.any():
        return Cell(target, lost, gained, None, None)
    ratio = geometric_mean_ratio(*(np.maximum(seconds[both], FLOOR_SECONDS) for seconds in (old, new)), confidence=confidence)
    return Cell(target, lost, gained, ratio, verdict_of(ratio, threshold))


def verdict_of(ratio: Interval, threshold: float) -> Verdict:
    """What the interval says against a threshold: a change counts from 1 + threshold on, or down from its reciprocal."""
    if ratio.low is None or ratio.high is None or ratio.instances < FEWEST_PAIRS:
        return Verdict.TOO_FEW
    bound = 1.0 + threshold
    if ratio.low > bound:
        return Verdict.SLOWER
    if ratio.high < 1.0 / bound:
        return Verdict.FASTER
    return Verdict.SAME if 1.0 / bound <= ratio.low and ratio.high <= bound else Verdict.UNCLEAR


def _changes(changed: pd.DataFrame) -> tuple[Change, ...]:
    """The changes of status, lost `verified` first, and then in the order of `Status`."""
    order = {str(status): place for place, status in enumerate(Status)}
    groups = {(str(a), str(b)): _titles(rows) for (a, b), rows in changed.groupby(["status_a", "status_b"])}
    return tuple(Change(*key, groups[key]) for key in sorted(groups, key=lambda key: (order[key[0]], order[key[1]])))


def _titles(rows: pd.DataFrame, side: str = "_b") -> tuple[str, ...]:
    """How people are told of cases: problem, seed, solver, repetition."""
    seeds = ["" if text == "<NA>" else f" seed {text}" for text in map(str, rows[f"seed{side}"])]
    repetitions = [f" repetition {number}" if number else "" for number in rows["repetition"]]
    columns = zip(rows[f"problem_label{side}"], seeds, rows[f"solver_label{side}"], repetitions, strict=True)
    return tuple(f"{problem}{seed} | {solver}{repetition}" for problem, seed, solver, repetition in columns)
