"""The registry: installed entry points and plug-in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_mtl.errors import InputError
from bench_mtl.registry import Registry, load_registry, problem_parameters, solver_options

PLUGIN = '''
from dataclasses import dataclass
from bench_mtl.protocols import IterativeSolver
from bench_mtl.types import Iterate

@dataclass(frozen=True)
class Mine(IterativeSolver):
    """Stands still."""
    size: float = 1.0
    name = "{name}"
    requires = frozenset()

    def steps(self, problem, start=None):
        yield Iterate(problem.zero())
'''


def write(folder: Path, name: str, text: str) -> Path:
    (folder / "solvers").mkdir(exist_ok=True)
    (folder / "solvers" / f"{name}.py").write_text(text)
    return folder


def test_everything_installed_is_found() -> None:
    registry = load_registry()
    assert {"l1inf_hinge", "sparse_low_rank"} <= set(registry.problems)
    assert {"projected_subgradient", "projected_gradient", "accelerated_gradient", "conic"} <= set(registry.solvers)
    for name, cls in [*registry.problems.items(), *registry.solvers.items()]:
        assert cls.name == name
        assert cls.__doc__


def test_a_plugin_file_is_enough_to_add_a_solver(tmp_path: Path) -> None:
    registry = load_registry(write(tmp_path, "mine", PLUGIN.format(name="mine")))
    assert registry.solver("mine", {"size": 2.0}).size == 2.0  # type: ignore[attr-defined]


def test_plugins_bring_problems_too(faults: Registry) -> None:
    assert "trapped_hinge" in faults.problems


def test_bad_plugins_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_registry(tmp_path / "none")
    with pytest.raises(InputError, match=r"no problems/\*\.py"):
        load_registry(tmp_path)
    with pytest.raises(InputError, match=r"defines 'conic', which solvers\.conic has defined already"):
        load_registry(write(tmp_path, "mine", PLUGIN.format(name="conic")))
    with pytest.raises(InputError, match="cannot be imported: ZeroDivisionError"):
        load_registry(write(tmp_path, "mine", "1 / 0"))
    with pytest.raises(InputError, match="cannot be imported: SyntaxError"):
        load_registry(write(tmp_path, "mine", "def"))
    with pytest.raises(InputError, match=r"Mine of .* has no name"):
        load_registry(write(tmp_path, "mine", PLUGIN.format(name="")))


def test_options_and_parameters_are_read_off_the_classes() -> None:
    registry = load_registry()
    assert solver_options(registry.solvers["projected_gradient"])["step_rule"] == "lipschitz"
    assert list(problem_parameters(registry.problems["l1inf_hinge"])) == ["radius", "penalty", "loss"]
    assert list(problem_parameters(registry.problems["sparse_low_rank"])) == ["gamma", "tau"]


@pytest.mark.parametrize(
    ("solver", "options", "words"),
    [
        ("projected_subgradient", {"step_sizes": []}, "step_sizes must be a non-empty list"),
        ("projected_subgradient", {"step_sizes": [0.0]}, "step_sizes must be finite and above 0"),
        ("projected_subgradient", {"search_iterations": 0}, "search_iterations"),
        ("projected_subgradient", {"iterations": 1.5}, "iterations"),
        ("projected_gradient", {"step_rule": "newton"}, "step_rule must be one of lipschitz, line_search"),
        ("projected_gradient", {"initial_lipschitz": 0.0}, "initial_lipschitz"),
        ("projected_gradient", {"objective_change": -1.0}, "objective_change"),
        ("accelerated_gradient", {"restart": "often"}, "restart must be one of none, gradient"),
        ("conic", {"backend": "MOSEK"}, "backend must be one of"),
        ("conic", {"tolerances": []}, "tolerances must be a non-empty list"),
        ("conic", {"tolerances": [-1.0]}, "tolerances"),
        ("conic", {"threads": 0}, "threads"),
        ("conic", {"options": 3}, "options must be a table"),
    ],
)
def test_bad_options_are_refused_by_name(solver: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_registry().solver(solver, options)
