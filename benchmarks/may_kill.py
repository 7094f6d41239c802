"""Which test files may notice a change of a module: its mirror in the folder of tests, and those that import it, nearest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from benchmarks.copies import PACKAGES

#: Tests of the tree as a whole, of documents and of these tools, which notice no fault of the code.
_OF_OTHER_THINGS = ("tests/benchmarks/", "tests/docs/", "tests/plugins/", "tests/test_")

#: Tests of every solver or problem, of which only those with the name of the module in theirs are run.
_LAWS = "tests/laws/"

#: What a test file is taken to need that was not measured, in seconds.
UNMEASURED = 8.0

#: Seconds of every test file besides.
_TO_COLLECT = 0.7

#: Farther tests are of something else.
_FARTHEST = 3


@dataclass(frozen=True)
class Choice:
    """Tests of one file."""

    file: str
    words: tuple[str, ...] = ()
    """One of them is in the names of these tests; no words: all tests."""
    nodes: tuple[str, ...] = ()
    """These tests alone."""


class Imports:
    """Who imports whom, read from the files."""

    def __init__(self, root: Path) -> None:
        code = [file for package in PACKAGES for file in (root / package).rglob("*.py")]
        self.sources = {
            file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
            for file in sorted({*code, *(root / "tests").rglob("*.py")})
            if file.resolve().relative_to(root.resolve()) == file.relative_to(root)  # not by way of a link
        }
        self._trees = {file: ast.parse(source) for file, source in self.sources.items()}
        self._modules = {self.module(file): file for file in self.sources}

    @staticmethod
    def module(file: str) -> str:
        """Return the name by which a file is imported; helpers of tests are imported by their own names."""
        path = PurePosixPath(file)
        parts = path.with_suffix("").parts
        if parts[0] == "tests":
            return path.stem
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts if parts[0] == "bench_mtl" else ("bench_mtl", *parts))

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """The files that each file imports; a name that a package passes on counts for the file that holds it."""
        return {file: frozenset(self._used(file)) - {file} for file in self._trees}

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The packages that are imported anywhere, and are not of the tree."""
        nodes = [node for tree in self._trees.values() for node in ast.walk(tree)]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        return frozenset(name.partition(".")[0] for name in names)

    def _used(self, file: str) -> set[str]:
        used = set[str]()
        for node in ast.walk(self._trees[file]):
            if isinstance(node, ast.Import):
                used |= {self._modules[alias.name] for alias in node.names if alias.name in self._modules}
            elif isinstance(node, ast.ImportFrom) and node.module in self._modules:
                used |= {self._holder(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used |= {self._modules[name] for alias in node.names if (name := f"{node.module}.{alias.name}") in self._modules}
        return used

    def _holder(self, module: str, name: str) -> str:
        below = f"{module}.{name}"
        if below in self._modules:
            return self._modules[below]
        file = self._modules[module]
        if file.endswith("__init__.py"):
            passed_on = (node for node in self._trees[file].body if isinstance(node, ast.ImportFrom) and node.module != module)
            for node in passed_on:
                if node.module in self._modules and name in {alias.asname or alias.name for alias in node.names}:
                    return self._holder(node.module, name)
        return file

    def test_files(self) -> list[str]:
        """Return the files of tests that can kill a mutant."""
        return [file for file in self.sources if "/test_" in file and file.startswith("tests/") and not file.startswith(_OF_OTHER_THINGS)]

    def importers(self, file: str) -> dict[str, int]:
        """Return the files that import this one, themselves or through others, and over how many imports."""
        distances = {file: 0}
        front = {file}
        while front:
            front = {other for other, used in self.uses.items() if used & front and other not in distances}
            distances |= dict.fromkeys(front, max(distances.values()) + 1)
        return distances

    def may_kill(self, file: str, seconds: Mapping[str, float], limit: float) -> list[Choice]:
        """Return tests, the likeliest and quickest first, that take no more than `limit` seconds together, but for the first."""
        tests = self.test_files()
        ranks = {
            test: (0.0 if _mirrors(test, file) else distance - (0.5 if _same_folder(test, file) else 0.0), seconds.get(test, UNMEASURED))
            for test, distance in self.importers(file).items()
            if test in tests and (_mirrors(test, file) or distance <= _FARTHEST)
        }
        words = _words(file)
        named = re.compile(rf"\b({'|'.join(words)})\b") if words else None
        for test in tests:
            if _mirrors(test, file) or (named is not None and named.search(self.sources[test])):
                ranks.setdefault(test, (0.0 if _mirrors(test, file) else 2.5, seconds.get(test, UNMEASURED)))
        if not ranks:  # what is started by its name
            ranks = {test: (0.0, seconds.get(test, UNMEASURED)) for test in tests if _same_folder(test, file)}
        chosen, total = list[Choice](), 0.0
        for test in sorted(ranks, key=lambda test: (*ranks[test], test)):
            is_law = test.startswith(_LAWS) and words
            needed = _TO_COLLECT + (4.0 if is_law else seconds.get(test, UNMEASURED))
            if not chosen or total + needed <= limit:
                chosen.append(Choice(test, words if is_law else ()))
                total += needed
        return chosen


def _words(file: str) -> tuple[str, ...]:
    """Return the names of a problem or solver as tests give them, by the file or the folder that holds it."""
    parts = PurePosixPath(file).with_suffix("").parts
    return (parts[1],) if parts[0] in PACKAGES[1:] and len(parts) > 1 and parts[1] not in ("__init__", "kernels") else ()


def _mirrors(test: str, file: str) -> bool:
    if not _same_folder(test, file):
        return False
    stem = PurePosixPath(test).stem.removeprefix("test_")
    parts = PurePosixPath(file).with_suffix("").parts
    names = {part for part in parts[1 if parts[0] != "bench_mtl" else 2 :] if part not in ("__init__", "kernels")}
    first = PurePosixPath(file).stem.partition("_")[0]
    return any(stem == name or stem.startswith(f"{name}_") for name in names) or (len(first) > 3 and stem.startswith(f"{first}_"))


def _same_folder(test: str, file: str) -> bool:
    parts = PurePosixPath(file).parts
    folder = f"tests/{parts[0]}/{parts[1]}/" if parts[0] == "bench_mtl" and len(parts) > 2 else f"tests/{parts[0]}/"
    return test.startswith(folder)
