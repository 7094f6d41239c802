"""Starts the processes of this package, which die with their parent, and ends them with all that they have left behind.

On Linux they are forked from a process that has imported everything (`bench_mtl.runner.template`); elsewhere each is a new Python.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import secrets
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
from typing import Protocol

import psutil

from bench_mtl.engine.environment import thread_variables
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.template import ANSWER

#: Names the variable by which a process of this package and all that it starts are known.
MARK = "BENCH_MTL_WORKER"

#: How long a process may take to start, whatever the machine is busy with.
STARTING_SECONDS = 600.0
#: So often a template is started anew that somebody kills as it starts.
_ATTEMPTS = 5
#: How long to wait for killed processes to be gone.
_KILL_SECONDS = 5.0
#: Of what a template prints, the end is looked at.
_TAIL_BYTES = 4000
#: Templates that are kept; those that nothing was forked from any more go first.
_MOST_TEMPLATES = 3
#: A variable that names the running test changes nothing that a child does; with it in the key every test would wait for a template.
_IGNORED_VARIABLES = frozenset({"PYTEST_CURRENT_TEST"})


class Process(Protocol):
    """A process that was started here. Its number is its own until it is closed."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the number of the signal that has killed it; None as far as is known."""

    def poll(self) -> int | None:
        """Look whether it has ended, and return `returncode`."""

    def wait(self) -> int:
        """Wait until it has ended, and return `returncode`."""

    def kill(self) -> None: ...

    def close(self) -> None:
        """Kill it and all that it has started and left behind, and wait until they are gone."""


def start(call: str, setting: Setting, fds: Sequence[int], output: int) -> Process:
    """Start a process that calls a function, "module:name", with these descriptors and the number of its parent, and that has no others.

    What it prints goes to the descriptor `output`.

    Raises
    ------
    OSError : no more processes, or no memory for one.
    """
    if not can_fork():
        return _Spawned(call, setting, fds, output)
    for _ in range(_ATTEMPTS):
        template = _template(setting.threads)
        try:
            return template.fork(call, setting, fds, output)
        except _TemplateGoneError as error:  # somebody has killed it
            reason = str(error)
            _discard(template)
    raise OSError(reason)


class _Spawned:
    """A new Python."""

    def __init__(self, call: str, setting: Setting, fds: Sequence[int], output: int) -> None:
        self._mark = secrets.token_hex(8)
        module, _, function = call.partition(":")
        # Before anything is imported: threads that libraries start then must be bound too.
        bind = "" if setting.processors is None else f"import os; os.sched_setaffinity(0, {setting.processors}); "
        arguments = ", ".join(map(str, (*fds, os.getpid())))
        command = f"{bind}from {module} import {function}; {function}({arguments})"
        self._process = _new_python(command, setting.threads, fds, self._mark, output)
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self) -> int:
        return self._process.wait()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    def close(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        kill_marked(self._mark)


class _Forked:
    """A fork of a template."""

    def __init__(self, answers: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._answers: socket.socket | None = answers

    def poll(self) -> int | None:
        if self.returncode is None and self._answers is not None and _is_readable(self._answers, 0.0):
            # A template that dies takes its children with it.
            code = _number(self._answers)
            self.returncode = -signal.SIGKILL if code is None else code
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None and self._answers is not None:
            _is_readable(self._answers, None)
        code = self.poll()
        return -signal.SIGKILL if code is None else code

    def kill(self) -> None:
        if self.returncode is None and self._answers is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        answers = self._answers
        if answers is None:
            return
        self.kill()
        with contextlib.suppress(OSError):
            answers.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + 2.0 * _KILL_SECONDS
        while (left := deadline - time.monotonic()) > 0.0 and _is_readable(answers, left):
            code = _number(answers)
            if code is None:
                break
            self.returncode = code
        self._answers = None
        answers.close()
        if self.returncode is None:
            self.returncode = -signal.SIGKILL

    @property
    def is_closed(self) -> bool:
        return self._answers is None


class _TemplateGoneError(Exception):
    """A template has died."""


class _Template:
    """A template seen from its parent."""

    def __init__(self, threads: int) -> None:
        self._mark = secrets.token_hex(8)
        self._children: list[_Forked] = []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this
        with theirs:
            command = f"from bench_mtl.runner.template import serve; serve({theirs.fileno()})"
            self._process = _new_python(command, threads, [theirs.fileno()], self._mark, self._printed.fileno())

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_idle(self) -> bool:
        self._children = [child for child in self._children if not child.is_closed]
        return not self._children

    def fork(self, call: str, setting: Setting, fds: Sequence[int], output: int) -> _Forked:
        request = json.dumps({"call": call, "directory": _directory(), "processors": setting.processors}).encode()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [request], [theirs.fileno(), output, *fds])
            pid = _number(ours) if _is_readable(ours, STARTING_SECONDS) else None
        except OSError:
            pid = None
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
        self._control.close()
        self._process.kill()
        self._process.wait()
        self._printed.close()
        if self._children:
            kill_marked(self._mark)

    def _last_words(self) -> str:
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


def _discard(template: _Template) -> None:
    with _lock:
        for key in [key for key, known in _templates.items() if known is template]:
            _templates.pop(key).close()


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
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_templates)


def _new_python(command: str, threads: int, fds: Sequence[int], mark: str, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=tuple(fds),
        env={**os.environ, **thread_variables(threads), **_import_path(), MARK: mark},
        start_new_session=True,
    )


def _import_path() -> dict[str, str]:
    """The variable that makes a new Python find what this one finds."""
    return {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return os.sep


def _number(answers: socket.socket) -> int | None:
    """Return the next number that comes, None at the end."""
    with contextlib.suppress(ConnectionError):
        content = answers.recv(ANSWER.size, socket.MSG_WAITALL)
        if len(content) == ANSWER.size:
            return int(ANSWER.unpack(content)[0])
    return None


def _is_readable(answers: socket.socket, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    return bool(poll.poll(None if seconds is None else 1000.0 * seconds))


def kill_marked(mark: str) -> None:
    """Kill every process that has this mark in its environment: it left its group, or lost its parent.

    One that forks and exits may be another before it is looked at. So it is over only when there is no process that was not looked at.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    seen: set[int] = set()
    while time.monotonic() < deadline and (new := set(psutil.pids()) - seen):
        if _kill_marked_among(new, mark):
            seen.clear()
            time.sleep(0.001)
        else:
            seen |= new


def _kill_marked_among(pids: set[int], mark: str) -> bool:
    """Whether there was a process to kill, or one still dying."""
    found = False
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found = True
                process.kill()
    return found


@functools.cache
def can_fork() -> bool:
    """Whether processes are forked from a template: on a Linux that tells of the ends and the children of processes."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        return Path(f"/proc/self/task/{os.getpid()}/children").exists()
    except (AttributeError, OSError):
        return False
