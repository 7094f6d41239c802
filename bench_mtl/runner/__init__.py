"""Runs the cases of a suite in killable processes and stores a row for every one of them.

Names are imported when they are first used: a process that only runs cases needs little of what starts and watches it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_mtl.runner.choice import executor_for
    from bench_mtl.runner.executors import Executor, InlineExecutor, LocalExecutor
    from bench_mtl.runner.interrupt import Interrupt
    from bench_mtl.runner.job import Found
    from bench_mtl.runner.memory import forget_peak, peak_mib
    from bench_mtl.runner.session import run_cases
    from bench_mtl.runner.setting import Setting

_MODULES = {
    "Executor": "executors",
    "Found": "job",
    "InlineExecutor": "executors",
    "Interrupt": "interrupt",
    "LocalExecutor": "executors",
    "Setting": "setting",
    "executor_for": "choice",
    "forget_peak": "memory",
    "peak_mib": "memory",
    "run_cases": "session",
}

__all__ = [
    "Executor", "Found", "InlineExecutor", "Interrupt", "LocalExecutor", "Setting", "executor_for", "forget_peak", "peak_mib", "run_cases",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bench_mtl.runner' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"bench_mtl.runner.{_MODULES[name]}"), name)
