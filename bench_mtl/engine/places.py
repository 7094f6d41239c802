"""Where an exception was raised: the last lines of its author's own code that it passed, without a path of this machine."""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePath
from traceback import walk_tb
from types import FrameType, GeneratorType

from bench_mtl.core.text import encodable, one_line
from bench_mtl.core.types import Place
from bench_mtl.engine.source_digest import PLUGIN_PACKAGE

#: Of one exception, how many lines of code are kept, the last ones.
MOST_PLACES = 5
#: Characters of the name of a file, of the name of a function, and of a line of code.
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_SOURCE = 300, 200, 200

_OURS = "bench_mtl"

#: What of this package runs, measures and judges: the code of no problem and no solver.
_HARNESS = tuple(f"{_OURS}.{folder}" for folder in ("engine", "runner", "comparing", "results", "validation", "cli"))
_SHIPPED = (f"{_OURS}.problems", f"{_OURS}.solvers")

#: An exception that was raised while another one was handled leads to that one; so many of them are looked at.
_LONGEST_CHAIN = 5


def places_of(error: BaseException, packages: Collection[str] = (), steps: object = None) -> tuple[Place, ...]:
    """Return the last lines, at most `MOST_PLACES`, of its author's own code that an exception passed; at the last one it left that code.

    The author's code is that of the plug-in folder and of `packages`, top-level ones. Where the exception passed none of it, what counts is
    the line of it where `steps`, a generator of iterates, waits, for what was yielded there is what was refused; then the problems and
    solvers of this package, then the rest of it but for what runs, measures and judges; of each kind that of the exception that it was
    raised from where it has passed none itself. There is none of an exception that cannot be looked at.
    """
    try:
        return _places(error, frozenset({PLUGIN_PACKAGE, *packages} - {_OURS}), steps)
    except BaseException:  # one can be made so that it raises when it is looked at
        return ()


def packages_of(*kinds: type) -> frozenset[str]:
    """Return the names of the top-level packages that these classes of problems and solvers come from."""
    return frozenset(str(kind.__module__).partition(".")[0] for kind in kinds)


def place_text(places: Sequence[Place]) -> str:
    """Return where an exception left its author's code, as ``solvers/mine.py:31``; empty where nobody knows."""
    return f"{one_line(places[-1].file, LONGEST_FILE)}:{places[-1].line}" if places else ""


def traceback_lines(places: Sequence[Place]) -> list[str]:
    """Return places as lines for people, each with its line of code below it where that is known; what cannot be seen is an escape."""
    lines = []
    for place in places:
        lines.append(f"  {place_text([place])}, in {one_line(place.function, LONGEST_FUNCTION)}")
        source = one_line(place.source, LONGEST_SOURCE)
        lines += [f"    {source}"] if source else []
    return lines


def _places(error: BaseException, packages: frozenset[str], steps: object) -> tuple[Place, ...]:
    chain = list(_chain(error))

    def passed(is_own: Callable[[str], bool]) -> tuple[Place, ...]:
        """Return the places of the first exception of the chain that has any."""
        frames = (deque((pair for pair in walk_tb(each.__traceback__) if _is_kept(pair[0], is_own)), MOST_PLACES) for each in chain)
        return tuple(_place(frame, line) for frame, line in next(filter(None, frames), ()))

    def is_authors(module: str) -> bool:
        return module.partition(".")[0] in packages

    if places := passed(is_authors):
        return places
    waiting = steps.gi_frame if isinstance(steps, GeneratorType) else None
    if waiting is not None and _is_kept(waiting, is_authors):
        return (_place(waiting, waiting.f_lineno),)
    shipped = passed(lambda module: module.startswith(_SHIPPED))
    return shipped or passed(lambda module: module.startswith(f"{_OURS}.") and not module.startswith(_HARNESS))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, the one that it was raised from, or in the handling of, and so on."""
    following: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if following is None:
            return
        yield following
        context = None if following.__suppress_context__ else following.__context__
        following = context if following.__cause__ is None else following.__cause__


def _is_kept(frame: FrameType, is_own: Callable[[str], bool]) -> bool:
    """Whether a frame is of own code; code that was made, such as the constructors of dataclasses, stands in no file."""
    return not frame.f_code.co_filename.startswith("<") and is_own(_module(frame))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _place(frame: FrameType, line: int | None) -> Place:
    code, number = frame.f_code, max(0, line or 0)  # the system knows no line of some code
    linecache.checkcache(code.co_filename)
    source = linecache.getline(code.co_filename, number).strip()
    file = _file(_module(frame), PurePath(code.co_filename).name)
    file, function, source = map(encodable, (file[:LONGEST_FILE], code.co_qualname[:LONGEST_FUNCTION], source[:LONGEST_SOURCE]))
    return Place(file, number, function, source)


def _file(module: str, name: str) -> str:
    """Return the path of a file of this name from the plug-in folder, or from where its package stands, by the name of its module."""
    parts = module.split(".")
    parts = parts[1:] if parts[0] == PLUGIN_PACKAGE else parts
    if name == "__init__.py":
        return "/".join([*parts, name])
    return "/".join([*parts[:-1], name]) if parts and name == f"{parts[-1]}.py" else name
