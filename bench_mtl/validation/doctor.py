"""Checks whether everything that results depend on is here and works: packages, solvers, threads, clock, limits, storage."""

from __future__ import annotations

import importlib.util
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench_mtl.core.devices import gpus, jax_devices
from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Limits, Status
from bench_mtl.data.catalogue import data_directory
from bench_mtl.engine.environment import describe_environment
from bench_mtl.engine.registry import Registry, load_registry

if TYPE_CHECKING:
    from bench_mtl.engine.suite import Case
    from bench_mtl.model.protocols import Solver
    from bench_mtl.results import Outcome

#: A plug-in folder with a problem that costs nothing, a solver that does nothing, and one that breaks limits.
PROBES = Path(__file__).parent / "probes"

#: How far a limit of time may be overrun, seconds, and one of memory, as a share.
OVERRUN_SECONDS, OVERRUN_SHARE = 0.5, 0.1
#: A clock that ticks more rarely would show in a curve, seconds.
COARSEST_CLOCK = 1e-5

_TRIAL_SECONDS, _TRIAL_GIB = 1.0, 0.5
#: How often a limit is tried that does not hold at first: a busy machine may be late once.
_TRIALS = 3
#: Where memory is the limit; a slow machine takes seconds to fill it.
_PATIENT_SECONDS = 30.0
#: Within which a run that is over has ended, with all that it has started.
_ENDING_SECONDS = 5.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    what: str
    found: str
    works: bool | None = None
    """None for what is only reported."""


def findings(plugins: Path | None = None, data_dir: Path | None = None, *, compiles: bool = True) -> Iterator[Finding]:
    """Yield everything, topic by topic, as it is found; takes a few seconds, because limits are really broken.

    Each solver is tried on an example, which compiles what it calls: a minute where nothing is compiled yet, and not at all with
    ``compiles=False``. Raises InputError where a plug-in cannot be loaded.
    """
    registry = load_registry(plugins)
    about = describe_environment(1)
    for what in ("bench_mtl", "python", "system", "processor", "logical_cores", "memory_gib"):
        yield Finding("machine", what.replace("_", " "), str(about[what]))
    yield from _packages(about)
    yield from _devices(compiles=compiles)
    yield from _problems(registry)
    yield from _solvers(registry, compiles=compiles)
    yield from _threads()
    yield from _clock()
    yield from _limits()
    yield from _storage()
    yield from _data(data_dir)


def _packages(about: Mapping[str, Any]) -> Iterator[Finding]:
    for name, version in about["packages"].items():
        yield Finding("packages", name, version or "not installed")
    found = all(importlib.util.find_spec(name) is not None for name in ("distributed", "cryptography"))
    yield Finding("packages", "dask, cryptography (for --cluster)", "installed" if found else "not installed: pip install '.[cluster]'")


def _devices(*, compiles: bool) -> Iterator[Finding]:
    """Yield which GPUs there are, and which devices JAX finds; opening them takes seconds where there is a GPU."""
    yield Finding("packages", "NVIDIA GPUs", "; ".join(map(str, gpus())) or "none that a driver knows")
    what = "jax (for --option device=gpu)"
    version = "" if importlib.util.find_spec("jax") is None else metadata.version("jax")
    if not version or not compiles:
        yield Finding("packages", what, version or "not installed: pip install '.[accelerator]'")
        return
    try:
        yield Finding("packages", what, f"{version}, its devices: {', '.join(jax_devices())}", True)
    except Exception as error:
        yield Finding("packages", what, f"{version} does not work: {_said(error)}", False)


def _problems(registry: Registry) -> Iterator[Finding]:
    """Yield the problems of other packages that cannot be loaded."""
    for name in sorted(registry.problems):
        try:
            registry.problems[name]
        except InputError as error:
            yield Finding("problems", name, f"cannot be used: {_said(error)}", False)


def _solvers(registry: Registry, *, compiles: bool = True) -> Iterator[Finding]:
    for name in sorted(registry.solvers):
        try:
            variants = registry.solvers[name].variants()
        except Exception as error:
            yield Finding("solvers", name, f"cannot be made: {_said(error)}", False)
            continue
        for solver in variants:
            yield _solver(solver, compiles=compiles)


def _solver(solver: Solver, *, compiles: bool) -> Finding:
    try:
        version = solver.version
        if version == "not installed":
            return Finding("solvers", solver.label, "not installed: its runs are skipped")
        if compiles:
            solver.warm_up()
    except Exception as error:
        is_absent = isinstance(error, InputError)  # a device, say
        words = "cannot run here" if is_absent else "does not work"
        return Finding("solvers", solver.label, f"{words}: {_said(error)}", None if is_absent else False)
    return Finding("solvers", solver.label, version, True if compiles else None)


