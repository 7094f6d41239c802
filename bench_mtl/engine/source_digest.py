"""Which code a result depends on: a hash of the files that a problem, a solver or a function computes with."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

#: The package that the files of a plug-in folder are modules of, whatever the folder is called.
PLUGIN_PACKAGE = "bench_mtl_plugins"

#: Packages whose modules compute numbers, wherever they are imported from.
NUMERICAL_PACKAGES = tuple(
    f"bench_mtl.{folder}" for folder in ("problems", "solvers", "model", "projections", "weak_learners", "enclosures", "stats", "core")
)

#: Modules of these packages that change no number.
_WITHOUT_NUMBERS = frozenset(
    f"bench_mtl.core.{name}" for name in ("dask_cluster", "errors", "files", "kernels.cache", "running_code", "threads", "types")
)

#: The packages that hold many problems or solvers side by side, so that a class does not depend on all files of its package.
_SHARED_PACKAGES = frozenset({f"{package}.{folder}" for package in ("bench_mtl", PLUGIN_PACKAGE) for folder in ("problems", "solvers")})

#: An import statement, which begins its line; in parentheses or after a backslash it has several. Only these are parsed: it takes
#: a tenth of the time that parsing whole files does.
_IMPORT = re.compile(rb"^[ \t]*((?:from|import)[ \t](?:[^\n(\\]|\\\n|\([^)]*\))*)", re.MULTILINE)

#: What is an import where it does not parse alone, because a comment in it has a parenthesis, and what is one in the middle of a line.
_HARD_IMPORT = re.compile(rb"(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]*[\w(]|from[ \t]+\.")
_INNER_IMPORT = re.compile(rb"[:;][ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]")


@functools.cache
def source_digest(thing: type | Callable[..., Any], packages: tuple[str, ...] = NUMERICAL_PACKAGES) -> str:
    """Return a short hash of all source files that `thing`, a class or a function, computes with.

    These are the file that defines it and the files that this one imports, directly or through others, at the top or inside functions,
    as far as they belong to `packages` or to the top-level package of `thing` where that is not bench_mtl. For a class in a package of its
    own, such as `bench_mtl.solvers.pdhg`, they are all files of that package too. Imports are read, not carried out. A name that
    a package only passes on counts as imported from the module that defines it.

    The hash does not depend on where the package is installed, nor on code that measures, stores or shows results.

    Parameters
    ----------
    thing : a class of problems or solvers, or a function such as an experiment's, from an installed package or from a plug-in file
    packages : dotted names of the packages to follow imports into

    Returns
    -------
    str
        16 hexadecimal digits; empty where there is no file, as for what is defined in a session.

    Notes
    -----
    The result is retained for the life of the process, as the class is; `source_digest.cache_clear()` forgets it.
    """
    found = _reached(thing, packages)
    content = "".join(f"{name} {found[name].digest}\n" for name in sorted(found))
    return hashlib.sha256(content.encode()).hexdigest()[:16] if found else ""


def source_modules(thing: type | Callable[..., Any], packages: tuple[str, ...] = NUMERICAL_PACKAGES) -> list[str]:
    """Return the names of the modules whose files `source_digest` hashes, in the order of the alphabet."""
    return sorted(_reached(thing, packages))


class _Import(NamedTuple):
    """One name of an import statement: ``from module import name as alias``; without a name ``import module``."""

    module: str
    name: str
    alias: str


class _Source(NamedTuple):
    """What is read of a file."""

    digest: str
    imports: tuple[_Import, ...]


def _reached(thing: type | Callable[..., Any], packages: tuple[str, ...]) -> dict[str, _Source]:
    """Return the sources of `thing` by the names of their modules; none where one of them cannot be read."""
    home = thing.__module__
    top, _, below = home.partition(".")
    prefixes = tuple(f"{package}." for package in (packages if top == "bench_mtl" else (*packages, top)))
    found: dict[str, _Source] = {}
    try:
        waiting = _own_files(thing, home) if below else {home: inspect.getsourcefile(thing) or ""}
        while waiting:
            name, file = waiting.popitem()
            found[name] = source = _source(name, file)
            for module in map(_defining_module, source.imports):
                if f"{module}.".startswith(prefixes) and module not in found and module not in _WITHOUT_NUMBERS and (file := _file(module)):
                    waiting[module] = file
    except (TypeError, OSError):  # defined in a session or in compiled code, or removed under way
        return {}
    return found


def _own_files(thing: type | Callable[..., Any], home: str) -> dict[str, str]:
    """Return the file of the module `home` and, for a class in a package of its own, all files of the package."""
    own = _file(home) or inspect.getsourcefile(thing) or ""
    files = {home: own}
    package = home if os.path.basename(own) == "__init__.py" else home.rpartition(".")[0]
    if isinstance(thing, type) and "." in package and package not in _SHARED_PACKAGES:
        folder = Path(own).parent
        for file in folder.rglob("*.py"):
            parts = file.relative_to(folder).with_suffix("").parts
            files[".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = str(file)
    return files


def _defining_module(each: _Import) -> str:
    """Return the module that is imported; for a name that a package passes on, the module that defines it."""
    for _ in range(10):  # packages that passed a name on in a circle could not be imported
        file = _file(each.module)
        if not each.name or not file.endswith("__init__.py"):
            break
        if _file(f"{each.module}.{each.name}"):
            return f"{each.module}.{each.name}"
        passed_on = next((other for other in _source(each.module, file).imports if other.alias == each.name), None)
        if passed_on is None:
            break
        each = passed_on
    return each.module


def _source(module: str, file: str) -> _Source:
    """Read a file, which is done anew only when it has changed."""
    details = os.stat(file)
    return _read(module, file, details.st_mtime_ns, details.st_size)


@functools.lru_cache(maxsize=4096)
def _read(module: str, file: str, changed: int, size: int) -> _Source:
    content = Path(file).read_bytes()
    found = []
    for node in _import_statements(content):
        if isinstance(node, ast.Import):
            found += [_Import(alias.name, "", "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(node, module, file)
            found += [_Import(origin, "" if each.name == "*" else each.name, each.asname or each.name) for each in node.names]
    return _Source(hashlib.sha256(content).hexdigest(), tuple(found))


def _import_statements(content: bytes) -> list[ast.stmt]:
    """Return the import statements of a file, by parsing them alone or, where that cannot be, the whole file."""
    statements: list[ast.stmt] = []
    is_hard = _INNER_IMPORT.search(content) is not None
    for match in _IMPORT.finditer(content):
        try:
            statements += ast.parse(match[1]).body
        except (SyntaxError, ValueError):  # mostly a line of a text that begins like an import
            is_hard = is_hard or _HARD_IMPORT.match(match[1]) is not None
    if is_hard:
        with suppress(SyntaxError, ValueError):  # a file that cannot be run at all
            statements = [node for node in ast.walk(ast.parse(content)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return statements


def _absolute(node: ast.ImportFrom, module: str, file: str) -> str:
    """Return the module that names are imported from, where the statement may be relative to `module`."""
    package = module.split(".") if file.endswith("__init__.py") else module.split(".")[:-1]
    above = package[: len(package) + 1 - node.level] if node.level else []
    return ".".join((*above, *([node.module] if node.module else [])))


def _file(module: str) -> str:
    """Return the path of the source of a module whose top-level package is loaded already, empty where it has none; import nothing."""
    top = module.partition(".")[0]
    return _file_below(tuple(getattr(sys.modules.get(top), "__path__", ())), module)


@functools.lru_cache(maxsize=4096)
def _file_below(roots: tuple[str, ...], module: str) -> str:
    for root in roots:
        base = os.path.join(root, *module.split(".")[1:])
        for file in (f"{base}.py", os.path.join(base, "__init__.py")):
            if os.path.isfile(file):
                return file
    return ""
