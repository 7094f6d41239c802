"""Specialised against generic solvers on structured multi-task problems, every gap proven.

What is needed every day can be imported from here; each name is loaded when it is first used, so that the command line starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_mtl.core.version import __version__

if TYPE_CHECKING:
    from bench_mtl.comparing import Comparison, compare
    from bench_mtl.core.checks import is_sparse
    from bench_mtl.core.errors import BenchError, InputError
    from bench_mtl.core.types import Certificate, Iterate, Limits, Record, Status, Tolerance
    from bench_mtl.data import load
    from bench_mtl.enclosures import Enclosure, certify
    from bench_mtl.engine.driver import run
    from bench_mtl.engine.registry import load_registry, make_problem
    from bench_mtl.engine.regularisation_path import regularisation_path
    from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
    from bench_mtl.model.protocols import Capability, ConicModel, IterativeSolver, OneShotSolver, Problem, Solver
    from bench_mtl.model.task_data import TaskData
    from bench_mtl.report import write_report

#: The module of every public name.
_MODULES = {
    "BenchError": "core.errors",
    "Capability": "model.protocols",
    "Certificate": "core.types",
    "Comparison": "comparing",
    "ConicModel": "model.protocols",
    "Enclosure": "enclosures",
    "InputError": "core.errors",
    "Iterate": "core.types",
    "IterativeSolver": "model.protocols",
    "Limits": "core.types",
    "NEGLIGIBLE_ENTRY": "model.patterns",
    "OneShotSolver": "model.protocols",
    "Problem": "model.protocols",
    "Record": "core.types",
    "Solver": "model.protocols",
    "Status": "core.types",
    "TaskData": "model.task_data",
    "Tolerance": "core.types",
    "certify": "enclosures",
    "compare": "comparing",
    "is_sparse": "core.checks",
    "load": "data",
    "load_registry": "engine.registry",
    "make_problem": "engine.registry",
    "regularisation_path": "engine.regularisation_path",
    "run": "engine.driver",
    "write_report": "report",
}

__all__ = [
    "NEGLIGIBLE_ENTRY",
    "BenchError",
    "Capability",
    "Certificate",
    "Comparison",
    "ConicModel",
    "Enclosure",
    "InputError",
    "Iterate",
    "IterativeSolver",
    "Limits",
    "OneShotSolver",
    "Problem",
    "Record",
    "Solver",
    "Status",
    "TaskData",
    "Tolerance",
    "__version__",
    "certify",
    "compare",
    "is_sparse",
    "load",
    "load_registry",
    "make_problem",
    "regularisation_path",
    "run",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bench_mtl' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"bench_mtl.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
