"""Finds problems and solvers: installed entry points, and the files of a plug-in folder."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from bench_mtl.core.errors import BenchError, InputError, unknown
from bench_mtl.core.files import is_dir, require_readable
from bench_mtl.core.text import require_label
from bench_mtl.engine.places import places_of
from bench_mtl.engine.source_digest import PLUGIN_PACKAGE, source_digest
from bench_mtl.model.protocols import Capability, Form, IterativeSolver, Kind, OneShotSolver, Problem, Solver

C = TypeVar("C")


@dataclass(frozen=True)
class Registry:
    """Problem and solver classes by name."""

    problems: Mapping[str, type[Problem]]
    solvers: Mapping[str, type[Solver]]

    def problem(self, name: str) -> type[Problem]:
        if name not in self.problems:
            raise unknown("problem", name, self.problems, more="bench-mtl list problems")
        return self.problems[name]

    def meant(self, name: str, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Return the name of the solver that `name` represents, and its options: those given, and those of an alias (`Solver.aliases`),
        or of a variant with that label (`Solver.variants`).

        Names of solvers come before aliases, in which upper and lower case are one, and these before labels. Raises InputError for an
        unknown solver (the nearest name is suggested), or an option that contradicts the alias.
        """
        given = dict(options or {})
        if name in self.solvers:
            return name, given
        meanings = self._meanings(name)
        if len(meanings) > 1:
            owners = " and ".join(cls.name for cls, _ in meanings)
            raise InputError(f"'{name}' is an alias of several solvers, {owners}: give the name of one")
        if not meanings:
            raise unknown("solver", name, self.solver_words(), more="bench-mtl list solvers")
        cls, implied = meanings[0]
        for key, value in implied.items():
            chosen = given.get(key, value)
            if chosen != value and not (isinstance(value, str) and str(chosen).lower() == value.lower()):
                raise InputError(f"solver '{name}' is solver '{cls.name}' with {key} = {value!r}, so {key} cannot be {given[key]!r}")
        return cls.name, {**given, **implied}

    def solver(self, name: str, options: Mapping[str, Any] | None = None) -> Solver:
        """Return the solver `name`, or of that alias, with `options`, its dataclass fields.

        Raises InputError for an unknown solver or option (the nearest name is suggested), one that is missing, or a value that it refuses.
        """
        name, options = self.meant(name, options)
        cls = self.solvers[name]
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
        allowed = solver_options(cls)
        for key in given:
            if key not in allowed:
                raise unknown(f"option of solver '{name}'", key, allowed)
        missing = [key for key, default in allowed.items() if default is inspect.Parameter.empty and key not in given]
        if missing:
            raise InputError(f"solver '{name}' needs option {', '.join(missing)}")
        try:
            return cls(**given)
        except BenchError:
            raise
        except Exception as error:  # a plug-in that does not check its options by name
            where = _where(error, "", *self.packages)
            raise InputError(f"solver '{name}' refuses its options: {type(error).__name__}: {error}{where}") from error

    def solver_words(self) -> list[str]:
        """Return the names of all solvers, and the aliases of those that can be loaded."""
        return [*self.solvers, *(alias for cls in self._loaded_solvers() for alias in cls.aliases)]

    def knows_solver(self, name: str) -> bool:
        """Return whether a solver has this name, this alias, or this label."""
        return name in self.solvers or bool(self._meanings(name))

    def _meanings(self, word: str) -> list[tuple[type[Solver], Mapping[str, Any]]]:
        """Return the solvers that have this alias, each with the options that it stands for, or the first with a variant of this label."""
        return [(cls, cls.aliases[word.lower()]) for cls in self.with_alias(word)] or list(islice(self._of_label(word), 1))

    @property
    def packages(self) -> frozenset[str]:
        """The names of the top-level packages that problems and solvers come from, as far as this registry knows."""
        known = [found for found in (self.problems, self.solvers) if isinstance(found, _Classes)]
        return frozenset(module.partition(".")[0] for found in known for module in found.modules.values() if module)

    def with_alias(self, name: str) -> list[type[Solver]]:
        """Return the solvers that have this alias."""
        return [cls for cls in self._loaded_solvers() if name.lower() in cls.aliases]

    def _loaded_solvers(self) -> Iterator[type[Solver]]:
        """Yield the solvers, but for those that cannot be loaded, which is for those to hear who ask for them."""
        for name in self.solvers:
            with suppress(InputError):
                yield self.solvers[name]

    def _of_label(self, label: str) -> Iterator[tuple[type[Solver], Mapping[str, Any]]]:
        """Yield the solvers of which a variant has this label, with the options that make it."""
        for cls in self._loaded_solvers():
            with suppress(Exception):  # of a plug-in without variants; whoever asks for it hears of it
                for solver in cls.variants():
                    if solver.label == label:
                        yield cls, {key: value for key, value in solver.settings().items() if value != solver_options(cls)[key]}


