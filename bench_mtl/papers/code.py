"""Which code a function's outcome is made by, so that rows of other code are told apart, and rows survive changes of a report's words."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def made_by(function: Callable[..., Any]) -> str:
    """A hash of the source of `function` and of what it names in its own module: functions, classes, constants, and what these name.

    Raises
    ------
    TypeError : it names something whose value no text can stand for, the same in every process.
    """
    assert isinstance(function, FunctionType)
    module = sys.modules[function.__module__]
    found: dict[str, str] = {}

    def follow(name: str, value: Any) -> None:
        if name in found:
            return
        value = inspect.unwrap(value) if callable(value) else value  # such as a cache
        if inspect.isfunction(value) or inspect.isclass(value):
            if value.__module__ != module.__name__:
                return
            found[name] = inspect.getsource(value)
            for code in _codes(value):
                for other in (*code.co_names, *code.co_freevars):
                    if other in vars(module):
                        follow(other, vars(module)[other])
        elif not inspect.ismodule(value):
            found[name] = repr(value)
            if " at 0x" in found[name] or isinstance(value, (set, frozenset)):
                raise TypeError(f"{name} of {module.__name__} is no plain constant, so nobody can tell whether it is the same as before")

    follow(function.__name__, function)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def _codes(value: Any) -> Iterator[CodeType]:
    """The code objects of a function, or of a class's methods, with those inside them."""
    own = [value] if inspect.isfunction(value) else [method for method in vars(value).values() if inspect.isfunction(method)]
    waiting = [function.__code__ for function in own]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
