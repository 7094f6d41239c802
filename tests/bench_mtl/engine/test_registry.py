"""The registry: installed entry points and plug-in folders."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from plugin_text import iterative

from bench_mtl.cli.listing import found, render
from bench_mtl.core.errors import InputError
from bench_mtl.engine.registry import Registry, load_registry, make_problem, problem_parameters
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.model.task_data import TaskData
from bench_mtl.validation.validate import Check, validate


def plugin(name: str) -> str:
    return iterative(name, "yield Iterate(problem.zero())", more="size: float = 1.0")


MINE = plugin("mine")
ALIASED = MINE.replace("    requires", '    aliases = {"twice": {"size": 2.0}}\n    requires')
BASE = MINE.replace("class Mine(", "class Base(").replace("def steps", "def step")


def write(folder: Path, name: str, text: str) -> Path:
    (folder / "solvers").mkdir(exist_ok=True)
    (folder / "solvers" / f"{name}.py").write_text(text)
    return folder


def test_a_plugin_file_is_enough_to_add_a_solver(tmp_path: Path, faults: Registry) -> None:
    registry = load_registry(write(tmp_path, "mine", MINE))
    assert registry.solver("mine", {"size": 2.0}).size == 2.0  # type: ignore[attr-defined]
    assert "trapped_hinge" in faults.problems, "or a problem"


def test_a_plugin_is_its_file_whatever_stands_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "my.own", MINE)
    (tmp_path / "solvers.py").write_text("raise RuntimeError")
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems.py").write_text("raise RuntimeError")
    (tmp_path / "solvers" / "other").mkdir()
    (tmp_path / "solvers" / "other" / "__init__.py").write_text("raise RuntimeError")
    registry = load_registry(write(tmp_path, "other", plugin("other")))
    assert {"mine", "other"} <= set(registry.solvers)


def test_options_that_are_missing_or_that_a_plugin_trips_over_are_named(tmp_path: Path) -> None:
    folder = write(
        tmp_path, "mine", MINE.replace("size: float = 1.0", "size: float") + "\n    def __post_init__(self):\n        self.size + 1\n"
    )
    registry = load_registry(folder)
    with pytest.raises(InputError, match="solver 'mine' needs option size"):
        registry.solver("mine")
    with pytest.raises(InputError, match="solver 'mine' refuses its options: TypeError"):
        registry.solver("mine", {"size": "big"})
    text = render("solvers", found("solvers", plugins=folder))
    assert "options: size\n" in text + "\n"
    assert "MISSING" not in text


def test_folders_of_no_plugins_are_refused(tmp_path: Path) -> None:
    for folder, said in (
        (tmp_path / "none", "does not exist"),
        (tmp_path, r"no problems/\*\.py"),
        (tmp_path / ("n" * 300), "cannot be used"),
    ):
        with pytest.raises(InputError, match=rf"plug-in folder .* .*{said}"):
            load_registry(folder)


def declaring(line: str) -> str:
    return MINE.replace("requires = frozenset()", line)


SETS, TUPLES = (
    r"'mine' of .*: its requires must be a set of Capability\.SMOOTH",
    "'mine' of .*: its takes must be a tuple of subclasses of Form",
)
BAD = {
    "a name that is taken": (plugin("conic"), r"defines 'conic', which bench_mtl\.solvers\.conic\.solver has defined already"),
    "an alias that is taken": (plugin("SCS"), "^plug-in solver 'SCS' needs another name: 'SCS' is an alias of solver 'conic'$"),
    "no name": (plugin(""), "Mine of .* has no name"),
    "no declaration": (declaring(""), "'mine' of .* states neither requires nor takes"),
    **{line: (declaring(line), SETS) for line in ("requires = None", "requires = {'smooth'}", "requires = 3")},
    **{line: (declaring(line), TUPLES) for line in ("takes = None", "takes = ('Hinges',)", "takes = (int,)")},
    "an alias in capitals": (ALIASED.replace("twice", "Twice"), "must be names in lower case, not 'Twice'"),
    "aliases in a list": (ALIASED.replace('{"twice": {"size": 2.0}}', "['twice']"), "must be a table of names"),
    "nothing": ("x = 1\n", r"mine\.py defines no problem and no solver; the name of a file that others import from begins with _$"),
    "a problem": (
        "from bench_mtl.problems.l1inf_hinge import L1InfHinge\nclass Both(L1InfHinge):\n    name = 'both'\n",
        r"mine\.py defines problem 'both': problems belong in problems/",
    ),
    "no method": (MINE.replace("def steps", "def step"), r"mine\.py cannot be used: Mine lacks steps$"),
    "no kind": (
        MINE.replace("IterativeSolver", "Solver"),
        r"mine\.py cannot be used: Mine must derive from IterativeSolver or OneShotSolver, not from Solver itself$",
    ),
    "raises": ("x = 1\ny = 1 / 0\n", r"mine\.py cannot be imported: ZeroDivisionError: division by zero \(line 2\)$"),
    "syntax": ("x = 1\nclass Mine\n", r"mine\.py cannot be imported: SyntaxError: .* \(mine\.py, line 2\)$"),
    "module of another file": ("from ..broken import Form\n", r"mine\.py cannot be .* 'no_such_module' \(broken\.py, line 3\)$"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_bad_plugins_are_named_with_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    text, said = BAD[mistake]
    (tmp_path / "broken.py").write_text("\n\nimport no_such_module\n")
    (tmp_path / "odd.py").write_text("def\n")
    write(tmp_path, "mine", text)
    monkeypatch.chdir(tmp_path.parent)
    for folder in (tmp_path, Path(tmp_path.name)):  # a path from here too
        with pytest.raises(InputError, match=said):
            load_registry(folder)


@pytest.mark.parametrize("derives", [True, False], ids=["derived", "nameless"])
def test_a_class_to_derive_from_may_lack_methods(tmp_path: Path, derives: bool) -> None:
    mine = MINE.replace("(IterativeSolver)", "(Base)") if derives else MINE
    registry = load_registry(
        write(tmp_path, "mine", (BASE.replace("mine", "base") if derives else BASE.replace('name = "mine"', "")) + mine)
    )
    assert "mine" in registry.solvers
    assert "base" not in registry.solvers


def test_a_package_that_is_installed_meanwhile_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert "late" not in load_registry().solvers
    folder = tmp_path / "late-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: late\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[bench_mtl.solvers]\nlate = late:Late\n")
    assert "late" in load_registry().solvers


PACKAGE = {
    "raises": ("x = 1\n\n1 / 0\n", r"cannot be loaded: ZeroDivisionError: division by zero \(a_package_of_mine/raises\.py, line 3\)$"),
    "syntax": ("x = 1\ndef\n", r"cannot be loaded: SyntaxError: .* \(syntax\.py, line 2\)$"),
    "nothing": ("x = 1\n", r"cannot be loaded: AttributeError: module 'a_package_of_mine\.nothing' has no attribute 'Mine'$"),
    "instance": ("Mine = 3\n", r"cannot be used: it is no subclass of IterativeSolver nor OneShotSolver$"),
    "abstract": (plugin("abstract").replace("def steps", "def step"), r"cannot be used: Mine lacks steps$"),
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of a package that is broken in many ways, one that is not there, and two whole ones."""
    package = tmp_path / "a_package_of_mine"
    package.mkdir()
    group = "bench_mtl.solvers"
    entries = [metadata.EntryPoint(name, f"a_package_of_mine.{name}:Mine", group) for name in PACKAGE]
    for name, (text, _) in PACKAGE.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    whole = metadata.EntryPoint("conic", "bench_mtl.solvers.conic:Conic", group)
    problem = metadata.EntryPoint("l1inf_hinge", "bench_mtl.problems.l1inf_hinge:L1InfHinge", "bench_mtl.problems")
    broken = metadata.EntryPoint("lost", "no_such_package.problem:Problem", "bench_mtl.problems")
    installed = {group: [*entries, whole], "bench_mtl.problems": [problem, broken]}
    monkeypatch.setattr(f"{Registry.__module__}._entry_points", installed.get)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", PACKAGE)