def _threads() -> Iterator[Finding]:
    from threadpoolctl import threadpool_info

    yield Finding("threads", "logical processors for us", f"{available_processors()} of {os.cpu_count()}")
    for library in threadpool_info():
        details = f"{library['internal_api']} {library['version'] or ''}".strip()
        architecture = f", {library['architecture']}" if library.get("architecture") else ""
        yield Finding("threads", library["user_api"], f"{details}{architecture}, {library['num_threads']} threads where nothing pins them")


def _clock() -> Iterator[Finding]:
    ticks = [time.perf_counter() for _ in range(100_000)]
    steps = [after - before for before, after in itertools.pairwise(ticks)]
    smallest = min((step for step in steps if step > 0.0), default=float("inf"))
    mean = (ticks[-1] - ticks[0]) / len(steps)
    yield Finding("clock", "smallest step", f"{1e9 * smallest:.0f} ns, {1e9 * mean:.0f} ns a reading", smallest <= COARSEST_CLOCK)
    yield Finding("clock", "goes forward", "always" if min(steps) >= 0.0 else "not always", min(steps) >= 0.0)


def _limits() -> Iterator[Finding]:
    """Break each limit in a worker, and see how far it went."""
    from bench_mtl.runner import LocalExecutor, Setting

    with LocalExecutor(Setting(plugins=PROBES)) as executor:
        for what, case, judge in (
            ("a run in a worker", _case("idle"), _ends_well),
            ("time limit, interpreter held", _case("rogue", deed="sleep"), _stops_in_time),
            ("memory limit", _case("rogue", _PATIENT_SECONDS, deed="allocate"), _stops_in_space),
            ("what a solver leaves running", _case("rogue", deed="fork"), _leaves_nothing),
        ):
            found, works = "", False
            for _ in range(_TRIALS):
                outcome = executor.submit(case).result()
                found, works = (outcome.record.reason, False) if outcome.record.status is Status.CRASHED else judge(outcome)
                if works:
                    break
            yield Finding("limits", what, found, works)


def _case(solver: str, seconds: float = _TRIAL_SECONDS, **options: str) -> Case:
    from bench_mtl.engine.suite import Case, Instance

    instance = Instance("origin", "probe", {"name": "synthetic_l1inf", "tasks": 1, "features": 2, "examples": 2}, {}, 0)
    return Case(instance, solver, solver, options, 1e-6, Limits(seconds=seconds, memory_gib=_TRIAL_GIB), 1, 0)


def _ends_well(outcome: Outcome) -> tuple[str, bool]:
    peak = outcome.record.peak_memory_mib
    well = outcome.record.status is Status.INACCURATE and peak is not None
    return f"{outcome.record.status}, peak memory {'not measured' if peak is None else f'{peak:.0f} MiB'}", well


def _stops_in_time(outcome: Outcome) -> tuple[str, bool]:
    over = outcome.record.times.solve - _TRIAL_SECONDS
    return f"{outcome.record.status} after {over:+.2f} s", outcome.record.status is Status.TIMEOUT and over <= OVERRUN_SECONDS


def _stops_in_space(outcome: Outcome) -> tuple[str, bool]:
    share = (outcome.record.peak_memory_mib or 0.0) / (_TRIAL_GIB * 1024) - 1.0
    return f"{outcome.record.status} after {100 * share:+.1f} %", outcome.record.status is Status.MEMORY and share <= OVERRUN_SHARE


def _leaves_nothing(outcome: Outcome) -> tuple[str, bool]:
    child = int(outcome.record.samples[-1].work) if outcome.record.samples else 0
    if not child:
        return f"no process was started: {outcome.record.reason or outcome.record.status}", False
    try:  # a run is judged while its process ends
        _, alive = psutil.wait_procs([psutil.Process(child)], timeout=_ENDING_SECONDS)
        gone = all(process.status() == psutil.STATUS_ZOMBIE for process in alive)
    except psutil.Error:
        gone = True
    return ("killed", True) if gone else ("still runs", False)


def _storage() -> Iterator[Finding]:
    from bench_mtl.engine.suite import Suite
    from bench_mtl.results import Store

    here = os.access(Path.cwd(), os.W_OK)
    yield Finding("storage", "current folder", "can be written" if here else "cannot be written: name another with --out")
    suite = Suite("probe", "", (1e-6,), (), (), Limits(), 1, (0,), 1, "")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Store.create(Path(folder), suite):
                try:
                    Store.create(Path(folder), suite).close()
                    yield Finding("storage", "results file", "a second run is not refused", False)
                except BenchError:
                    yield Finding("storage", "results file", "is written, and locked", True)
        except BenchError as error:
            yield Finding("storage", "results file", str(error), False)


def _data(data_dir: Path | None) -> Iterator[Finding]:
    try:
        folder = data_directory(data_dir)
    except BenchError as error:
        yield Finding("data", "data directory", str(error), False)
        return
    found = "none: --data-dir or BENCH_MTL_DATA names one" if folder is None else f"{len(list(folder.glob('*.npz')))} .npz files"
    yield Finding("data", "data directory", found)


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
