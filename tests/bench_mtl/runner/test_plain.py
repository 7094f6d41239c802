"""Outcomes as bytes: the same again, and nothing but an outcome out of whatever bytes there are."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.types import Certificate, Place, Record, Sample, Status, Times
from bench_mtl.model.patterns import PackedPattern
from bench_mtl.results import Outcome
from bench_mtl.runner.plain import built, flat
from bench_mtl.runner.wire import UnreadableError

CERTIFICATE = Certificate(0.1 + 0.2, -np.inf, 5e-324)
SAMPLES = Sample(0.5, 3, 1.5, CERTIFICATE, 1e-3, (("error", 0.25),), 0.75), Sample(1.0, 4, 2.0, CERTIFICATE)
RECORD = Record(
    Status.TIMEOUT, "half a character \udc80", SAMPLES, Times(solve=1.0), np.array([[np.nan, -0.0], [1e-310, 2.0]]),
    (("version", "1.2"), ("count", 3), ("is", True)), None, None, 12.5, 2.0, (), (Place("a\udc80.py", 3, "f", "x = 1"),),
)  # fmt: skip
PATTERNS = (PackedPattern("W", 1, 9, 3, None, b"\x00\xff"),)
OUTCOME = Outcome(RECORD, {"n": 3}, ("a note",), "1.0", CERTIFICATE, 2.5, {"cpu": "x", "numbers": [1, 2]}, PATTERNS, (), ("12 pages",))


def test_an_outcome_comes_back_bit_by_bit() -> None:
    found = built(Outcome, flat(OUTCOME))
    for given, mine in ((OUTCOME, found), (RECORD, found.record)):
        for field in fields(given):
            if field.name not in ("solution", "record"):
                assert getattr(mine, field.name) == getattr(given, field.name), field.name
    assert isinstance(found.record.status, Status)
    assert found.record.solution is not None
    assert found.record.solution.tobytes() == RECORD.solution.tobytes()  # type: ignore[union-attr]
    assert built(Outcome, flat(replace(OUTCOME, record=replace(RECORD, solution=None)))).record.solution is None


def test_nothing_else_can_be_made_flat() -> None:
    for thing in (object(), {1, 2}, np.ones(2, dtype=np.float32), np.array([object()])):
        with pytest.raises(TypeError):
            flat(replace(OUTCOME, found={"thing": thing}))


def test_bytes_that_are_no_outcome_are_unreadable(tmp_path: Path) -> None:
    whole = json.loads(flat(OUTCOME))
    record = whole["record"]
    wrong: list[tuple[str, Any]] = [
        ("status", "perfect"), ("reason", 1), ("samples", [[1, 2]]), ("counted", "1"),
        ("solution", [[2, 2], "AAAA"]), ("solution", [[2**62], ""]), ("places", [["a.py", 3, "f"]]), ("places", [["a.py", "3", "f", ""]]),
    ]  # fmt: skip
    mistakes: list[Any] = [
        [], 1, None, {}, whole | {"more": 1}, {key: value for key, value in whole.items() if key != "notes"},
        whole | {"record": None}, whole | {"dimensions": {"n": 1.5}}, whole | {"dimensions": {"n": True}}, whole | {"baseline": [1.0]},
        whole | {"notes": "text"}, *(whole | {"record": record | {name: value}} for name, value in wrong),
    ]  # fmt: skip
    files = [json.dumps(mistake).encode() for mistake in mistakes]
    files += [b"", b"\xff", b"[" * 100_000, flat(OUTCOME)[:-1], pickle.dumps(_Deed(tmp_path / "done"))]
    for data in (*files, "text", None, 7, object()):
        with pytest.raises(UnreadableError):
            built(Outcome, data)
    assert not (tmp_path / "done").exists()


class _Deed:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)