def test_a_broken_entry_point_is_one_line_for_who_asks_for_it(name: str) -> None:
    with pytest.raises(InputError, match=rf"^entry point a_package_of_mine\.{name}:Mine of '{name}' {PACKAGE[name][1]}"):
        load_registry().solver(name)


@pytest.mark.usefixtures("installed")
def test_broken_entry_points_leave_the_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_registry().solver("conic").label == "clarabel"
    assert load_registry().solver("ecos").label == "ecos"
    assert load_registry().solver("highs_ipx").label == "highs_ipx"
    with pytest.raises(InputError, match="unknown solver 'conik': did you mean 'conic'"):
        load_registry().solver("conik")
    text = render("solvers", found("solvers"))
    assert "raises\n  cannot be used: entry point a_package_of_mine.raises:Mine of 'raises' cannot be loaded: ZeroDivisionError" in text
    assert "\nconic\n" in text
    assert "lost\n  cannot be used: entry point no_such_package" in render("problems", found("problems"))

    def checked(problem: type[Problem], solver: type[Solver], seed: int) -> Iterator[Check]:
        yield Check(problem.name, solver.name, 1, 0, None)

    monkeypatch.setattr("bench_mtl.validation.validate.operators", lambda: ())
    monkeypatch.setattr("bench_mtl.validation.validate._check_problem", lambda *_: iter(()))
    monkeypatch.setattr("bench_mtl.validation.validate._verdicts", lambda *_: [])
    monkeypatch.setattr("bench_mtl.validation.validate._check_pairs", checked)
    *failed, pair = list(validate(load_registry(), cases=1))
    assert (pair.subject, pair.what) == ("l1inf_hinge", "conic")
    assert {(check.subject, check.what, check.failures) for check in failed} == {(name, "can be loaded", 1) for name in ("lost", *PACKAGE)}


