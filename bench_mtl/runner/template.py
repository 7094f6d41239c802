"""The process from which the processes of this package are forked: it has imported what they need, and runs no code of anybody else.

A fork of it is ready in milliseconds, where a new Python has to import everything first. It has no threads of its own, and the files and
pipes of one child are not open in another.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from bench_mtl.runner.own_process import adopt_orphans, call_itself, exit_code, kill_children, leave

#: A child's number as the system knows it, or the number of the error that kept it from being; later, how it ended.
ANSWER = struct.Struct("<q")
#: The longest request, bytes, and the most files that come with one.
MOST_BYTES, MOST_FILES = 2**20, 16

#: What most of its children need.
_MODULES = ("bench_mtl.runner.worker", "bench_mtl.runner.certifier")


@dataclass
class _Child:
    """A process that was forked, until whoever asked for it lets go of it."""

    pid: int
    ended: int
    """A descriptor that can be read when it has ended."""
    asker: socket.socket


def serve(control_fd: int) -> None:
    """Fork a child for every request, until nobody is left to ask; then all of them die.

    A request is JSON, `call`, the function to call as "module:name", `directory`, and `processors`, the numbers of those it may use, or
    null; with it come descriptors: a socket for answers, one for what the child prints, and those that are given to the function, with the
    number of this process after them. The answers are the child's number and, when it has ended, its exit code, minus the number of the
    signal where one has killed it. When the socket is closed at the other end, the child and all that it has left behind are killed; this
    end is closed when they are gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call_itself("bench_template")
    adopt_orphans()
    _prepare()
    gc.collect()
    gc.freeze()  # lest a child that collects garbage copies every page
    control = socket.socket(fileno=control_fd)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    children: dict[int, _Child] = {}
    while True:
        for fd, _ in poll.poll():
            if fd == control_fd:
                if (child := _forked(control, children)) is not None:
                    for watched in (child.ended, child.asker.fileno()):
                        children[watched] = child
                        poll.register(watched, select.POLLIN)
                continue
            child = children.get(fd)
            if child is None:  # it was let go of in this very round
                continue
            if fd == child.ended:
                poll.unregister(fd)
                with contextlib.suppress(OSError):
                    child.asker.sendall(ANSWER.pack(exit_code(child.pid)))
            else:
                with contextlib.suppress(KeyError):
                    poll.unregister(child.ended)
                poll.unregister(fd)
                del children[child.ended], children[fd]
                _let_go(child, {other.pid for other in children.values()})


def _prepare() -> None:
    """Do once what every child would do at its start."""
    for module in _MODULES:
        importlib.import_module(module)
    from bench_mtl.core.kernels.jit import get_ready
    from bench_mtl.engine.environment import describe_environment
    from bench_mtl.engine.registry import load_registry

    load_registry()
    describe_environment(1)  # which looks up the versions of all packages
    get_ready()


def _forked(control: socket.socket, children: dict[int, _Child]) -> _Child | None:
    """Read a request and fork; None where that cannot be."""
    request, fds, _, _ = socket.recv_fds(control, MOST_BYTES, MOST_FILES, socket.MSG_CMSG_CLOEXEC)
    if not request:  # the asker is gone
        kill_children()
        os._exit(0)
    asker = socket.socket(fileno=fds[0])
    try:
        pid = os.fork()
    except OSError as error:
        with contextlib.suppress(OSError):
            asker.sendall(ANSWER.pack(-(error.errno or 1)))
        asker.close()
        pid = -1
    if pid == 0:
        control.close()
        asker.close()
        for fd, other in children.items():
            if fd == other.ended:
                os.close(fd)
                other.asker.close()
        _become(json.loads(request), fds[1], fds[2:])
    for fd in fds[1:]:
        os.close(fd)
    if pid < 0:
        return None
    with contextlib.suppress(OSError):  # nobody waits for it any more, which is found out soon
        asker.sendall(ANSWER.pack(pid))
    return _Child(pid, os.pidfd_open(pid), asker)


def _become(request: dict[str, Any], output: int, fds: Sequence[int]) -> NoReturn:
    """Be the child that is asked for."""
    code = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        with contextlib.suppress(OSError):  # it is gone by now
            os.chdir(request["directory"])
        if request["processors"] is not None:
            os.sched_setaffinity(0, request["processors"])
        faulthandler.enable()
        module, _, name = request["call"].partition(":")
        getattr(importlib.import_module(module), name)(*fds, os.getppid())
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        leave(code)


def _let_go(child: _Child, others: set[int]) -> None:
    """Kill a child, its group, and what it has left behind, wherever that is: without parents, those are children of this process now."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    os.close(child.ended)
    kill_children(others)
    child.asker.close()
