"""Starts the processes of this package, which die with their parent, and ends them with all that they have left behind.

On Linux they are forked from a process that has imported everything (`bench_mtl.runner.template`); elsewhere each is a new Python.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from bench_mtl.engine.environment import thread_variables
from bench_mtl.runner.memory import descendants
from bench_mtl.runner.own_process import kill
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.template import ANSWER

#: How long a process may take to start, whatever the machine is busy with.
STARTING_SECONDS = 600.0
#: So often a template is started anew that somebody kills as it starts.
_ATTEMPTS = 5
#: How long to wait for killed processes to be gone.
_KILL_SECONDS = 10.0
#: Of what a template prints, the end is looked at.
_TAIL_BYTES = 4000
#: Templates that are kept; those that nothing was forked from any more go first.
_MOST_TEMPLATES = 3
#: A variable that names the running test changes nothing that a child does; with it in the key every test would wait for a template.
_IGNORED_VARIABLES = frozenset({"PYTEST_CURRENT_TEST"})


def start(call: str, setting: Setting, fds: Sequence[int], output: int) -> Process:
    """Start a process that calls a function, "module:name", with these descriptors and the number of its parent, and that has no others.

    What it prints goes to the descriptor `output`. Its number is its own until it is closed. Raises OSError where no process can be made.
    """
    if not can_fork():
        module, _, function = call.partition(":")
        # Before anything is imported: threads that libraries start then must be bound too.
        bind = "" if setting.processors is None else f"import os; os.sched_setaffinity(0, {setting.processors}); "
        arguments = ", ".join(map(str, (*fds, os.getpid())))
        return _Python(f"{bind}from {module} import {function}; {function}({arguments})", setting.threads, fds, output)
    for _ in range(_ATTEMPTS):
        template = _template(setting.threads)
        try:
            return template.fork(call, setting, fds, output)
        except _TemplateGoneError as error:  # somebody has killed it
            reason = str(error)
            template.close()
    raise OSError(reason)


def sentence_of(code: int | None) -> str:
    """Say how a process has ended, by its exit code, or minus the number of the signal that has killed it."""
    if code is None:
        return "it no longer answers"
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}  # real-time signals have none
    return f"signal {-code}{names.get(-code, '')}"


class _Python(subprocess.Popen[bytes]):
    """A new Python."""

    def __init__(self, command: str, threads: int, fds: Sequence[int], output: int) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # finds what this one finds
        super().__init__(
            [sys.executable, "-P", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(fds),
            env={**os.environ, **thread_variables(threads), "PYTHONPATH": path},
            start_new_session=True,
        )

    def close(self) -> None:
        """Kill it and what it has started, and wait until it is gone."""
        if self.poll() is None:
            kill([*descendants(self.pid), self.pid])
        self.wait()


class _Forked:
    """A fork of a template, as far as it is used like a `subprocess.Popen`."""

    def __init__(self, answers: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.is_closed = False
        self._answers = answers

    def poll(self) -> int | None:
        if self.returncode is None and not self.is_closed and _is_readable(self._answers, 0.0):
            self._hear()
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None and not self.is_closed:
            kill([self.pid])

    def close(self) -> None:
        """Kill it and all that it has started and left behind, and wait until they are gone."""
        if self.is_closed:
            return
        self.kill()
        self.is_closed = True
        with self._answers, contextlib.suppress(OSError):
            self._answers.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + _KILL_SECONDS
            while (left := deadline - time.monotonic()) > 0.0 and _is_readable(self._answers, left) and self._hear():
                pass
        self.returncode = -signal.SIGKILL if self.returncode is None else self.returncode

    def _hear(self) -> bool:
        """Take the number that comes, or the end: a template that dies takes its children with it."""
        code = _number(self._answers)
        if self.returncode is None:
            self.returncode = -signal.SIGKILL if code is None else code
        return code is not None


Process: TypeAlias = _Forked | _Python


class _TemplateGoneError(Exception):
    """A template has died."""


class _Template:
    """A template seen from its parent."""

    def __init__(self, threads: int) -> None:
        self._children: list[_Forked] = []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this
        with theirs:
            command = f"from bench_mtl.runner.template import serve; serve({theirs.fileno()})"
            self._process = _Python(command, threads, [theirs.fileno()], self._printed.fileno())

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_idle(self) -> bool:
        self._children = [child for child in self._children if not child.is_closed]
        return not self._children

    def fork(self, call: str, setting: Setting, fds: Sequence[int], output: int) -> _Forked:
        directory = os.sep
        with contextlib.suppress(OSError):  # it has been removed
            directory = os.getcwd()
        request = json.dumps({"call": call, "directory": directory, "processors": setting.processors}).encode()
        ours, theirs = socket.socketpair()
        pid = None
        with theirs, contextlib.suppress(OSError):
            socket.send_fds(self._control, [request], [theirs.fileno(), output, *fds])
            theirs.close()
            pid = _number(ours) if _is_readable(ours, STARTING_SECONDS) else None
        if pid is None:
            ours.close()
            raise _TemplateGoneError(f"the process that others are forked from does not answer{self._last_words()}")
        if pid < 0:
            ours.close()
            raise OSError(-pid, os.strerror(-pid))
        child = _Forked(ours, pid)
        self._children.append(child)
        return child

    def close(self) -> None:
        self._control.close()  # upon which it kills its children and ends
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if self.is_idle else _KILL_SECONDS)
        self._process.close()
        self._printed.close()

    def _last_words(self) -> str:
        if self._printed.closed:
            return ""
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - _TAIL_BYTES))
        lines = self._printed.read().decode(errors="replace").split("\n")
        return next((f" ({line.strip()})" for line in reversed(lines) if line.strip()), "")

    def forget(self) -> None:
        """Close what belongs to it in a fork of its parent."""
        self._control.close()
        self._printed.close()
        self._process.returncode = 0  # it is not this process's to wait for


_templates: dict[object, _Template] = {}
_lock = threading.Lock()


def _template(threads: int) -> _Template:
    """Return the template for this number of threads and this process as it is now: a child finds the same environment and modules."""
    environment = frozenset((name, value) for name, value in os.environ.items() if name not in _IGNORED_VARIABLES)
    key = threads, tuple(sys.path), environment
    with _lock:
        template = _templates.pop(key, None)
        if template is not None and not template.is_alive:
            template.close()
            template = None
        if template is None:
            idle = [other for other, known in _templates.items() if known.is_idle]
            for other in idle[: max(0, len(_templates) + 1 - _MOST_TEMPLATES)]:
                _templates.pop(other).close()
            template = _Template(threads)
        _templates[key] = template
        return template


def _close_templates() -> None:
    while _templates:
        _templates.popitem()[1].close()


def _forget_templates() -> None:
    """A fork of this process starts its own."""
    global _lock
    _lock = threading.Lock()
    while _templates:
        _templates.popitem()[1].forget()


atexit.register(_close_templates)
os.register_at_fork(after_in_child=_forget_templates)


def _number(answers: socket.socket) -> int | None:
    """Return the next number that comes, None at the end."""
    with contextlib.suppress(ConnectionError):
        content = answers.recv(ANSWER.size, socket.MSG_WAITALL)
        if len(content) == ANSWER.size:
            return int(ANSWER.unpack(content)[0])
    return None


def _is_readable(answers: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    return bool(poll.poll(1000.0 * seconds))


@functools.cache
def can_fork() -> bool:
    """Whether processes are forked from a template: on a Linux that tells of the ends and the children of processes."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        return Path(f"/proc/self/task/{os.getpid()}/children").exists()
    except (AttributeError, OSError):
        return False
