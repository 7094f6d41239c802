"""Small mistakes in a file, each of which changes one line, and where they are in a tree that has changed since."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BOUNDARY, COMPARISON, ARITHMETIC, CONSTANT = "boundary", "comparison", "arithmetic", "constant"
CONDITION, LOGIC, SIGN, EXTREME, RETURN, STATEMENT = "condition", "logic", "sign", "extreme", "return", "statement"

#: How often each kind is drawn, of a hundred.
SHARES = {
    BOUNDARY: 17, COMPARISON: 13, ARITHMETIC: 18, CONSTANT: 14, CONDITION: 9, LOGIC: 7, SIGN: 4, EXTREME: 7, RETURN: 4, STATEMENT: 7,
}  # fmt: skip

_OPPOSITE = {"<": ">", "<=": ">=", "==": "!=", "is": "is not", "in": "not in"}
_EXTREMES = {"min": "max", "minimum": "maximum", "fmin": "fmax", "argmin": "argmax"}

#: What else an operator between two operands may be, by kind.
_OTHERS = {
    BOUNDARY: {"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    COMPARISON: _OPPOSITE | {other: operator for operator, other in _OPPOSITE.items()},
    ARITHMETIC: {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"},
    LOGIC: {"and": "or", "or": "and"},
}
_OTHER_EXTREME = _EXTREMES | {other: name for name, other in _EXTREMES.items()}

#: Calls that only tell something, arguments that only say what it looks like, and fields that only type checkers read.
_MESSAGES = {"warn", "print", "echo", "secho", "debug", "info", "warning", "error", "cast", "TypeVar", "NewType", "field", "annotate"}
_LOOKS = {
    "stacklevel", "indent", "width", "height", "figsize", "fontsize", "alpha", "lw", "linewidth", "zorder", "dpi", "color", "size", "pad",
    "markersize", "linewidths", "rotation", "padding", "help",
}  # fmt: skip
_UNREAD = {"annotation", "returns", "decorator_list", "bases"}


@dataclass(frozen=True)
class Mutation:
    """Another text for one line."""

    kind: str
    scope: str  # the qualified name of the function or class that holds the line; empty at the top of a file
    line: str  # the line, without its indentation
    to: str  # what stands there instead
    nth: int  # which of the lines of this text in the scope, from 0


def mutations(source: str) -> list[Mutation]:
    """Return all mutations of a file, in the order of its lines."""
    lines, spans = source.encode().split(b"\n"), spans_of(source)
    edits = {(*edit, scope) for node, scope in _nodes(ast.parse(source)) for edit in _edits(node, lines)}
    result = []
    for number, start, stop, to, kind, scope in sorted(edits):
        line, after = lines[number - 1].decode().strip(), lines[number - 1][:start] + to.encode() + lines[number - 1][stop:]
        places = _places(source.split("\n"), line, spans[scope])
        result.append(Mutation(kind, scope, line, after.decode().strip(), places.index(number - 1)))
    return result


def _nodes(node: ast.AST, scope: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield what may be written otherwise, each with the scope that holds it; no messages, and nothing that only type checkers read."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Call(func=function) if _name(function) in _MESSAGES:
            return
        case ast.FunctionDef(name="__repr__" | "__str__") | ast.Expr(value=ast.Constant()):
            return
        case ast.keyword(arg=argument) if argument in _LOOKS:
            return
    yield node, scope
    inner = f"{scope}.{node.name}".lstrip(".") if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else scope
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name not in _UNREAD and isinstance(child, ast.AST):
                yield from _nodes(child, inner)


_Edit = tuple[int, int, int, str, str]  # line, first and last column in bytes, what replaces them, and the kind


def _edits(node: ast.AST, lines: Sequence[bytes]) -> Iterator[_Edit]:
    def text(part: ast.expr | ast.stmt) -> str:
        return lines[part.lineno - 1][part.col_offset : part.end_col_offset].decode()

    def other(kind: str, part: ast.expr | ast.stmt, to: str) -> Iterator[_Edit]:
        if part.lineno == part.end_lineno:
            yield part.lineno, part.col_offset, part.end_col_offset or 0, to, kind

    def between(operands: Sequence[ast.expr], *kinds: str) -> Iterator[_Edit]:
        for left, right in pairwise(operands):
            start, stop = left.end_col_offset or 0, right.col_offset
            operator = re.search(r"[^\s()]+(\s+(?:not|in)\b)?", lines[right.lineno - 1][start:stop].decode())
            for kind in kinds:
                if left.end_lineno == right.lineno and operator is not None and operator[0] in _OTHERS[kind]:
                    yield right.lineno, start + operator.start(), start + operator.end(), _OTHERS[kind][operator[0]], kind

    match node:
        case ast.Compare(left=left, comparators=comparators):
            yield from between([left, *comparators], BOUNDARY, COMPARISON)
        case ast.BinOp(left=left, right=right) if not (_is_sequence(left) or _is_sequence(right)):
            yield from between([left, right], ARITHMETIC)
        case ast.BoolOp(values=values):
            yield from between(values, LOGIC)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from other(CONDITION, node, f"({text(operand)})")
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield from other(SIGN, node, text(node)[1:])
        case ast.If(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.UnaryOp | ast.Compare) or (
                isinstance(test, ast.Compare) and len(test.ops) > 1
            ):  # changed otherwise
                yield from other(CONDITION, test, f"not ({text(test)})")
        case ast.Constant(value=int() | float() as value) if type(value) is int or value in (0.0, 0.5, 1.0, 2.0):
            for to in (value + 1, value - 1) if value > 0 else (value + 1,):
                if not isinstance(value, bool):
                    yield from other(CONSTANT, node, repr(to))
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield from other(RETURN, node, "return None")
        case ast.Expr(value=ast.Call(func=function)) if _name(function) not in _MESSAGES:
            yield from other(STATEMENT, node, "pass")
        case ast.Call(func=function) if (name := _name(function)) in _OTHER_EXTREME:
            yield from other(EXTREME, function, text(function)[: -len(name)] + _OTHER_EXTREME[name])


def _is_sequence(node: ast.expr) -> bool:
    """Return whether this is a text or a list, with which there is no arithmetic."""
    match node:
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
            return _is_sequence(first) or _is_sequence(second)
        case ast.Constant(value=value):
            return isinstance(value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.ListComp)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


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


def drawn(
    code: Mapping[str, str], count: int, seed: str, is_taken: Callable[[str, Mutation], bool], per_file: int
) -> Iterator[tuple[str, Mutation]]:
    """Draw mutations that compile, kinds by their shares: at most one of a function and `per_file` of a file."""
    generator = random.Random(seed)
    by_kind: dict[str, list[tuple[str, Mutation]]] = {kind: [] for kind in SHARES}
    for file, source in sorted(code.items()):
        for mutation in mutations(source):
            by_kind[mutation.kind].append((file, mutation))
    for candidates in by_kind.values():
        generator.shuffle(candidates)
    taken: list[tuple[str, str]] = []
    while len(taken) < count and (kinds := [kind for kind in SHARES if by_kind[kind]]):
        file, mutation = by_kind[generator.choices(kinds, [SHARES[kind] for kind in kinds])[0]].pop()
        is_full = (file, mutation.scope) in taken or sum(name == file for name, _ in taken) >= per_file
        if not is_full and not is_taken(file, mutation) and _changes(code[file], mutation):
            taken.append((file, mutation.scope))
            yield file, mutation


def _changes(source: str, mutation: Mutation) -> bool:
    """Return whether the file still compiles, to something else."""
    changed = mutated(source, mutation)
    try:
        return changed is not None and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
