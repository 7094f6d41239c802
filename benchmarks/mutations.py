"""Small mistakes in a file, each of which changes one line, and where they are in a tree that has changed since."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.copies import PACKAGES

BOUNDARY, COMPARISON, ARITHMETIC, CONSTANT = "boundary", "comparison", "arithmetic", "constant"
CONDITION, LOGIC, SIGN, EXTREME, RETURN, STATEMENT = "condition", "logic", "sign", "extreme", "return", "statement"

#: How often each kind is drawn, of a hundred.
SHARES = {
    BOUNDARY: 17, COMPARISON: 13, ARITHMETIC: 18, CONSTANT: 14, CONDITION: 9, LOGIC: 7, SIGN: 4, EXTREME: 7, RETURN: 4, STATEMENT: 7,
}  # fmt: skip

_OTHER_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OPPOSITE = {"<": ">", "<=": ">=", "==": "!=", "is": "is not", "in": "not in"}
_OPPOSITE |= {other: operator for operator, other in _OPPOSITE.items()}
_OTHER_OPERATION = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"}
_OTHER_EXTREME = {"min": "max", "minimum": "maximum", "fmin": "fmax", "argmin": "argmax"}
_OTHER_EXTREME |= {other: name for name, other in _OTHER_EXTREME.items()}

#: Calls that only tell something, and arguments that only say what it looks like.
_MESSAGES = {"warn", "print", "echo", "secho", "debug", "info", "warning", "error", "cast", "TypeVar", "NewType", "field", "annotate"}
_LOOKS = {
    "stacklevel", "indent", "width", "height", "figsize", "fontsize", "alpha", "lw", "linewidth", "zorder", "dpi", "color", "size", "pad",
    "markersize", "linewidths", "rotation", "padding", "help",
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """Another text for one line."""

    kind: str
    scope: str
    """The qualified name of the function or class that holds the line; empty at the top of a file."""
    line: str
    """The line, without its indentation."""
    to: str
    """What stands there instead."""
    nth: int
    """Which of the lines of this text in the scope, from 0."""


class _Finder(ast.NodeVisitor):
    """Collects what may be edited: line, first and last column, and what replaces them; columns count bytes."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.edits: list[tuple[str, str, int, int, int, str]] = []
        self._lines, self._scope = lines, list[str]()

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):  # messages, and what only type checkers read
            super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        self._scope.append(node.name)
        for value in (*node.args.defaults, *node.args.kw_defaults, *node.body):  # not annotations
            if value is not None:
                self.visit(value)
        self._scope.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        for value in node.body:
            self.visit(value)
        self._scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        is_simple = (isinstance(test, ast.Compare) and len(test.ops) == 1) or isinstance(test, ast.UnaryOp)
        if not is_simple and test.lineno == test.end_lineno:  # others are changed otherwise
            self._edit(CONDITION, test, f"not ({self._text(test)})")

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right, BOUNDARY, _OTHER_BOUNDARY)
            self._between(left, right, COMPARISON, _OPPOSITE)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not (_is_sequence(node.left) or _is_sequence(node.right)):
            self._between(node.left, node.right, ARITHMETIC, _OTHER_OPERATION)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, LOGIC, {"and": "or", "or": "and"})
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if node.lineno == node.end_lineno:
            if isinstance(node.op, ast.Not):
                self._edit(CONDITION, node, f"({self._text(node.operand)})")
            elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
                self._edit(SIGN, node, self._text(node)[1:])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is int or (type(node.value) is float and node.value in (0.0, 0.5, 1.0, 2.0)):
            self._edit(CONSTANT, node, repr(node.value + 1))
            if node.value > 0:
                self._edit(CONSTANT, node, repr(node.value - 1))

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            if node.lineno == node.end_lineno:
                self._edit(RETURN, node, "return None")
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            if node.lineno == node.end_lineno and _name(node.value.func) not in _MESSAGES:
                self._edit(STATEMENT, node, "pass")
            self.visit(node.value)
        elif not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in _MESSAGES:
            return
        if name in _OTHER_EXTREME and node.func.lineno == node.func.end_lineno:
            self._edit(EXTREME, node.func, self._text(node.func)[: -len(name)] + _OTHER_EXTREME[name])
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _LOOKS:
            self.visit(node.value)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()

    def _edit(self, kind: str, node: ast.expr | ast.stmt, to: str) -> None:
        if node.lineno == node.end_lineno:
            self._add(kind, node.lineno, node.col_offset, node.end_col_offset or 0, to)

    def _add(self, kind: str, line: int, start: int, stop: int, to: str) -> None:
        self.edits.append((kind, ".".join(self._scope), line, start, stop, to))

    def _between(self, left: ast.expr, right: ast.expr, kind: str, others: Mapping[str, str]) -> None:
        """Exchange the operator between two operands on one line."""
        if left.end_lineno != right.lineno:
            return
        start, stop = left.end_col_offset or 0, right.col_offset
        operator = re.search(r"[^\s()]+(\s+(?:not|in)\b)?", self._lines[right.lineno - 1][start:stop].decode())
        if operator is not None and operator[0] in others:
            self._add(kind, right.lineno, start + operator.start(), start + operator.end(), others[operator[0]])


