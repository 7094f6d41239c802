"""Tables of prices."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import dense, refused, written

from bench_mtl.data import read_prices

TABLE = """date,ACME,Bolt & Co,"Cash, daily"
2024-01-02,10,4.0,100
2024-01-03,11,2.0,101
2024-01-04,11,3.0,102.01
2024-01-05,22,1.5,103.0301
"""
RELATIVES = np.array([[1.1, 0.5, 1.01], [1.0, 1.5, 1.01], [2.0, 0.5, 1.01]])
GERMAN = "Tag;A;B\n02.01.2024;1.000,5;2\n03.01.2024;2.001;3,0\n"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (TABLE, {}, RELATIVES),
        ("\ufeff" + TABLE, {}, RELATIVES),
        (TABLE, {"columns": ["Cash, daily", "ACME"]}, RELATIVES[:, [2, 0]]),
        ("day , A ,B\r\n\r\n1, 1e1 ,2\r\n2,+20, 3.\r\n\r\n", {}, [[2.0, 1.5]]),
        (GERMAN, {"decimal": ",", "thousands": "."}, [[2.0, 1.5]]),
        # Labels that are no dates are in their order.
        *(
            ("day,A\n" + "".join(f"{label},{price}\n" for label, price in zip(labels, (1, 2, 8), strict=True)), {}, [[2.0], [4.0]])
            for labels in (("3", "2", "1"), ("c", "b", "a"), ("t2", "t1", "t0"), ("day 3", "day 2", "day 1"))
        ),
    ],
)
def test_a_table_of_prices(tmp_path: Path, text: str, options: dict[str, Any], expected: Any) -> None:
    data = read_prices(written(tmp_path / "market.csv", text), **options)
    np.testing.assert_allclose(dense(data), expected, rtol=1e-12)
    np.testing.assert_array_equal(data.targets, 1.0)
    assert (data.name, data.held_out, data.notes) == ("market", None, (f"Prices were read as returns of {len(expected)} periods.",))
    if len(expected) > 1:
        part = read_prices(written(tmp_path / "market.csv", text), **options, held_out=len(expected) - 1)
        np.testing.assert_allclose(dense(part), expected[:1], rtol=1e-12)
        np.testing.assert_allclose(dense(part.held_out), expected[1:], rtol=1e-12)
        assert f"of which the last {len(expected) - 1} are held out" in part.notes[0]


@pytest.mark.parametrize(
    "dates",
    [
        ("2024-01-02", "2024-01-03", "2024-02-01"),
        ("02.01.2024", "03.01.2024", "13.01.2024"),
        ("1/2/2024", "1/3/2024", "1/13/2024"),
        ("31/12/2023", "01/01/2024", "02/01/2024"),
        ("Jan 02 2024", "Jan 03 2024", "Feb 01 2024"),
        ("2-Jan-24", "3-Jan-24", "1-Feb-24"),
        ("2024-01-02 16:00:00-05:00", "2024-01-03 16:00:00-05:00", "2024-07-01 16:00:00-04:00"),
        ("20240102", "20240103", "20240201"),
        ("2022", "2023", "2024"),
        ("1704153600", "1704240000", "1706745600"),
    ],
)
def test_the_newest_line_may_come_first(tmp_path: Path, dates: tuple[str, ...]) -> None:
    lines = [f"{date},{price},{3 + price}\n" for date, price in zip(dates, (1, 2, 8), strict=True)]
    forward = read_prices(written(tmp_path / "market.csv", "date,A,B\n" + "".join(lines)), held_out=1)
    backward = read_prices(written(tmp_path / "market.csv", "date,A,B\n" + "".join(lines[::-1])), held_out=1)
    for data in (forward, backward):
        np.testing.assert_array_equal(dense(data), [[2.0, 1.25]])
        np.testing.assert_array_equal(dense(data.held_out), [[4.0, 2.2]])
    assert (len(forward.notes), backward.notes[1:]) == (1, ("Its newest line is the first one, so lines were read from the last.",))


MISSING = r"market\.csv: the price of 'Bolt & Co' in line 2 of prices \('2024-01-03'\) is missing"
OLDER = r"line 3 of prices \('2024-01-03'\) is older than the one before, and others are not: sort the lines"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        *((TABLE.replace("11,2.0", f"11,{cell}"), {}, MISSING) for cell in ("", " ", "NA", "nan", "NaN", "null", "-")),
        ("day,A\n2024-01-02,1\n2024-01-04,2\n2024-01-03,3\n", {}, OLDER),
        (GERMAN, {"decimal": ","}, r"is no number: '1\.000,5'"),
        ("", {}, "has no line"),
        ("date,A\n1,2\n", {}, r"has 1 line\(s\) of prices: at least 2"),
        ("date\n1\n2\n", {}, "has one column only"),
        ("1,2\n2,3\n3,4\n", {}, "has numbers where the names of the columns should be"),
        ("date,A,A\n1,2,3\n2,3,4\n", {}, "has two columns named 'A'"),
        ("date,A,\n1,2,3\n2,3,4\n", {}, "column 3 has no name"),
        ("date,A,B\n1,2,3\n2,3\n", {}, r"'B' in line 2 of prices \('2'\) is missing"),
        ("date,A,B\n1,2,3\n2,3,4,5\n", {}, "not readable as a CSV table: .*Expected 3 fields in line 3, saw 4"),
        ("date,A\n1,2\n2,0\n", {}, r"'A' in line 2 of prices \('2'\) must be finite and above 0, not '0'"),
        ("date,A\n1,2\n2,two\n", {}, r"'A' in line 2 of prices \('2'\) is no number: 'two'"),
        ("date,A\n1,1e-300\n2,1e300\n", {}, "price relatives must be finite and above 0, but that of asset 0 in period 0 is inf"),
        (TABLE, {"columns": ["ACM"]}, "has no column 'ACM' with prices: did you mean 'ACME'"),
        (TABLE, {"columns": ["ACME", "ACME"]}, "columns names 'ACME' twice"),
        (TABLE, {"columns": "ACME"}, "columns must be a list of names, not 'ACME'"),
        (TABLE, {"held_out": 3}, "held_out must be at most 2, so that one of 3 periods is left"),
        ('date,A\n1,"2\n2,3\n', {}, "not readable as a CSV table"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with refused(message):
        read_prices(written(tmp_path / "market.csv", text), **options)
