"""Which code a function's outcome is made by, so that rows of other code are told apart, and rows survive changes of a report's words."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def made_by(function: Callable[..., Any]) -> str:
    """A hash of the source of `function` and of the functions, classes and constants of the papers that it names, and what these name.

    Raises
    ------
    TypeError : it names something whose value no text can stand for, the same in every process.
    """
    assert isinstance(function, FunctionType)
    home = function.__module__
    found: dict[str, str] = {}

    def follow(name: str, value: Any, module: str) -> None:
        value = inspect.unwrap(value) if callable(value) else value  # such as a cache
        has_source = inspect.isfunction(value) or inspect.isclass(value)
        if has_source:
            name, module = value.__name__, value.__module__  # where it was imported it may have another name
        label = name if module == home else f"{module}.{name}"
        if label in found:
            return
        if has_source:
            if _root(module) != _root(home):
                return
            found[label] = inspect.getsource(value)
            names = vars(sys.modules[module])
            for code in _codes(value):
                for other in (*code.co_names, *code.co_freevars):
                    if other in names:
                        follow(other, names[other], module)
        elif not inspect.ismodule(value):
            found[label] = repr(value)
            if " at 0x" in found[label] or isinstance(value, (set, frozenset)):
                raise TypeError(f"{name} of {module} is no plain constant, so nobody can tell whether it is the same as before")

    follow(function.__name__, function, home)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def _root(module: str) -> str:
    """What all of bench_mtl.papers has in common."""
    return ".".join(module.split(".")[:2])


def _codes(value: Any) -> Iterator[CodeType]:
    """The code objects of a function, or of a class's methods, with those inside them."""
    own = [value] if inspect.isfunction(value) else [method for method in vars(value).values() if inspect.isfunction(method)]
    waiting = [function.__code__ for function in own]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
