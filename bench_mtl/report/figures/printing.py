"""The files of many figures, made by two processes where there are two processors."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from bench_mtl.report.figures.drawing import Drawing, files

#: A second process takes a second to begin; fewer figures than this are drawn without.
MANY = 10

#: Of every five drawings those that the second process makes: more than half, for the first one has the texts and tables to write.
_THEIRS = (0, 2, 4)


@contextlib.contextmanager
def printing(drawings: Sequence[Drawing], formats: Collection[str]) -> Iterator[Callable[[], dict[str, bytes]]]:
    """Yields what gives the files of all drawings, by path inside the report: the same bytes, whoever draws them.

    The second process has begun by then, so that this one may do something else first.

    Raises
    ------
    ValueError : a format is not one of `drawing.FORMATS`.
    """
    if not formats or len(drawings) < MANY or _processors() < 2:
        yield lambda: _in_turn(drawings, formats)
        return
    theirs = [drawing for place, drawing in enumerate(drawings) if place % 5 in _THEIRS]
    ours = [drawing for place, drawing in enumerate(drawings) if place % 5 not in _THEIRS]
    helper = _Helper(theirs, formats)

    def files_of_all() -> dict[str, bytes]:
        made = _in_turn(ours, formats)
        others = helper.result()
        made |= _in_turn(theirs, formats) if others is None else others
        order = {drawing.stem: place for place, drawing in enumerate(drawings)}
        return dict(sorted(made.items(), key=lambda item: order[item[0].split("/", 1)[1].rsplit(".", 1)[0]]))

    try:
        yield files_of_all
    finally:
        helper.end()


def serve() -> None:
    """What the second process does: drawings come in, their files go out."""
    drawings, formats = pickle.loads(sys.stdin.buffer.read())  # only ever from the process that has started this one
    sys.stdout.buffer.write(pickle.dumps(_in_turn(drawings, formats)))


def _in_turn(drawings: Iterable[Drawing], formats: Collection[str]) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for drawing in drawings:
        made |= files(drawing, formats)
    return made


class _Helper:
    """The second process. It is started anew, not forked, for the one that forks may have threads."""

    def __init__(self, drawings: Sequence[Drawing], formats: Collection[str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        try:
            work = pickle.dumps((list(drawings), tuple(formats)))
        except (pickle.PicklingError, AttributeError, TypeError):  # a figure of somebody's own
            return
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from bench_mtl.report.figures.printing import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # if it has died, its result will tell
            self._process.stdin.write(work)
            self._process.stdin.close()

    def result(self) -> dict[str, bytes] | None:
        """The files; None if there is no such process, or it could not make them."""
        if self._process is None or self._process.stdout is None:
            return None
        made = self._process.stdout.read()
        return pickle.loads(made) if self._process.wait() == 0 else None

    def end(self) -> None:
        """Leave no process behind, however this one goes on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was not written has nobody to read it
                        pipe.close()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
