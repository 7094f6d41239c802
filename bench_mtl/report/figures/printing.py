"""The files of many figures, drawn by several processes if wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from bench_mtl.report.figures.gallery import Entry, files

#: A process takes a second to begin: fewer figures than this are drawn without.
MANY = 10


def printed_figures(entries: Sequence[Entry], formats: Collection[str], processes: int = 1) -> dict[str, bytes]:
    """Return the files of all figures, by path inside the report: the same bytes, whoever draws them.

    Several processes are started anew, not forked, for this one may have threads; a script that asks for them needs the guard
    ``if __name__ == "__main__"``.
    """
    draw = partial(files, formats=tuple(formats))
    if processes < 2 or len(entries) < MANY or not set(formats) - {"csv"}:
        return _together(map(draw, entries))
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=ignore_interrupts)
    try:
        return _together(pool.map(draw, entries))
    except Exception:  # a figure that cannot be sent, or a process that has died; an error of a figure comes up again here
        return _together(map(draw, entries))
    finally:
        pool.shutdown(cancel_futures=True)


def _together(parts: Iterable[dict[str, bytes]]) -> dict[str, bytes]:
    return {path: content for part in parts for path, content in part.items()}


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that waits for this one."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
