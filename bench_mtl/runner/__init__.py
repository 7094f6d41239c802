"""Runs the cases of a suite in killable processes and stores a row for every one of them."""

from bench_mtl.runner.executors import Executor, InlineExecutor, LocalExecutor
from bench_mtl.runner.process import Setting
from bench_mtl.runner.session import run_cases

__all__ = ["Executor", "InlineExecutor", "LocalExecutor", "Setting", "run_cases"]
