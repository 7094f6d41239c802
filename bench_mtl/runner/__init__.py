"""Runs the cases of a suite in a killable worker process and stores a row for every one of them."""

from bench_mtl.runner.local import run_cases

__all__ = ["run_cases"]
