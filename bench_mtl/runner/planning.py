"""Asks plug-ins what a plan needs to know of them, in a process of its own that is watched.

To import a plug-in is to run it. So the command does not: a process does, within limits of time and memory, and tells what it finds as
plain data, frames of `bench_mtl.runner.wire`. What comes with the package is asked in the command itself.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LABEL, LONGEST_LINE, one_line, require_label
from bench_mtl.engine.description import Entry, ProblemPlan, RegistryPlanner, SolverPlan, entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import require_storable
from bench_mtl.runner.channel import ParentEnd, WorkerEnd
from bench_mtl.runner.confinement import confine
from bench_mtl.runner.memory import descendants, joint_mib
from bench_mtl.runner.own_process import begin
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import STARTING_SECONDS, start
from bench_mtl.runner.wire import UnreadableError

#: For how long a plug-in may be imported, or asked for one thing, seconds, and what all of its process may hold meanwhile.
MOST_SECONDS, MOST_MIB = 60.0, 4096.0
#: How often memory is looked at.
_LOOK_SECONDS = 0.1


class PluginPlanner:
    """A `Planner` that knows the plug-ins of a folder. Close it when it has told all.

    Parameters
    ----------
    plugins : the folder
    guarded : a folder that its process may not write to, where the system can keep it from that
    seconds, mib : for how long, and with how much memory, a plug-in may be imported or asked for one thing

    Raises
    ------
    InputError : a plug-in cannot be imported within the limits, or is none. So does every question whose answer cannot be had.
    """

    def __init__(self, plugins: Path, *, guarded: Path | None = None, seconds: float = MOST_SECONDS, mib: float = MOST_MIB) -> None:
        self._folder = plugins
        self._limits = seconds, mib
        self._doing = ""
        self._own = RegistryPlanner(load_registry())
        ours, theirs = socket.socketpair()
        with theirs, open(os.devnull, "wb") as nowhere:
            self._process = start("bench_mtl.runner.planning:serve", Setting(), [theirs.fileno()], nowhere.fileno())
        self._pipe = ParentEnd(ours.detach())
        try:
            found = self._ask("open", str(plugins.absolute()), str(plugins), guarded and guarded.absolute())
            self._problems, self._solvers = _names(found.get("problems")), _names(found.get("solvers"))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PluginPlanner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and all that it has started."""
        self._process.close()
        self._pipe.close()

    def plan_problem(self, name: str, parameters: Mapping[str, Any]) -> ProblemPlan:
        if name in self._own.registry.problems:
            return self._own.plan_problem(name, parameters)
        found = self._ask("problem", name, dict(parameters))
        table = found.get("parameters")
        if not isinstance(table, dict):
            raise self._error("sends what is no answer")
        require_storable(f"parameters of problem '{name}'", table)
        return ProblemPlan(self._label(found, "code"), table)

    def plan_solver(self, name: str, options: Mapping[str, Any]) -> SolverPlan:
        own = self._own.registry
        if name in own.solvers or (name not in self._solvers and own.knows_solver(name)):
            return self._own.plan_solver(name, options)
        found = self._ask("solver", name, dict(options))
        labels = {key: self._label(found, key) for key in ("label", "version", "code", "module", "name")}
        given, is_iterative = found.get("options"), found.get("is_iterative")
        if not isinstance(given, dict) or not isinstance(is_iterative, bool) or labels["name"] not in self._solvers:
            raise self._error("sends what is no answer")
        require_storable(f"options of solver '{name}'", given)
        return SolverPlan(**labels, options=given, is_iterative=is_iterative)

    def entries(self, what: str) -> list[Entry]:
        """Return the "problems" or "solvers" that there are, in the order of their names."""
        own = {entry.name: entry for entry in entries(self._own.registry, what)}
        names = self._problems if what == "problems" else self._solvers
        found = {name: self._entry(name, self._ask("entry", what, name)) for name in names if name not in own}
        return [(own | found)[name] for name in sorted(own | found)]

    def _entry(self, name: str, found: Mapping[str, Any]) -> Entry:
        words = {field.name: found.get(field.name) for field in fields(Entry)}
        if not all(isinstance(word, str) for word in words.values()):
            raise self._error("sends what is no answer")
        return replace(Entry(**{key: one_line(str(word), LONGEST_LINE) for key, word in words.items()}), name=name)

    def _label(self, found: Mapping[str, Any], key: str) -> str:
        if not isinstance(found.get(key), str):
            raise self._error("sends what is no answer")
        return require_label(f"{key} of {self._doing}", found[key])

    def _ask(self, *question: Any) -> dict[str, Any]:
        self._doing = str(question[1]) if question[0] == "open" else f"{question[-2]} '{question[-1]}'"
        if question[0] in ("problem", "solver"):
            self._doing = f"{question[0]} '{question[1]}'"
        try:
            self._pipe.send(question)
            while "importing" in (answer := self._answer()):
                self._doing = one_line(str(answer["importing"]), LONGEST_LINE)
        except (EOFError, OSError):
            code = self._process.wait()
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise self._error(f"ends the process that asks it ({how})") from None
        except UnreadableError as error:
            raise self._error(f"sends what cannot be read ({error})") from None
        if isinstance(answer.get("error"), str):
            raise InputError(one_line(answer["error"], LONGEST_LINE))
        return answer

    def _answer(self) -> dict[str, Any]:
        seconds, mib = self._limits
        # Nothing of a plug-in is imported before the process has started.
        deadline = time.monotonic() + seconds + (STARTING_SECONDS if self._doing == str(self._folder.absolute()) else 0.0)
        while (message := self._pipe.take()) is None:
            if time.monotonic() > deadline:
                raise self._error(f"takes more than {seconds:g} s to be imported, or to tell its label, version or options")
            held = joint_mib([self._process.pid, *descendants(self._process.pid)])
            if held > mib:
                raise self._error(f"takes more than {mib:g} MiB to be imported, or to tell its label, version or options")
            if wait([self._pipe.fileno()], min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic()))):
                self._pipe.read()
        if message[0] != "planned":
            raise self._error("sends what is no answer")
        table: dict[str, Any] = message[1]
        return table

    def _error(self, what: str) -> InputError:
        return InputError(f"plug-in folder {self._folder}: {self._doing} {what}")


