"""Formatting of numbers and tables."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabulate import tabulate

from bench_mtl.report import render


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.012, "0.0120"), (3.1, "3.10"), (48, "48.0"), (123.4, "123"), (999.6, "1000"), (1250.4, "1250"), (1.234e-5, "1.23e-05")],
)
def test_seconds(value, text):
    assert render.format_seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1.23e-7, "1.2e-07"), (0.5, "5.0e-01"), (12.0, "1.2e+01")])
def test_gaps(value, text):
    assert render.format_gap(value) == text


@pytest.mark.parametrize(("value", "text"), [(1 / 3, "0.3333333333"), (0.0, "0"), (1234567890.4, "1234567890"), (-0.5, "-0.5000000000")])
def test_objectives(value, text):
    assert render.format_objective(value) == text


@pytest.mark.parametrize(("value", "text"), [(7.0, "7"), (7.5, "7.5"), (123456.5, "123456"), (2e7, "20000000")])
def test_counts(value, text):
    assert render.format_count(value) == text


@pytest.mark.parametrize(("value", "text"), [(1.27, "1.3x"), (9.97, "10x"), (12.3, "12x"), (484.0, "480x"), (12345.0, "12000x")])
def test_ratios(value, text):
    assert render.format_ratio(value) == text


@pytest.mark.parametrize(("value", "text"), [(1e-2, "1e-2"), (1e-6, "1e-6"), (2.5e-3, "2.5e-3"), (1e-10, "1e-10"), (1.0, "1e0")])
def test_targets(value, text):
    assert render.format_target(value) == text


FRAME = pd.DataFrame(
    {
        "solver": ["a|b", "c"],
        "runs": [3, 3],
        "relative_gap": [1e-7, math.nan],
        "proven": [2, 0],
        "seconds_to_1e-4": [math.nan, 0.5],
        "reached_1e-4": [1, 3],
        "reason": ["two\nlines & 5 % <of> *it*", None],
    }
)


def test_display_counts_and_leaves_no_nan():
    shown = render.display(FRAME)
    assert list(shown.columns) == ["Solver", "Runs", "Relative gap", "s to 1e-4", "Reason"]
    assert list(shown["Relative gap"]) == ["1.0e-07 (2/3)", "-"]
    assert list(shown["s to 1e-4"]) == ["- (1/3)", "0.500"]
    assert list(shown["Reason"])[1] == "-"


def test_markdown_escapes_what_would_break_it():
    text = render.to_markdown(render.display(FRAME))
    assert text.count("\n") == 3
    assert r"a\|b" in text
    assert r"two lines & 5 % \<of> \*it\*" in text
    assert "nan" not in text.lower()


def test_latex_is_escaped_and_breaks_the_wide_column():
    text = render.to_latex(render.display(FRAME), wide="Reason")
    assert r"{lrrrp{0.5\linewidth}}" in text
    assert r"5 \% " in text
    assert r"\toprule" in text


def test_csv_has_all_digits_and_empty_fields():
    lines = render.to_csv(pd.DataFrame({"x": [1 / 3, math.nan], "y": ["a,b", None]})).decode().splitlines()
    assert lines == ["x,y", '0.3333333333333333,"a,b"', ","]


AWKWARD_NUMBERS = [
    0.0, -0.0, 5.0, -3.0, 0.5, 1 / 3, 1e-4, 9.999e-5, 2e-5, 1e-5, 9.99e-6, 1e-6, 9.99e-7, 5e-7, 4.9e-7, 1e-7, -1.5e-9, 1e-9, 1e-10, 1e-99,
    1e-100, 5e-324, 1e13, 1e14, 99999999999999.5, 999999999999999.9, 1e15, 1234567890123456.7, 1e16, 1.5e16, 1e17, 1e22, 2.0**53, 1e100,
    1.7976931348623157e308, math.inf, -math.inf, math.nan,
]  # fmt: skip


def as_pandas_writes(frame):
    return frame.to_csv(index=False, lineterminator="\n").encode()


@pytest.mark.parametrize("rows_at_once", [2, 7, 100_000])
def test_csv_is_what_pandas_writes(monkeypatch, rows_at_once):
    monkeypatch.setattr(render, "_ROWS_AT_ONCE", rows_at_once)
    texts = ["plain", "", "a,b", 'say "so"', "two\nlines", " spaced ", "é ∞", None, "cr\rlf", "'"]
    size = len(AWKWARD_NUMBERS)
    frame = pd.DataFrame(
        {
            "a, title": AWKWARD_NUMBERS,
            "text": [texts[i % len(texts)] for i in range(size)],
            "whole": range(size),
            "maybe": pd.array([None if i % 3 else i for i in range(size)], dtype="Int64"),
            "true": [i % 2 == 0 for i in range(size)],
            "kind": pd.Categorical([None if i % 5 == 0 else f"kind {i % 4}" for i in range(size)]),
            "mixed": pd.Series([1.5 if i % 2 else None for i in range(size)], dtype=object),
            "nothing": [None] * size,
        }
    )
    assert render.to_csv(frame) == as_pandas_writes(frame)
    assert render.to_csv(frame.iloc[:0]) == as_pandas_writes(frame.iloc[:0])


@given(st.lists(st.floats(), min_size=1))
def test_every_float_is_written_as_pandas_writes_it(values):
    frame = pd.DataFrame({"x": values, "y": 1})
    assert render.to_csv(frame) == as_pandas_writes(frame)


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\x1b\x00\x01"))] * 3), min_size=1))
def test_tables_are_what_tabulate_makes(rows):
    titles = ["Solver", "Seconds", "Reason"]
    frame = pd.DataFrame([["x" + cell for cell in row] for row in rows], columns=titles, dtype="str")
    cells = [[" ".join(cell.split()) for cell in row] for row in frame.itertuples(index=False, name=None)]

    def expected(form, shown):
        return tabulate(shown, headers=titles, tablefmt=form, disable_numparse=True, colalign=["left", "right", "left"])

    assert render.to_markdown(frame) == expected("github", [[render.escaped(cell) for cell in row] for row in cells])
    assert render.to_latex(frame) == expected("latex_booktabs", cells)
    assert render.to_text(frame) == expected("simple", cells)


def test_tables_without_rows_have_their_headings():
    empty = FRAME.iloc[:0]
    assert render.to_markdown(render.display(empty)).startswith("| Solver")
    assert "Solver" in render.to_latex(render.display(empty), wide="Reason")
    assert render.to_text(render.display(empty)).startswith("Solver")
