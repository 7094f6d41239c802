"""Where small mistakes, each of which changes one line, are in a tree that has changed since they were drawn."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """Another text for one line."""

    kind: str
    scope: str  # the qualified name of the function or class that holds the line; empty at the top of a file
    line: str  # the line, without its indentation
    to: str  # what stands there instead
    nth: int  # which of the lines of this text in the scope, from 0


def spans_of(source: str) -> dict[str, list[tuple[int, int]]]:
    """Return the first and last line of every function and class by its qualified name; an overloaded one has several."""
    spans: dict[str, list[tuple[int, int]]] = {"": [(0, source.count("\n"))]}

    def enter(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{scope}.{child.name}".lstrip(".")
                spans.setdefault(name, []).append((child.lineno - 1, (child.end_lineno or 0) - 1))
            enter(child, name)

    enter(ast.parse(source), "")
    return spans


def _places(lines: Sequence[str], line: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    return [number for first, last in spans for number in range(first, last + 1) if lines[number].strip() == line]


def mutated(source: str, mutation: Mutation) -> str | None:
    """Return the file with the mutation; None where it has no place any more."""
    if mutation.line not in source:
        return None
    lines = source.split("\n")
    places = _places(lines, mutation.line, spans_of(source).get(mutation.scope, []))[mutation.nth :]
    if not places and len(places := _places(lines, mutation.line, [(0, len(lines) - 1)])) != 1:
        return None
    number = places[0]
    lines[number] = lines[number][: len(lines[number]) - len(lines[number].lstrip())] + mutation.to
    return "\n".join(lines)


def file_of(mutation: Mutation, file: str, code: Mapping[str, str]) -> str | None:
    """Return the file where the mutation has a place now: its own, or the only one with that line in a scope of that name, or at all."""
    if file in code and mutated(code[file], mutation) is not None:
        return file
    others = [name for name, source in code.items() if mutated(source, mutation) is not None]
    last = mutation.scope.split(".")[-1]
    same = [name for name in others if any(scope.split(".")[-1] == last for scope in spans_of(code[name]))]
    for choice in (same, others if len(mutation.line) > 24 else []):
        if len(choice) == 1:
            return choice[0]
    return None
