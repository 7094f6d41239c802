"""What solvers say of their runs stands in reports, whatever it is."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from bench_mtl.report.words import solver_notes


@pytest.mark.parametrize(
    ("note", "line"),
    [
        ("picked | pdhg", r"- auto says: picked \| pdhg"),
        (["a", 1], "- auto says: \\['a', 1\\]"),
        (5, "- auto says: 5"),
        (None, ""),
        ("", ""),
    ],
)
def test_a_note_of_any_kind_is_text_and_stands_once(note: object, line: str) -> None:
    runs = pd.DataFrame({"solver_label": ["auto", "auto"], "info": [json.dumps({"note": note})] * 2})
    assert solver_notes(runs) == line
