"""Sentences of reports: what solvers say of their runs, and who is fastest on how many problems."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from bench_mtl.report.words import headlines, solver_notes


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


def test_times_within_a_tenth_are_no_win_and_no_ratio_is_never_equal() -> None:
    rows = [("specialised", 1.09), ("generic", 1.05), ("specialised", None), ("specialised", 1.11)]
    winners = pd.DataFrame(rows, columns=["kind", "ratio"]).assign(winner="a", target=1e-4, walkover=False)
    sentence = "a specialised solver is fastest on 2 of 4 problems and times are about equal on 2."
    assert headlines(winners) == [f"To a proven relative gap of 1e-4, {sentence}"]
