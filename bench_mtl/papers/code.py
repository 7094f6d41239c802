"""Which code a function's outcome is made by, so that rows of other code are told apart, and rows survive changes of a report's words."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any


def made_by(function: Callable[..., Any]) -> str:
    """A hash of the source of `function` and of the functions, classes and constants of the papers that it names, and what these name.

    A name counts wherever it stands but in annotations: in the code of functions and of methods of every kind, as a default argument, as a
    decorator, as a base class, in the body of a class. So does the class of a constant.

    Raises
    ------
    TypeError : it names something whose value no text can stand for, the same in every process.
    """
    assert isinstance(function, FunctionType)
    return hashlib.sha256(repr(sorted(_found(function).items())).encode()).hexdigest()[:16]


def _found(function: FunctionType) -> dict[str, str]:
    """The source, or the value, of all that `function` is made of."""
    home = function.__module__
    found: dict[str, str] = {}

    def follow(name: str, value: Any, module: str) -> None:
        value = inspect.unwrap(value) if callable(value) else value  # such as a cache
        has_source = inspect.isfunction(value) or inspect.isclass(value)
        if has_source:
            name, module = value.__name__, value.__module__  # where it was imported it may have another name
            if _root(module) != _root(home):
                return
        label = name if module == home else f"{module}.{name}"
        if label in found:
            return
        if has_source:
            found[label] = inspect.getsource(value)
            for chain in _names(ast.parse(textwrap.dedent(found[label]))):
                follow_chain(chain, module)
        elif not inspect.ismodule(value):
            found[label] = repr(value)
            if " at 0x" in found[label] or isinstance(value, (set, frozenset)):
                raise TypeError(f"{name} of {module} is no plain constant, so nobody can tell whether it is the same as before")
            for kind in dict.fromkeys(_kinds(value)):
                follow(kind.__name__, kind, kind.__module__)

    def follow_chain(chain: list[str], module: str) -> None:
        """What a.b.c is in that module; of modules of the papers what is named of them."""
        name, *rest = chain
        names = vars(sys.modules[module])
        if name not in names:
            return
        if not inspect.ismodule(names[name]):
            follow(name, names[name], module)
        elif rest and _root(names[name].__name__) == _root(home):
            follow_chain(rest, names[name].__name__)

    follow(function.__name__, function, home)
    return found


def _root(module: str) -> str:
    """What all of bench_mtl.papers has in common."""
    return ".".join(module.split(".")[:2])


def _names(node: ast.AST) -> Iterator[list[str]]:
    """The names that are read in a piece of code, each with the attributes taken of it; not those in annotations."""
    if chain := _chain(node):
        yield chain
        return
    for field, child in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for each in child if isinstance(child, list) else [child]:
                if isinstance(each, ast.AST):
                    yield from _names(each)


def _chain(node: ast.AST) -> list[str]:
    """a, b, c of a.b.c, nothing of anything else."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Load) else []
    if isinstance(node, ast.Attribute) and (before := _chain(node.value)):
        return [*before, node.attr]
    return []


def _kinds(value: Any) -> Iterator[type]:
    """The classes of a constant and, where it is a collection, of what it holds."""
    yield type(value)
    if isinstance(value, (Mapping, list, tuple)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _kinds(each)
