"""Every planted fault has its place in the code, and the tests that are to catch it are there."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8"))["fault"]


def test_every_fault_is_placed_once() -> None:
    places = {fault["name"]: (ROOT / fault["file"]).read_text(encoding="utf-8").count(fault["old"]) for fault in FAULTS}
    assert len(places) == len(FAULTS)
    assert {name: count for name, count in places.items() if count != 1} == {}


def test_its_tests_are_there() -> None:
    assert [fault["name"] for fault in FAULTS if not all((ROOT / test.partition("::")[0]).exists() for test in fault["tests"])] == []
