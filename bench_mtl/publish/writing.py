"""Writes a site in place of an earlier one, and of nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError, not_written
from bench_mtl.core.files import exists, is_dir
from bench_mtl.publish.names import NAME
from bench_mtl.report.write import PART, replace_files
from bench_mtl.results.files import made_folder

#: Says what a site consists of. Written first, with all that may be there until the end, and again when all is.
MARK = "site.json"

_MADE_BY = "bench-mtl publish"

#: All paths that a site's files may have.
_PATH = re.compile(rf"(?:{NAME}/){{0,2}}{NAME}\.[a-z]{{2,5}}")


@dataclass(frozen=True)
class Suite:
    """What is known of the files of one suite."""

    digest: str
    """Of all that they were made from."""
    finding: str
    files: Mapping[str, str]
    """Hashes of their bytes, by path."""


@dataclass(frozen=True)
class Earlier:
    """A site as its mark describes it."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the bytes of all files but the mark, by path."""
    suites: Mapping[str, Suite] = field(default_factory=dict)
    """By `slug`."""


def earlier_site(folder: Path) -> Earlier:
    """Return what an earlier build has left in `folder`; nothing where there is no such folder, or nothing in it.

    Files whose names begin with a dot are somebody else's, and stay.

    Raises
    ------
    InputError : the folder holds anything that is not of an earlier site.
    """
    if not exists("output folder", folder):
        return Earlier()
    if not is_dir("output folder", folder):
        raise InputError(f"--out: {folder} is not a folder")
    present = _present(folder)
    if not present:
        return Earlier()
    if MARK not in present:
        raise InputError(f"--out: {folder} holds {present[0]}, and is no earlier site: choose another folder")
    earlier = _read(folder / MARK)
    known = {*earlier.files, MARK}
    for path in present:
        if path not in known and path.removesuffix(PART) not in known:
            raise InputError(f"--out: {folder} holds {path}, which is not of an earlier site: move it away")
    return earlier


def _present(folder: Path) -> list[str]:
    """Return the paths of all files in a folder, but for those whose names, or whose folders' names, begin with a dot."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        linked = [name for name in folders if (Path(place) / name).is_symlink()]  # which lead to somebody else's files
        names = sorted(name for name in files if not name.startswith("."))
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in (*linked, *names)]
    return found


def _read(path: Path) -> Earlier:
    """Return what a mark says; of paths only such as a site can have, for the files there may be deleted."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["made by"] != _MADE_BY:
            raise ValueError(said["made by"])
        files = {name: str(value) for name, value in said["files"].items() if _PATH.fullmatch(name)}
        suites = {
            str(name): Suite(str(each["digest"]), str(each["finding"]), {inner: files[inner] for inner in each["files"]})
            for name, each in said["suites"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"--out: {path} is not the mark of an earlier site: choose another folder") from None
    return Earlier(files, suites)


def hashed(content: bytes) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def is_whole(folder: Path, files: Mapping[str, str]) -> bool:
    """Return whether all these files are there, with the bytes of these hashes."""
    try:
        return all(hashed((folder / path).read_bytes()) == digest for path, digest in files.items())
    except OSError:
        return False


def write_site(folder: Path, files: Mapping[str, bytes], suites: Mapping[str, Suite], earlier: Earlier) -> None:
    """Write the files of a site, keep those of `suites` that are not among them, and delete what the earlier one had besides.

    New files are on disk before the first takes its name, and files whose bytes stay are not touched. Where this is killed, the next build
    finds a site, some of whose pages are new, and writes it again.

    Parameters
    ----------
    files : by path
    suites : all suites of the new site, by `slug`

    Raises
    ------
    InputError : a file cannot be written.
    """
    hashes = {path: hashed(content) for path, content in files.items()}
    hashes |= {path: digest for suite in suites.values() for path, digest in suite.files.items()}
    changed = {path: content for path, content in files.items() if not is_whole(folder, {path: hashes[path]})}
    mark = _mark(hashes, suites)
    try:
        with made_folder(folder):
            if changed or set(earlier.files) - set(hashes):
                replace_files(folder, {MARK: _mark({**earlier.files, **hashes}, {})})
            replace_files(folder, changed)
            left_behind = {path for path in _present(folder) if path.endswith(PART)}  # by a build that was killed
            for path in sorted((set(earlier.files) - set(hashes)) | left_behind):
                _delete(folder, path)
            if not is_whole(folder, {MARK: hashed(mark)}):
                replace_files(folder, {MARK: mark})
    except OSError as error:
        raise not_written(f"the site cannot be written to {folder}", error) from None


def _mark(hashes: Mapping[str, str], suites: Mapping[str, Suite]) -> bytes:
    content: dict[str, Any] = {
        "made by": _MADE_BY,
        "files": dict(sorted(hashes.items())),
        "suites": {
            name: {"digest": suite.digest, "finding": suite.finding, "files": sorted(suite.files)} for name, suite in sorted(suites.items())
        },
    }
    return (json.dumps(content, indent=1) + "\n").encode("ascii")


def _delete(folder: Path, path: str) -> None:
    """Delete a file of an earlier site, and its folder where that is empty then."""
    (folder / path).unlink(missing_ok=True)
    for parent in Path(path).parents[:-1]:
        with suppress(OSError):
            (folder / parent).rmdir()