def solver_options(cls: type[Solver]) -> dict[str, Any]:
    """Option names of a solver class with their defaults (`inspect.Parameter.empty` where one is required)."""
    if not dataclasses.is_dataclass(cls):
        return {}
    return {field.name: _default(field) for field in dataclasses.fields(cls) if field.init}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def solver_names(solver: Solver) -> tuple[str, str]:
    """Label and version of a solver.

    Raises InputError where a plug-in cannot tell them, or they are too long or have characters that cannot be seen.
    """
    try:
        label, version = str(solver.label), str(solver.version)
    except Exception as error:
        raise InputError(f"solver '{solver.name}' cannot tell its label or version: {type(error).__name__}: {error}") from error
    return require_label(f"the label of solver '{solver.name}'", label), require_label(f"the version of solver '{solver.name}'", version)


def problem_parameters(cls: type[Problem]) -> dict[str, Any]:
    """Parameter names of a problem class with their defaults (`inspect.Parameter.empty` where one is required)."""
    parameters = list(inspect.signature(cls.from_data).parameters.values())
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        parameters = list(inspect.signature(cls).parameters.values())
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def make_problem(cls: type[Problem], data: Any, parameters: Mapping[str, Any]) -> Problem:
    """Return `cls.from_data` with its parameters checked by name; `Problem.aliases` are names too."""
    allowed = problem_parameters(cls)
    for key in parameters:
        if key not in allowed and key not in cls.aliases:
            raise unknown(f"parameter of problem '{cls.name}'", key, allowed)
    parameters = cls.without_aliases(parameters)
    missing = [key for key, default in allowed.items() if default is inspect.Parameter.empty and key not in parameters]
    if missing:
        raise InputError(f"problem '{cls.name}' needs parameter {', '.join(missing)}")
    return cls.from_data(data, **parameters)


def load_registry(
    plugins: Path | None = None, *, with_solvers: bool = True, on_import: Callable[[Path], None] = lambda file: None
) -> Registry:
    """Return everything installed, and what the folders `problems/` and `solvers/` below `plugins` define.

    The files of a plug-in folder are modules of one package, so that they can share code: `from ..forms import MyForm` imports from
    `forms.py` in the plug-in folder. A judge does not even import its solvers (`with_solvers`); `on_import` gets every file before.

    Raises InputError where a name is taken twice, a plug-in folder is missing, or a plug-in cannot be imported or lacks a declaration.
    """
    problems: _Classes[Problem] = _Classes("bench_mtl.problems", (Problem,))
    solvers: _Classes[Solver] = _Classes("bench_mtl.solvers", (IterativeSolver, OneShotSolver))
    if plugins is not None:
        if not is_dir("plug-in folder", plugins):
            raise InputError(f"plug-in folder {plugins} does not exist")
        require_readable("plug-in folder", plugins)
        files = [file for folder in ("problems", "solvers") for file in sorted((plugins / folder).glob("*.py"))]
        if not files:
            raise InputError(f"plug-in folder {plugins} has no problems/*.py and no solvers/*.py")
        for name in [name for name in sys.modules if name.partition(".")[0] == PLUGIN_PACKAGE]:  # of a folder that was opened before
            del sys.modules[name]
        importlib.invalidate_caches()
        package = sys.modules[PLUGIN_PACKAGE] = ModuleType(PLUGIN_PACKAGE)
        package.__path__ = [str(plugins.absolute())]
        for file in files:
            if file.parent.name == "solvers" and not with_solvers:
                continue
            on_import(file)
            for cls in _defined_classes(_import(file), file):
                if with_solvers:
                    source_digest(cls)  # is kept; once another folder is opened, the modules of this one cannot be found
                if issubclass(cls, Problem):
                    if file.parent.name == "solvers":  # which the certifier does not read
                        raise InputError(f"plug-in {file} defines problem '{cls.name}': problems belong in problems/")
                    problems.add(cls, str(file), _module_name(file))
                elif issubclass(cls, Solver):
                    solvers.add(cls, str(file), _module_name(file))
    registry = Registry(problems, solvers)
    for name in solvers if plugins is not None and with_solvers else ():
        if solvers.modules[name].partition(".")[0] == PLUGIN_PACKAGE:  # a suite that names the rival would run this in its place
            owners = [cls.name for cls in registry.with_alias(name) if cls.name != name]
            if owners:
                raise InputError(f"plug-in solver '{name}' needs another name: '{name}' is an alias of solver '{owners[0]}'")
    return registry


