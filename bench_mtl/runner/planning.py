"""Asks a plug-in folder what a plan needs to know of it, in a process of its own that is watched.

To import a plug-in is to run it. So the command does not: a process does, within limits of time and memory, and answers once, with plain
data. Before each thing that may take long it says what it does.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import astuple
from pathlib import Path

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LINE, encodable, one_line
from bench_mtl.engine.description import Entry, entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, Suite, expand
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.child import Child
from bench_mtl.runner.memory import descendants, joint_mib
from bench_mtl.runner.messages import Failed, Message, UnreadableError
from bench_mtl.runner.own_process import begin
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import STARTING_SECONDS

#: For how long a plug-in may be imported, or asked for one thing, seconds, and what all of its process may hold meanwhile.
MOST_SECONDS, MOST_MIB = 60.0, 4096.0
#: How often memory is looked at.
_LOOK_SECONDS = 0.1
#: How much of an answer is in one message.
_AT_ONCE = 1000


class Doing(Message, frozen=True):
    """What takes the time from now on."""

    what: str


class Some(Message, frozen=True):
    """Some of the answer."""

    cases: tuple[Case, ...] = ()
    entries: tuple[Entry, ...] = ()


class Done(Message, frozen=True):
    """That was all of it."""


def planned_cases(suite: Suite, plugins: Path, *, seconds: float = MOST_SECONDS, mib: float = MOST_MIB) -> list[Case]:
    """Return the cases of a suite, as `bench_mtl.engine.suite.expand` does, with the problems and solvers of a plug-in folder.

    Raises InputError as `expand`, or where a plug-in cannot be imported or asked for one thing within these limits, or is none.
    """
    return [case for some in _asked(plugins, suite, seconds, mib) for case in some.cases]


def listed_entries(plugins: Path, what: str) -> list[Entry]:
    """Return the "problems" or "solvers" that there are with a plug-in folder, in the order of their names; raises as `planned_cases`."""
    return [entry for some in _asked(plugins, what) for entry in some.entries]


def require_importable(plugins: Path | None) -> None:
    """Import a plug-in folder in a process of its own, before this one does; raises as `planned_cases`."""
    if plugins is not None:
        _asked(plugins, None)


def _asked(plugins: Path, question: Suite | str | None, seconds: float = MOST_SECONDS, mib: float = MOST_MIB) -> list[Some]:
    """Return the answer of a process of its own."""
    answer: list[Some] = []
    doing, limit = str(plugins), seconds + STARTING_SECONDS  # nothing of a plug-in is imported before the process has started

    def fault(what: str) -> InputError:
        return InputError(f"plug-in folder {plugins}: {doing} {what}")

    with contextlib.closing(Child("bench_mtl.runner.planning:serve", Setting())) as child:
        try:
            child.send((plugins.absolute(), str(plugins), question))
            while True:
                deadline = time.monotonic() + limit
                while (message := child.next(_LOOK_SECONDS)) is None:
                    is_late = time.monotonic() > deadline
                    if is_late or joint_mib([child.pid, *descendants(child.pid)]) > mib:
                        most = f"{seconds:g} s" if is_late else f"{mib:g} MiB"
                        raise fault(f"takes more than {most} to be imported, or to tell its label, version or options")
                limit = seconds
                match message:
                    case Doing(what):
                        doing = one_line(what, LONGEST_LINE)
                    case Some():
                        answer.append(message)
                    case Done():
                        return answer
                    case Failed(reason):
                        raise InputError(one_line(reason, LONGEST_LINE))
                    case _:
                        raise UnreadableError(f"'{type(message).__name__}'")
        except (EOFError, OSError):
            raise fault(f"ends the process that asks it: {child.how_it_ended()}") from None
        except UnreadableError as error:
            raise fault(f"sends what cannot be read ({error})") from None


def serve(pipe_fd: int, parent: int) -> None:
    """Answer one question that comes through the pipe: with `Doing` and `Some`, as often as need be, then with `Done` or `Failed`."""
    begin(parent, "bench_planner")
    pipe = WorkerEnd(pipe_fd)
    folder, shown, question = pipe.receive()

    def tell(what: object) -> None:
        pipe.send(Doing(encodable(str(what))))

    try:
        registry = load_registry(folder, on_import=tell)
        if isinstance(question, Suite):
            cases = tuple(expand(question, registry, tell))
            for first in range(0, len(cases), _AT_ONCE):
                pipe.send(Some(cases[first : first + _AT_ONCE]))
        elif question is not None:
            own, listed = getattr(load_registry(), question), entries(registry, question)
            shown_ones = (each if each.name in own else Entry(*(one_line(text, LONGEST_LINE) for text in astuple(each))) for each in listed)
            pipe.send(Some((), tuple(shown_ones)))
        pipe.send(Done())
    except BaseException as error:
        words = str(error) if isinstance(error, InputError) else f"plug-in folder {shown}: {type(error).__name__}: {error}"
        pipe.send(Failed(encodable(words[: 4 * LONGEST_LINE].replace(str(folder), shown))))