def test_every_label_of_a_variant_is_a_name() -> None:
    registry = load_registry()
    for name, cls in registry.solvers.items():
        assert {registry.meant(solver.label)[0] for solver in cls.variants()} == {name}


def test_an_alias_or_a_label_is_a_solver_with_some_of_its_options() -> None:
    registry = load_registry()
    assert registry.meant("highs", {"method": "ipx"}) == ("conic", {"method": "ipx", "backend": "HIGHS"})
    assert registry.meant("HiGHS", {"backend": "highs"}) == ("conic", {"backend": "HIGHS"})
    assert registry.meant("conic", {"backend": "ECOS"}) == ("conic", {"backend": "ECOS"})
    assert registry.solver("ecos") == registry.solver("conic", {"backend": "ECOS"})
    assert registry.solver("highs_ipx", {"ladder": [1e-4]}) == registry.solver("highs", {"method": "ipx", "ladder": [1e-4]})
    for name, options, said in (
        ("scs", {"backend": "ECOS"}, "^solver 'scs' is solver 'conic' with backend = 'SCS', so backend cannot be 'ECOS'$"),
        ("highs_ipx", {"method": "hipo"}, "solver 'highs_ipx' is solver 'conic' with method = 'ipx', so method cannot be 'hipo'"),
        ("highs_ipq", {}, "unknown solver 'highs_ipq': did you mean 'highs'"),
        ("clarable", {}, r"^unknown solver 'clarable': did you mean 'clarabel'\? allowed: .* more: bench-mtl list solvers$"),
    ):
        with pytest.raises(InputError, match=said):
            registry.solver(name, options)