class _Classes(Mapping[str, type[C]]):
    """Classes by name. One that is installed is imported when it is asked for: a worker needs two of them all."""

    def __init__(self, group: str, kinds: tuple[type, ...]) -> None:
        self._kinds = kinds
        self._entries: dict[str, metadata.EntryPoint] = {}
        self.modules: dict[str, str] = {}
        """Those that the classes were, or will be, imported from, which these have no say in."""
        self._classes: dict[str, type[C]] = {}
        for entry in _entry_points(group):
            before = self._entries.setdefault(entry.name, entry)
            self.modules.setdefault(entry.name, entry.module)
            if before.value != entry.value:
                raise InputError(f"entry point {entry.value} defines '{entry.name}', which {before.value} has defined already")

    def add(self, cls: type[C], origin: str, module: str = "") -> None:
        """Add the class of a plug-in. Raises InputError where its name is taken, or it lacks a declaration."""
        name = _checked_name(cls, origin)
        if name in self and self[name] is not cls:
            raise InputError(f"{origin} defines '{name}', which {self[name].__module__} has defined already")
        self._classes[name] = cls
        self.modules.setdefault(name, module)

    def __getitem__(self, name: str) -> type[C]:
        if name not in self._classes:
            entry = self._entries[name]
            origin = f"entry point {entry.value} of '{name}'"
            try:
                cls: Any = entry.load()
            except (Exception, SystemExit) as error:  # of another package
                where = _where(error, "", entry.module.partition(".")[0])
                raise InputError(f"{origin} cannot be loaded: {type(error).__name__}: {error}{where}") from error
            if not inspect.isclass(cls) or not issubclass(cls, self._kinds):
                kinds = " nor ".join(kind.__name__ for kind in self._kinds)
                raise InputError(f"{origin} cannot be used: it is no subclass of {kinds}")
            if inspect.isabstract(cls):
                raise InputError(f"{origin} cannot be used: {_lacking(cls)}")
            if (own := _checked_name(cls, f"entry point {entry.value}")) != name:
                raise InputError(f"entry point {entry.value} is called '{name}', but its class is called '{own}'")
            self._classes[name] = cls  # type: ignore[assignment] # of one of the kinds
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._classes or name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._entries, *self._classes)))

    def __len__(self) -> int:
        return len(self._entries.keys() | self._classes.keys())


def _entry_points(group: str) -> Iterable[metadata.EntryPoint]:
    """Return what installed packages offer under a name. They are read again where something was installed."""
    return _all_entry_points(tuple((entry, _last_change(entry)) for entry in sys.path)).select(group=group)


@lru_cache(maxsize=1)
def _all_entry_points(path: tuple[tuple[str, int], ...]) -> Any:
    """Return the entry points of all packages that are found on `sys.path`, whose entries and last changes these are."""
    return metadata.entry_points()


