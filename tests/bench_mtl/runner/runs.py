"""What tests of the runner share: small suites, running them, and what must hold of every results folder."""

import contextlib
import functools
import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import threadpoolctl  # noqa: F401 - which sets a variable when it is imported: a process that others are forked from would start anew

from bench_mtl.core.types import Status
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.suite import Case, Suite, expand, identified
from bench_mtl.engine.suite_file import parse_suite
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.runner import Executor, LocalExecutor, Setting, run_cases
from bench_mtl.runner.memory import descendants

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"

TINY = """
[[problems]]
name = "box"
label = "tiny"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }
parameters = { bound = 0.5 }
"""

#: The same data with a problem of the package.
HINGE = TINY.replace('"box"', '"l1inf_hinge"').replace('"tiny"', '"hinge"').replace("bound = 0.5", "radius = 1.0")

#: What runs cases once it is entered, such as the fixtures `shared` and `slot`.
Executing = AbstractContextManager[Executor]

#: Columns that two runs of one case need not agree in.
_OF_THE_MOMENT = ("peak_memory_mib", "disturbances", "id", "environment_id")


def suite_text(*solvers: str, limits: str = "seconds = 20.0", problems: str = TINY, top: str = "", name: str = "faults") -> str:
    """A suite file from the bodies of its [[solvers]] tables."""
    tables = "\n".join(f"[[solvers]]\n{solver}\n" for solver in solvers)
    return f'name = "{name}"\ntargets = [1e-2]\n{top}\nlimits = {{ {limits} }}\n{problems}\n{tables}'


def suite_of(*solvers: str, **parts: str) -> Suite:
    text = suite_text(*solvers, **parts)
    return parse_suite(tomllib.loads(text), text)


def problems(name: str, key: str, *values: str) -> str:
    """A [[problems]] table on the data of `TINY` for each value of the parameter `key`, which is its label."""
    table = TINY.replace('"box"', f'"{name}"')
    return "".join(table.replace('"tiny"', f'"{value}"').replace("bound = 0.5", f'{key} = "{value}"') for value in values)


def solver(name: str, key: str, *values: Any, **options: Any) -> str:
    """A [[solvers]] table with a grid over `values` of the option `key`."""
    fixed = ", ".join(f"{option} = {json.dumps(value)}" for option, value in options.items())
    return f'name = "{name}"\noptions = {{ {fixed} }}\ngrid = {{ {key} = {json.dumps(list(values))} }}'


def cases_of(suite: Suite, plugins: Path = PLUGINS, data_dir: Path | None = None, *, traced: bool = True) -> list[Case]:
    """Its cases, traced: which iterates they certify does not depend on the time, and what they find is the same every time.

    Where they are not traced they are those of `bench-mtl run`.
    """
    cases = identified(expand(suite, _registry() if plugins == PLUGINS else load_registry(plugins)), data_dir)
    return [replace(case, traced=True) for case in cases] if traced else cases


@functools.cache
def _registry() -> Registry:
    """The plug-ins that no test changes, imported once."""
    return load_registry(PLUGINS)


def some_plugins(folder: Path, *solvers: str) -> Path:
    """A plug-in folder of its own, with the boxes and the files named, to be changed."""
    for kind, names in {"problems": ["boxes.py"], "solvers": solvers}.items():
        (folder / kind).mkdir(parents=True)
        for name in names:
            shutil.copy(PLUGINS / kind / name, folder / kind)
    return folder


def run_suite(
    folder: Path, suite: Suite, plugins: Path = PLUGINS, executor: Executing | None = None,
    *, traced: bool = True, **watch: Any,
) -> Any:  # fmt: skip
    """Run the whole suite in `folder`, check what is stored, and return the runs by the label of their solver."""
    cases = cases_of(suite, plugins, traced=traced)
    with Store.create(folder, suite) as store, executor or LocalExecutor(Setting(1, plugins)) as chosen:
        run_cases(store.plan(cases), store, executor=chosen, **watch)
    require_sound(folder, cases)
    return runs_in(folder)


def lesser(runs: Any, most: Mapping[str, float], again: Callable[[list[str]], Any]) -> Any:
    """Return columns of runs. Rows above the most of a column are run `again`, by their labels, and the lesser of both numbers counts: a
    busy machine may be late once, a fault is late twice."""
    columns = runs[list(most)].copy()
    late = [label for label in runs.index if any(runs.loc[label, name] > value for name, value in most.items())]
    if late:
        second = again(late).loc[late, list(most)]
        columns.loc[late] = columns.loc[late].where(columns.loc[late] <= second, second)
    return columns