def _is_sequence(node: ast.expr) -> bool:
    """Whether this is a text or a list, with which there is no arithmetic."""
    if isinstance(node, ast.IfExp | ast.BinOp):
        return any(map(_is_sequence, (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node.left, node.right)))
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.ListComp)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def mutations(source: str) -> list[Mutation]:
    """Return all mutations of a file, in the order of its lines."""
    lines = source.encode().split(b"\n")
    finder = _Finder(lines)
    finder.visit(ast.parse(source))
    spans = spans_of(source)
    result = []
    for kind, scope, number, start, stop, to in sorted(set(finder.edits), key=lambda edit: (edit[2:], edit[0])):
        before = lines[number - 1]
        after = before[:start] + to.encode() + before[stop:]
        line = before.decode().strip()
        places = _places(source.split("\n"), line, spans[scope])
        result.append(Mutation(kind, scope, line, after.decode().strip(), places.index(number - 1)))
    return result


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
    lines = source.split("\n")
    if mutation.line not in source:
        return None
    places = _places(lines, mutation.line, spans_of(source).get(mutation.scope, []))
    if mutation.nth < len(places):
        number = places[mutation.nth]
    else:
        places = _places(lines, mutation.line, [(0, len(lines) - 1)])
        if len(places) != 1:
            return None
        number = places[0]
    indentation = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    lines[number] = indentation + mutation.to
    return "\n".join(lines)


def sources(root: Path) -> dict[str, str]:
    """Return the code that is tested by the names of its files."""
    files = sorted(file for package in PACKAGES for file in (root / package).rglob("*.py"))
    own = (file for file in files if file.resolve() == root.resolve() / file.relative_to(root))  # not by way of a link
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in own}


def file_of(mutation: Mutation, file: str, code: Mapping[str, str]) -> str | None:
    """Return the file where the mutation has a place now: its own, or the only one with that line in a scope of that name, or at all."""
    if file in code and mutated(code[file], mutation) is not None:
        return file
    others = [name for name, source in code.items() if mutation.line in source and mutated(source, mutation) is not None]
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
    functions, files = set[tuple[str, str]](), dict[str, int]()
    while count > 0:
        kinds = [kind for kind in SHARES if by_kind[kind]]
        if not kinds:
            return
        file, mutation = by_kind[generator.choices(kinds, [SHARES[kind] for kind in kinds])[0]].pop()
        place = (file, mutation.scope)
        if place in functions or files.get(file, 0) >= per_file or is_taken(file, mutation) or not _changes(code[file], mutation):
            continue
        functions.add(place)
        files[file] = files.get(file, 0) + 1
        count -= 1
        yield file, mutation


def _changes(source: str, mutation: Mutation) -> bool:
    """Whether the file still compiles, to something else."""
    changed = mutated(source, mutation)
    try:
        return changed is not None and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
