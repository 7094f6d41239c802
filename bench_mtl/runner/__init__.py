"""Runs the cases of a suite in killable processes and stores a row for every one of them."""

from bench_mtl.runner.choice import executor_for
from bench_mtl.runner.executors import Executor, InlineExecutor, LocalExecutor
from bench_mtl.runner.job import Found, Job
from bench_mtl.runner.session import run_cases
from bench_mtl.runner.setting import Setting

__all__ = ["Executor", "Found", "InlineExecutor", "Job", "LocalExecutor", "Setting", "executor_for", "run_cases"]