def test_a_plugin_has_aliases_too_and_one_of_several_solvers_stands_for_none(tmp_path: Path) -> None:
    registry = load_registry(write(tmp_path, "mine", ALIASED))
    assert registry.meant("scs") == ("conic", {"backend": "SCS"})
    assert registry.solver("twice").size == 2.0  # type: ignore[attr-defined]
    write(tmp_path, "other", ALIASED.replace("mine", "other").replace("aliases = {", 'aliases = {"ecos": {}, '))
    registry = load_registry(tmp_path)
    for alias, owners in (("twice", "mine and other"), ("ECOS", "conic and other")):
        with pytest.raises(InputError, match=f"^'{alias}' is an alias of several solvers, {owners}: give the name of one$"):
            registry.solver(alias)


def test_letters_of_papers_are_names_of_parameters_too() -> None:
    """Each alias stands for a parameter and gives the same problem; both names together are refused, as is what is none of them."""
    registry, parameters = load_registry(), {"penalty": 0.3, "radius": 0.2}
    data = TaskData.shared(np.random.default_rng(0).standard_normal((8, 4)), np.where(np.eye(8, 3) > 0.0, 1.0, -1.0))
    for cls in registry.problems.values():
        assert set(cls.aliases.values()) <= problem_parameters(cls).keys()
        assert not set(cls.aliases) & (problem_parameters(cls).keys() - {"loss"})
    cls = registry.problem("sparse_low_rank")
    letters = {name: letter for letter, name in cls.aliases.items()}
    by_letters = {letters[name]: value for name, value in parameters.items()}
    point = np.ones(make_problem(cls, data, parameters).point_shape)
    values = [make_problem(cls, data, given).objective(point) for given in (parameters, by_letters)]
    assert values[0] == values[1] == cls.from_data(data, **by_letters).objective(point)
    with pytest.raises(InputError, match=f"penalty and {letters['penalty']} are the same parameter of problem 'sparse_low_rank': give one"):
        make_problem(cls, data, parameters | by_letters)
    with pytest.raises(InputError, match="unknown parameter of problem 'dirty_model' 'row_penaltie': did you mean 'row_penalty'"):
        make_problem(registry.problem("dirty_model"), data, {"row_penaltie": 1.0})


def test_what_is_installed_is_imported_when_it_is_asked_for() -> None:
    script = """
import sys
from bench_mtl.engine.registry import load_registry
registry = load_registry()
assert "pdhg" in registry.solvers and len(list(registry.solvers)) == len(registry.solvers) > 20
registry.solver("projected_gradient")
registry.problem("l1inf_hinge")
loaded = {name for name in sys.modules if name.startswith(("bench_mtl.solvers.", "bench_mtl.problems."))}
assert {"bench_mtl.solvers.projected_gradient", "bench_mtl.problems.l1inf_hinge"} <= loaded
assert not {"bench_mtl.solvers.pdhg", "bench_mtl.problems.portfolio"} & loaded, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_entry_points_that_are_called_otherwise_or_twice_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "bench_mtl.solvers"
    right = metadata.EntryPoint("conic", "bench_mtl.solvers.conic:Conic", group)
    wrong = metadata.EntryPoint("cone", "bench_mtl.solvers.conic:Conic", group)
    other = metadata.EntryPoint("conic", "bench_mtl.solvers.auto:Auto", group)
    monkeypatch.setattr(f"{Registry.__module__}._entry_points", lambda group: [right, wrong])
    registry = load_registry()
    assert registry.solvers["conic"].name == "conic"
    with pytest.raises(InputError, match="conic:Conic is called 'cone', but its class is called 'conic'"):
        registry.solver("cone")
    monkeypatch.setattr(f"{Registry.__module__}._entry_points", lambda group: [right, other])
    with pytest.raises(InputError, match=r"auto:Auto defines 'conic', which .*conic:Conic has"):
        load_registry()


def test_a_name_of_many_words_is_unknown_at_once() -> None:
    with pytest.raises(InputError, match="unknown solver"):
        load_registry().solver("conic_" + "_".join("abcdefghijklmnopqrst"))
