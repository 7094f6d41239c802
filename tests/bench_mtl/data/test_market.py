"""Markets: the generator's law, and tables of prices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, read_prices, synthetic_market

TABLE = """date,ACME,Bolt & Co,"Cash, daily"
2024-01-02,10,4.0,100
2024-01-03,11,2.0,101
2024-01-04,11,3.0,102.01
2024-01-05,22,1.5,103.0301
"""
RELATIVES = np.array([[1.1, 0.5, 1.01], [1.0, 1.5, 1.01], [2.0, 0.5, 1.01]])


def relatives(data: TaskData | None) -> Any:
    assert data is not None
    return np.asarray(data.design.block(0))


def saved(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "market.csv"
    path.write_text(text, encoding=encoding)
    return path


def test_the_market_follows_its_law() -> None:
    d, T = 6, 40_000
    data = synthetic_market(periods=T, assets=d, factors=2, common=0.6, volatility=0.1, drift_spread=0.02)
    logs = np.log(relatives(data))
    np.testing.assert_allclose(logs.std(axis=0), 0.1, rtol=0.03)
    rng = np.random.default_rng(0)
    mu, B = 0.02 * rng.standard_normal(d), rng.standard_normal((d, 2))
    B[:, 0] = np.abs(B[:, 0])
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    np.testing.assert_allclose(logs.mean(axis=0), mu, atol=0.003)
    np.testing.assert_allclose(np.corrcoef(logs.T), 0.6 * B @ B.T + 0.4 * np.eye(d), atol=0.03)
    np.testing.assert_array_equal(data.targets, 1.0)
    assert data.truth == {}


def test_later_periods_change_no_earlier_one() -> None:
    whole = synthetic_market(periods=30, assets=4, seed=3)
    part = synthetic_market(periods=20, assets=4, seed=3, held_out=10)
    np.testing.assert_array_equal(relatives(part), relatives(whole)[:20])
    np.testing.assert_array_equal(relatives(part.held_out), relatives(whole)[20:])
    assert whole.held_out is None
    assert not np.array_equal(relatives(whole), relatives(synthetic_market(periods=30, assets=4, seed=4)))


def test_cash_is_one_column_more() -> None:
    with_cash = synthetic_market(periods=8, assets=3, cash=0.0002, held_out=2)
    np.testing.assert_array_equal(relatives(with_cash)[:, :3], relatives(synthetic_market(periods=8, assets=3)))
    np.testing.assert_array_equal(relatives(with_cash)[:, 3], 1.0002)
    np.testing.assert_array_equal(relatives(with_cash.held_out)[:, 3], 1.0002)


def test_a_market_without_risk_has_its_drifts_only() -> None:
    X = relatives(synthetic_market(periods=5, assets=2, volatility=0.0))
    np.testing.assert_array_equal(X, np.tile(X[0], (5, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"periods": 0}, "periods must be"),
        ({"assets": 0}, "assets must be"),
        ({"factors": 0}, "factors must be"),
        ({"common": 1.1}, "common must be at most 1"),
        ({"volatility": -0.1}, "volatility must be"),
        ({"drift_spread": math.inf}, "drift_spread must be"),
        ({"cash": -1.0}, "cash must be finite and above -1"),
        ({"held_out": -1}, "held_out must be"),
        ({"seed": -1}, "seed must be"),
        ({"volatility": 1e4}, "price relatives must be finite and above 0, but that of asset .* volatility = 10000 or drift_spread"),
    ],
)
def test_markets_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_market(**options)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_of_prices(tmp_path: Path, encoding: str) -> None:
    data = read_prices(saved(tmp_path, TABLE, encoding))
    np.testing.assert_allclose(relatives(data), RELATIVES, rtol=1e-12)
    np.testing.assert_array_equal(data.targets, np.ones((3, 1)))
    assert data.name == "market"
    assert data.notes == ("Prices were read as returns of 3 periods.",)
    assert data.held_out is None


def test_the_last_periods_are_held_out(tmp_path: Path) -> None:
    data = read_prices(saved(tmp_path, TABLE), columns=["Cash, daily", "ACME"], held_out=2)
    np.testing.assert_allclose(relatives(data), RELATIVES[:1, [2, 0]])
    np.testing.assert_allclose(relatives(data.held_out), RELATIVES[1:, [2, 0]])
    assert "of which the last 2 are held out" in data.notes[0]


def test_spaces_blank_lines_and_exponents_are_read(tmp_path: Path) -> None:
    data = read_prices(saved(tmp_path, "day , A ,B\r\n\r\n1, 1e1 ,2\r\n2,+20, 3.\r\n\r\n"))
    np.testing.assert_allclose(relatives(data), [[2.0, 1.5]])


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
    forward = read_prices(saved(tmp_path, "date,A,B\n" + "".join(lines)), held_out=1)
    backward = read_prices(saved(tmp_path, "date,A,B\n" + "".join(lines[::-1])), held_out=1)
    for data in (forward, backward):
        np.testing.assert_array_equal(relatives(data), [[2.0, 1.25]])
        np.testing.assert_array_equal(relatives(data.held_out), [[4.0, 2.2]])
    assert (len(forward.notes), backward.notes[1:]) == (1, ("Its newest line is the first one, so lines were read from the last.",))


def test_labels_that_are_no_dates_are_in_their_order(tmp_path: Path) -> None:
    for labels in (("3", "2", "1"), ("c", "b", "a"), ("t2", "t1", "t0"), ("day 3", "day 2", "day 1")):
        data = read_prices(
            saved(tmp_path, "day,A\n" + "".join(f"{label},{price}\n" for label, price in zip(labels, (1, 2, 8), strict=True)))
        )
        np.testing.assert_array_equal(relatives(data), [[2.0], [4.0]])
    with pytest.raises(
        InputError, match=r"line 3 of prices \('2024-01-03'\) is older than the one before, and others are not: sort the lines"
    ):
        read_prices(saved(tmp_path, "day,A\n2024-01-02,1\n2024-01-04,2\n2024-01-03,3\n"))


def test_prices_with_a_decimal_comma(tmp_path: Path) -> None:
    path = saved(tmp_path, "Tag;A;B\n02.01.2024;1.000,5;2\n03.01.2024;2.001;3,0\n")
    np.testing.assert_array_equal(relatives(read_prices(path, decimal=",", thousands=".")), [[2.0, 1.5]])
    with pytest.raises(InputError, match=r"is no number: '1\.000,5'"):
        read_prices(path, decimal=",")


@pytest.mark.parametrize("cell", ["", " ", "NA", "nan", "NaN", "null", "-"])
def test_missing_prices_are_named(tmp_path: Path, cell: str) -> None:
    with pytest.raises(InputError, match=r"market\.csv: the price of 'Bolt & Co' in line 2 of prices \('2024-01-03'\) is missing"):
        read_prices(saved(tmp_path, TABLE.replace("11,2.0", f"11,{cell}")))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "has no line"),
        ("\n\n", {}, "has no line"),
        ("date,A\n", {}, r"has 0 line\(s\) of prices: at least 2"),
        ("date,A\n1,2\n", {}, r"has 1 line\(s\) of prices: at least 2"),
        ("date\n1\n2\n", {}, "has one column only"),
        ("1,2\n2,3\n3,4\n", {}, "has numbers where the names of the columns should be"),
        ("date,A,A\n1,2,3\n2,3,4\n", {}, "has two columns named 'A'"),
        ("date,A,\n1,2,3\n2,3,4\n", {}, "column 3 has no name"),
        ("date,A,B\n1,2,3\n2,3\n", {}, r"'B' in line 2 of prices \('2'\) is missing"),
        ("date,A,B\n1,2,3\n2,3,4,5\n", {}, "not readable as a CSV table: .*Expected 3 fields in line 3, saw 4"),
        ("date,A\n1,2\n2,0\n", {}, r"'A' in line 2 of prices \('2'\) must be finite and above 0, not 0"),
        ("date,A\n1,-2\n2,1\n", {}, r"'A' in line 1 of prices \('1'\) must be finite and above 0, not -2"),
        ("date,A\n1,inf\n2,1\n", {}, "must be finite and above 0, not inf"),
        ("date,A\n1,2\n2,two\n", {}, r"'A' in line 2 of prices \('2'\) is no number: 'two'"),
        ('date,A\n1,"1,000"\n2,1\n', {}, "is no number: '1,000'"),
        ("date,A\n1,True\n2,1\n", {}, "is no number: 'True'"),
        ("date,A\n1,1e-300\n2,1e300\n", {}, "price relatives must be finite and above 0, but that of asset 0 in period 0 is inf"),
        (TABLE, {"columns": ["ACM"]}, "has no column 'ACM' with prices: did you mean 'ACME'"),
        (TABLE, {"columns": ["date"]}, "has no column 'date' with prices"),
        (TABLE, {"columns": ["ACME", "ACME"]}, "columns names 'ACME' twice"),
        (TABLE, {"columns": []}, "columns must be a list of names"),
        (TABLE, {"columns": "ACME"}, "columns must be a list of names, not 'ACME'"),
        (TABLE, {"columns": [1]}, "columns must be a list of names"),
        (TABLE, {"held_out": 3}, "held_out must be at most 2, so that one of 3 periods is left"),
        (TABLE, {"held_out": -1}, "held_out must be"),
        ('date,A\n1,"2\n2,3\n', {}, "not readable as a CSV table"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_prices(saved(tmp_path, text), **options)
    assert "\n" not in str(error.value)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_prices(tmp_path / "absent.csv")
    path = tmp_path / "bytes.csv"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match=r"bytes\.csv: "):
        read_prices(path)


def test_a_table_of_two_thousand_days_is_read_quickly_enough(tmp_path: Path) -> None:
    X = relatives(synthetic_market(periods=2000, assets=20))
    prices = np.vstack([np.full(20, 50.0), 50.0 * np.cumprod(X, axis=0)])
    lines = ["day," + ",".join(f"S{j}" for j in range(20))]
    lines += [f"{t}," + ",".join(repr(float(price)) for price in row) for t, row in enumerate(prices)]
    np.testing.assert_allclose(relatives(read_prices(saved(tmp_path, "\n".join(lines)))), X, rtol=1e-12)
