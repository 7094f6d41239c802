"""The files of many figures, drawn by several processes if wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from bench_mtl.report.figures.gallery import Entry, files

#: A process takes a second to begin: fewer figures than this are drawn without.
MANY = 10


@contextlib.contextmanager
def printing(entries: Sequence[Entry], formats: Collection[str], processes: int = 1) -> Iterator[Callable[[], dict[str, bytes]]]:
    """Yield a function that returns the files of all figures, by path inside the report: the same bytes, whoever draws them.

    The other processes (of `processes`, this one included) have begun by then, so that this one may do something else first. They are
    started anew, not forked, for this one may have threads; a script that asks for them needs the guard ``if __name__ == "__main__"``.
    """
    draw = partial(files, formats=tuple(formats))
    if processes < 2 or len(entries) < MANY or not set(formats) - {"csv"}:
        yield lambda: _together(map(draw, entries))
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(processes - 1, get_context("spawn"), initializer=ignore_interrupts)
    drawn = pool.map(draw, entries)

    def files_of_all() -> dict[str, bytes]:
        try:
            return _together(drawn)
        except Exception:  # a figure that cannot be sent, or a process that has died; an error of a figure comes up again here
            return _together(map(draw, entries))

    try:
        yield files_of_all
    finally:
        pool.shutdown(cancel_futures=True)


def _together(parts: Iterable[dict[str, bytes]]) -> dict[str, bytes]:
    return {path: content for part in parts for path, content in part.items()}


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that waits for this one."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