def require_importable(plugins: Path | None) -> None:
    """Import a plug-in folder in a process of its own, before this one does.

    Raises
    ------
    InputError : it cannot be imported within the limits of `PluginPlanner`.
    """
    if plugins is not None:
        PluginPlanner(plugins).close()


def serve(pipe_fd: int, parent: int) -> None:
    """Answer the questions of a `PluginPlanner` until the pipe closes."""
    begin(parent, "bench_planner")
    pipe = WorkerEnd(pipe_fd)
    with contextlib.suppress(EOFError):
        _, folder, shown, guarded = pipe.receive()
        confine(guarded)
        planner: RegistryPlanner | None = None
        answer: Mapping[str, Any]
        try:
            registry = load_registry(Path(folder), on_import=lambda file: pipe.send(("planned", {"importing": str(file)})))
            planner = RegistryPlanner(registry)
            answer = {"problems": list(registry.problems), "solvers": list(registry.solvers)}
        except BaseException as error:
            answer = _refusal(error, folder, shown)
        pipe.send(("planned", answer))
        while planner is not None:
            question = pipe.receive()
            try:
                answer = _answered(planner, *question)
            except BaseException as error:
                answer = _refusal(error, folder, shown)
            pipe.send(("planned", answer))


def _answered(planner: RegistryPlanner, what: str, name: str, content: Any) -> Mapping[str, Any]:
    if what == "problem":
        return asdict(planner.plan_problem(name, content))
    if what == "solver":
        return asdict(planner.plan_solver(name, content))
    return asdict(next(entry for entry in entries(planner.registry, name) if entry.name == content))


def _refusal(error: BaseException, folder: str, shown: str) -> dict[str, str]:
    words = str(error) if isinstance(error, InputError) else f"plug-in folder {shown}: {type(error).__name__}: {error}"
    return {"error": words[: 4 * LONGEST_LINE].replace(folder, shown)}


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and len(name) <= LONGEST_LABEL for name in value):
        raise InputError("a plug-in sends what is no answer")
    return tuple(value)
