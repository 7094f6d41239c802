"""Keeps a process that runs solvers from the folder of the results, and from other processes, by what Linux offers to an ordinary user.

Landlock lets a process give up rights for itself and all that it starts. It knows no exceptions, so writing is allowed beneath every entry
of the folders above the results but the one that leads to them. What a solver cannot do then: change, replace, rename or remove anything in
the results' folder, or make new entries in the folders above it; send a signal to a process that is not its own, or trace one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench_mtl.runner.spawning import can_fork

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all processors
_VERSION, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38

# Rights on files, of <linux/landlock.h>.
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE = sum(1 << bit for bit in range(6, 13))  # devices, folders, files, sockets, pipes, links
_REFER = 1 << 13
_SIGNALS = 1 << 1

#: From which version of Landlock on there is what.
_WITH_REFER, _WITH_TRUNCATE, _WITH_SIGNALS = 2, 3, 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def landlock_version() -> int:
    """Return the version of Landlock that the system offers; 0 where it offers none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def confine(guarded: Path | None) -> tuple[str, ...]:
    """Give up writing into a folder, and sending signals to others, for this process and all that it starts from now on.

    Parameters
    ----------
    guarded : a folder, which need not exist yet; None for no folder

    Returns
    -------
    what this process is kept from now, in words; nothing where the system does not offer it
    """
    version = landlock_version()
    if version == 0:
        return ()
    libc = ctypes.CDLL(None, use_errno=True)
    rights = 0 if guarded is None else _rights(version)
    ruleset = _Ruleset(rights, 0, _SIGNALS if version >= _WITH_SIGNALS else 0)
    if not ruleset.files and not ruleset.scopes:
        return ()
    size = ctypes.sizeof(ruleset) if version >= _WITH_SIGNALS else ctypes.sizeof(ctypes.c_uint64)
    fd = int(libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    if fd < 0:
        return ()
    try:
        for entry in () if guarded is None else beside(guarded):
            _allow(libc, fd, entry, rights)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, fd, ctypes.c_uint32(0)) != 0:
            return ()
    finally:
        os.close(fd)
    files = ("writing into the folder of the results",) if ruleset.files else ()
    return files + (("signals to processes that are not its own",) if ruleset.scopes else ())


class Protection(NamedTuple):
    """What keeps a solver from something here."""

    what: str
    sentence: str


def protections() -> list[Protection]:
    """Return what protects the runner and its results from solvers on this system, and what does not."""
    version, forks = landlock_version(), can_fork()
    landlock = f"Landlock {version}" if version else "no Landlock here"
    return [
        Protection(
            "a plug-in's runs",
            "each in a process of its own, forked from one that has imported it"
            if forks
            else "share a process with those of the same solver",
        ),
        Protection(
            "what a run leaves running",
            "killed with it, wherever it hides" if forks else "killed by its group and its mark; a child without both survives",
        ),
        Protection(
            "the folder of the results",
            f"{landlock}: no solver can write there"
            if version
            else f"{landlock}: a solver can write there, and checksums show it afterwards",
        ),
        Protection(
            "other processes",
            f"{landlock}: no solver can send them signals"
            if version >= _WITH_SIGNALS
            else f"{landlock}: a solver can send them signals, as any process of this user can",
        ),
        Protection("memory", "looked at every 1 to 50 ms, children included; there is no control group that would make it exact"),
        Protection("the network", "open to solvers: some need it for their licences"),
    ]


def beside(folder: Path) -> Iterator[str]:
    """Yield every entry of the folders above `folder` that is not on the way to it, without links, which lead to what has another way."""
    way = Path(os.path.realpath(folder))
    for above, below in zip(way.parents, (way, *way.parents), strict=False):
        with contextlib.suppress(OSError), os.scandir(above) as entries:
            yield from (entry.path for entry in entries if entry.name != below.name and not entry.is_symlink())


def _rights(version: int) -> int:
    """All that changes files, as far as this version knows it."""
    rights = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE
    return rights | (_REFER if version >= _WITH_REFER else 0) | (_TRUNCATE if version >= _WITH_TRUNCATE else 0)


def _allow(libc: ctypes.CDLL, ruleset: int, entry: str, rights: int) -> None:
    """Allow these rights at and beneath an entry, as far as there is such a thing."""
    try:
        fd = os.open(entry, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        on_files = rights & (_WRITE_FILE | _TRUNCATE)
        for allowed in (rights, on_files):  # the second where it is no folder
            rule = _PathBeneath(allowed, fd)
            if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0)) == 0:
                return
    finally:
        os.close(fd)
