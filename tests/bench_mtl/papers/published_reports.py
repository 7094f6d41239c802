"""The published reports of experiments, each a case of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_mtl.papers import experiments

REPORTS = Path(__file__).parents[3] / "reports"

#: Those that are derived again every time: one of them. The others are slow tests.
QUICK = ("chen-table5",)

EACH = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow, id=name) for name in experiments()]
)