def go_on(
    folder: Path,
    suite: Suite,
    executor: Executing,
    plugins: Path = PLUGINS,
    data_dir: Path | None = None,
    *,
    traced: bool = True,
    **which: bool,
) -> list[str]:
    """What `bench-mtl run` does in `folder`; returns the labels of the solvers that were run."""
    cases, started = cases_of(suite, plugins, data_dir, traced=traced), []
    with Store.create(folder, suite) as store, executor as chosen:
        run_cases(store.plan(cases, **which), store, executor=chosen, on_start=lambda case: started.append(case.solver_label))
    require_sound(folder, cases)
    return started


def runs_in(folder: Path) -> Any:
    with Store.open(folder) as store:
        return store.runs().set_index("solver_label", drop=False)


def require_sound(folder: Path, cases: Iterable[Case]) -> None:
    """The file is whole, each case has one row that counts and a status, and no sample is without its run."""
    with closing(sqlite3.connect(f"file:{folder / FILE_NAME}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = connection.execute("SELECT case_key, status, reason FROM runs").fetchall()
    keys = [key for key, _, _ in rows]
    assert sorted(keys) == sorted(case.key for case in cases)
    assert {status for _, status, _ in rows} <= set(Status)
    assert all(reason for _, _, reason in rows)


def comparable(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The listed runs and their samples, without what depends on the moment: times, memory, numbers of rows."""
    with Store.open(folder) as store:
        runs, samples = store.runs(), store.samples()
    keys = runs.set_index("id")["case_key"]
    samples["case_key"] = samples["run_id"].map(keys)
    place = {key: number for number, key in enumerate(runs["case_key"])}
    samples = samples.sort_values("case_key", key=lambda column: column.map(place), kind="stable")
    runs = runs.drop(columns=[name for name in runs if name.endswith("_seconds") or name in _OF_THE_MOMENT])
    runs["info"] = [{key: value for key, value in json.loads(text).items() if "seconds" not in key} for text in runs["info"]]
    samples = samples.drop(columns=["run_id", "seconds"])
    return _plain(runs), _plain(samples)


def details(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the other tables of listed runs by their case: proofs, patterns, measures, rungs and places, every bit but the times."""
    found = {}
    with closing(sqlite3.connect(f"file:{folder / FILE_NAME}?mode=ro", uri=True)) as connection:
        for table in ("proof", "pattern", "measure", "rung", "place"):
            names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            kept = ", ".join(f"{table}.{name}" for name in names if name not in ("run_id", "digest") and not name.endswith("seconds"))
            order = ", ".join(str(number) for number in range(1, kept.count(",") + 3))
            query = f"SELECT case_key, {kept} FROM {table} JOIN runs ON run_id = id ORDER BY {order}"
            found[table] = connection.execute(query).fetchall()
    return found


def _plain(frame: Any) -> list[dict[str, Any]]:
    """Rows that can be compared: NaN as None."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def with_variable(name: str, value: str) -> list[int]:
    """Numbers of the running processes that have an environment variable."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            pass
    return found


def started_here() -> set[int]:
    """Numbers of all processes below this one, without those that others are forked from, which stay for the next ones."""
    return {pid for pid in descendants(os.getpid()) if _name(pid) not in (None, "bench_template")}


def running_cases(below: int | None = None) -> list[int]:
    """Numbers of the processes below this one, or another, in which a case has begun."""
    return [pid for pid in descendants(below or os.getpid()) if _name(pid) == "bench_case"]


def _name(pid: int) -> str | None:
    """What a process calls itself, None where it has ended."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.name()
    return None


def await_that(condition: Callable[[], object], seconds: float = 60.0) -> bool:
    """Whether `condition` holds within `seconds`: more than it takes on a busy machine."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


#: Tells the processes of one test, and all that they start, from those of others.
TOKEN = "BENCH_MTL_TEST"


@dataclass
class Command:
    """`python -m bench_mtl run` on a suite file, with one output folder."""

    suite: Path
    out: Path
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def start(self, *arguments: str, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "bench_mtl", "run", self.suite, "--out", self.out, "--plugins", PLUGINS, *arguments]
        environment = {**os.environ, TOKEN: self.token}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.suite.parent, preexec_fn=before
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    @property
    def words(self) -> tuple[object, ...]:
        """The same for the fixture `command`: a new process takes longer to start than most commands to end."""
        return "run", self.suite, "--out", self.out, "--plugins", PLUGINS

    def leaves_nothing(self) -> bool:
        """Whether all that it started is gone, at the latest in some seconds."""
        return await_that(lambda: not with_variable(TOKEN, self.token), 20.0)


def command_for(folder: Path, text: str) -> Command:
    """A command for the suite `text`, with everything below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(text)
    return Command(folder / "suite.toml", folder / "out")


def await_line(process: subprocess.Popen[str], start: str) -> str:
    """Read standard output up to the line that starts so."""
    while line := process.stdout.readline():  # type: ignore[union-attr]
        if line.startswith(start):
            return line
    raise AssertionError(f"ended with {process.wait()}: {process.stderr and process.stderr.read()}")
