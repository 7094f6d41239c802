"""Formatting of numbers and tables."""

import csv
import html
import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.text import csv_cell
from bench_mtl.engine.proofs import format_gap
from bench_mtl.report import columns

TEXTS = {
    columns.format_seconds: {
        0: "0", 0.012: "0.0120", 3.1: "3.10", 48: "48.0", 123.4: "123", 999.6: "1000", 1250.4: "1250", 1.234e-5: "1.23e-05",
    },
    format_gap: {0.0: "0", 1.23e-7: "1.3e-07", 0.5: "5.0e-01", 9.91e-6: "1.0e-05", math.inf: "inf"},
    columns.format_objective: {1 / 3: "0.3333333333", 0.0: "0", 1234567890.4: "1234567890", -0.5: "-0.5000000000"},
    columns.format_upper: {math.log(2.0): "0.6931471806", -math.log(2.0): "-0.6931471805", 0.0: "0", 1e300 / 3: "3.333333334e+299"},
    columns.format_lower: {math.log(2.0): "0.6931471805", -math.log(2.0): "-0.6931471806", 0.5: "0.5000000000"},
    columns.format_count: {7.0: "7", 7.5: "7.5", 123456.5: "123456", 2e7: "20000000"},
    columns.format_ratio: {1.27: "1.3x", 9.97: "10x", 12.3: "12x", 484.0: "480x", 12345.0: "12000x", 0.0517: "0.052x"},
    columns.format_target: {1e-2: "1e-2", 1e-6: "1e-6", 2.5e-3: "2.5e-3", 1e-10: "1e-10", 1.0: "1e0"},
    columns.format_p_value: {0.0421: "0.042", 3.2e-5: "3e-05", 0.0: "0", 1.0: "1.000"},
    columns.format_measure: {0.0: "0", 123456.0: "123456", 0.07: "0.07", 1 / 3: "0.3333", -2.0: "-2", 1e300: "1e+300"},
}  # fmt: skip


@pytest.mark.parametrize(("form", "texts"), [pytest.param(form, texts, id=form.__name__) for form, texts in TEXTS.items()])
def test_numbers_have_the_digits_that_mean_something(form, texts):
    assert {value: form(value) for value in texts} == texts


FRAME = pd.DataFrame({
    "solver": ["a|b", "c"], "runs": [3, 3], "relative_gap": [1e-7, math.nan], "in_full": [3, 3], "proven": [2, 0],
    "seconds_to_1e-4": [math.nan, 0.5], "reached_1e-4": [1, 3], "runs_to_1e-4": [3, 3], "reason": ["two\nlines & 5 % <of> *it*", None],
})  # fmt: skip

COLUMNS = [
    columns.SOLVER, columns.count_of("runs"), columns.Column("relative_gap", form=format_gap, counted=("proven", "in_full")),
    columns.seconds_of("seconds_to", "s to", counted=("reached", "runs_to"), each_target=True), columns.Column("reason"),
]  # fmt: skip


def test_display_counts_and_leaves_no_nan():
    shown = columns.display(FRAME, COLUMNS)
    assert list(shown.columns) == ["Solver", "Runs", "Relative gap", "s to 1e-4", "Reason"]
    assert list(shown["Relative gap"]) == ["1.0e-07 (2 of 3)", "-"]
    assert list(shown["s to 1e-4"]) == ["- (1 of 3)", "0.500"]
    assert list(shown["Reason"])[1] == "-"
    assert columns.display(FRAME[["runs"]], [columns.count_of("runs", is_dull_alike=True)]).empty, "what all rows share says nothing"


def test_an_interval_and_words_in_the_place_of_a_number():
    column = columns.Column("ratio", form=columns.format_ratio, instead="ended", interval=("low", "high"))
    frame = pd.DataFrame({"ratio": [2.0, 1.08, None, None], "low": [1.5, None, None, None], "high": [2.5, None, None, None]})
    frame["ended"] = ["", "", "not in 60 s", ""]
    assert columns.column_names([column]) == ["ratio", "ended", "low", "high"]
    assert list(columns.display(frame, [column])["Ratio"]) == ["2.0x (1.5x to 2.5x)", "1.1x", "not in 60 s", "-"]


@pytest.mark.parametrize(
    "label",
    ["_it_", "__it__", "a _b c_ d", "_", "~~s~~", "&lt;b&gt;", "&#42;", "a\nb", " a \t b ", "*x*", "**x**", "<i>", "<http://a.b>", "a|b",
     "`a`", "[a](b)", "a\\", r"\_it_", "interior_point_2", "a_(b)_c"],
)  # fmt: skip
def test_a_label_is_the_text_it_is_wherever_markdown_shows_it(label):
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown, plain = html.escape(" ".join(label.split())), columns.escaped(label)
    assert parser.render(f"## {plain}") == f"<h2>{shown}</h2>\n"
    assert parser.render(f"It is {plain} that wins, _not {plain}_.") == f"<p>It is {shown} that wins, <em>not {shown}</em>.</p>\n"
    table = parser.render(columns.to_markdown(pd.DataFrame({"Solver": [label, "b"], "Reason": ["c", "d"]})))
    assert re.findall(r"<td[^>]*>(.*?)</td>", table) == [shown, "c", "b", "d"]
    assert columns.escaped("interior_point of l1inf_2") == "interior_point of l1inf_2", "it can be read where Markdown is not shown"


def test_latex_is_escaped_and_breaks_the_wide_column():
    text = columns.to_latex(columns.display(FRAME, COLUMNS), wide="Reason")
    assert r"{lrrrp{0.5\linewidth}}" in text
    assert r"5 \% " in text
    assert r"\toprule" in text
    words = columns.to_latex(pd.DataFrame({"Problem": ["a", "[2pt] b", "*c"]}))
    assert r"{}[2pt] b" in words
    assert r"{}*c" in words


WORDS = ["plain", "a,b", 'say "so"', "two\nlines", " spaced ", "é ∞", "cr\rlf", "'", "=1+1", "-1", "@SUM(A1)", "-x", ""]


@given(st.lists(st.tuples(st.floats(), st.none() | st.sampled_from(WORDS), st.none() | st.integers(0, 2**53)), min_size=1))
def test_csv_is_read_again_as_it_was(rows):
    numbers, texts, counts = zip(*rows, strict=True)
    frame = pd.DataFrame({"x": numbers, "n": pd.array(counts, dtype="Int64"), "text": pd.Series(texts, dtype=object)})
    frame["kind"] = frame["text"].astype("category")
    titles, *lines = csv.reader(io.StringIO(columns.to_csv(frame).decode(), newline=""))
    assert titles == ["x", "n", "text", "kind"]
    x, n, text, kind = zip(*lines, strict=True)
    np.testing.assert_array_equal([float(cell) if cell else math.nan for cell in x], numbers)
    assert list(n) == ["" if count is None else str(count) for count in counts]
    assert text == kind == tuple("" if each is None else csv_cell(each) for each in texts)