def _last_change(folder: str) -> int:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _checked_name(cls: type, origin: str) -> str:
    """Return the name of a class of problems or solvers that declares what it has to declare."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not name:
        raise InputError(f"{cls.__name__} of {origin} has no name")
    require_label(f"the name of {cls.__name__} of {origin}", name)
    capabilities, kinds = ("offers", "forms") if issubclass(cls, Problem) else ("requires", "takes")
    declared, forms = getattr(cls, capabilities, None), getattr(cls, kinds)
    if not isinstance(declared, (set, frozenset)) or not all(isinstance(item, Capability) for item in declared):
        allowed = ", ".join(f"Capability.{item.name}" for item in Capability)
        raise InputError(f"'{name}' of {origin}: its {capabilities} must be a set of {allowed}, not {declared!r}")
    if not isinstance(forms, tuple) or not all(
        isinstance(kind, Kind) or (inspect.isclass(kind) and issubclass(kind, Form)) for kind in forms
    ):
        raise InputError(f"'{name}' of {origin}: its {kinds} must be a tuple of subclasses of Form, or kinds of them, not {forms!r}")
    if not any(attribute in vars(base) for base in cls.__mro__ if base is not Solver for attribute in (capabilities, kinds)):
        raise InputError(f"'{name}' of {origin} states neither {capabilities} nor {kinds}")
    if issubclass(cls, Solver):
        _require_aliases(cls.aliases, f"'{name}' of {origin}")
    return name


def _require_aliases(aliases: Any, owner: str) -> None:
    """Raise InputError for aliases that are no table of names in lower case, each with a table of options."""
    if not isinstance(aliases, Mapping) or not all(isinstance(options, Mapping) for options in aliases.values()):
        raise InputError(f"{owner}: its aliases", aliases, "a table of names, each with a table of options")
    for alias in aliases:
        if not isinstance(alias, str) or alias != alias.lower():
            raise InputError(f"{owner}: its aliases", alias, "names in lower case")
        require_label(f"an alias of {owner}", alias)


def _module_name(file: Path) -> str:
    return f"{PLUGIN_PACKAGE}.{file.parent.name}.{file.stem}"


def _import(file: Path) -> ModuleType:
    name = _module_name(file)
    if name in sys.modules:  # another plug-in has imported it
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)  # a search by name could end at another file
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        where = _where(error, f"{file.parent.name}/{file.name}")
        raise InputError(f"plug-in {file} cannot be imported: {type(error).__name__}: {error}{where}") from error
    return module


def _where(error: BaseException, named: str, *packages: str) -> str:
    """Say at which line of its author's code a module could not be imported, and of which file unless it is the one that is named.

    The text of a mistake of syntax says where that is; what follows is the line that imports the file it is in, if another one does.
    """
    passed = places_of(error, packages)
    if not passed or passed[-1].file.startswith("bench_mtl/"):
        return ""
    return f" (line {passed[-1].line})" if passed[-1].file == named else f" ({passed[-1].file}, line {passed[-1].line})"


def _defined_classes(module: ModuleType, file: Path) -> list[type]:
    """Concrete problem and solver classes that a module itself defines. Raises InputError for what was meant to be one, and is none.

    An abstract class without a name, or that another one of the module derives from, is one to derive from.
    """
    own = [cls for cls in vars(module).values() if inspect.isclass(cls) and issubclass(cls, (Problem, Solver))]
    own = [cls for cls in own if cls.__module__ == module.__name__]
    whole = [cls for cls in own if issubclass(cls, (Problem, IterativeSolver, OneShotSolver)) and not inspect.isabstract(cls)]
    if file.stem.startswith("_"):
        return whole
    for cls in reversed(own):
        is_base = "name" not in vars(cls) or any(issubclass(other, cls) for other in own if other is not cls)
        if inspect.isabstract(cls) and not (whole and is_base):
            raise InputError(f"plug-in {file} cannot be used: {_lacking(cls)}")
    if own and not whole:
        kinds = "must derive from IterativeSolver or OneShotSolver, not from Solver itself"
        raise InputError(f"plug-in {file} cannot be used: {own[0].__name__} {kinds}")
    if not own:
        raise InputError(f"plug-in {file} defines no problem and no solver; the name of a file that others import from begins with _")
    return whole


def _lacking(cls: type) -> str:
    return f"{cls.__name__} lacks {', '.join(sorted(getattr(cls, '__abstractmethods__', ())))}"
