"""Reader of price tables: a CSV file with a line for each date and a column for each asset."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError, did_you_mean
from bench_mtl.core.types import Array
from bench_mtl.data.readers.common import is_number, naming, parsing, readable_file, unpacked_name
from bench_mtl.data.readers.tabular import signs_of
from bench_mtl.model.task_data import TaskData

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_LONGEST = 40

#: Numbers from this one on are years, or times in other units; and texts that may be dates where pandas cannot tell their form.
_FIRST_YEAR = 1900.0
_LIKE_A_DATE = re.compile(r"\d\D+\d|[A-Za-z]{3}.*\d")


def read_prices(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    held_out: int = 0,
    separator: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
) -> TaskData:
    """Return a market from a CSV table of prices: gross returns of consecutive lines, x_tj = p_tj / p_(t-1)j.

    The first line names the columns. The first column holds dates, the oldest or the newest first, or other labels in the order of time.
    Every other column is an asset, every cell a price above 0. n lines of prices give n - 1 periods.

    Parameters
    ----------
    path : the file.
    columns : the names of the assets to use, in this order; None uses all.
    held_out : the number of last periods to keep as `TaskData.held_out`.
    separator, decimal, thousands : as for `read_tabular`.

    Returns
    -------
    TaskData : one shared design, periods x assets; targets are 1 and mean nothing.

    Raises
    ------
    InputError : anything but such a file, fewer than two lines of prices, a cell that is missing, no number or not above 0 (its
        line and column are named), dates in no order, two columns of one name, an unknown column, no period left for training.
    """
    import pandas as pd

    source = readable_file(path)
    n_held_out = whole_number("held_out", held_out)
    with naming(source):
        signs = signs_of(source, separator, decimal, thousands)
        with parsing("a CSV table"):
            try:
                how: dict[str, Any] = {"sep": signs["sep"], "encoding": "utf-8-sig", "skipinitialspace": True}
                cells = pd.read_csv(source, header=None, dtype=str, keep_default_na=False, **how).to_numpy(dtype=object)
            except pd.errors.EmptyDataError:
                raise InputError("has no line") from None
        header, body = [str(name).strip() for name in cells[0]], cells[1:]
        chosen = _columns(header, columns)
        if len(body) < 2:
            raise InputError(f"has {len(body)} line(s) of prices: at least 2 are needed for a period")
        prices = _prices(body, header, chosen, signs)
        is_reversed = _is_reversed([str(cell).strip() for cell in body[:, 0]])
        prices = prices[::-1] if is_reversed else prices
        with np.errstate(over="ignore", under="ignore"):  # refused by name where the relatives are used
            relatives = prices[1:] / prices[:-1]
        n = len(relatives) - n_held_out
        if n < 1:
            raise InputError(f"held_out must be at most {len(relatives) - 1}, so that one of {len(relatives)} periods is left")
        kept = f", of which the last {n_held_out} are held out" if n_held_out else ""
        note = f"Prices were read as returns of {len(relatives)} periods{kept}."
        notes = (note, "Its newest line is the first one, so lines were read from the last.") if is_reversed else (note,)
        return market(relatives[:n], relatives[n:], name=unpacked_name(source).stem, notes=notes)


def _is_reversed(labels: list[str]) -> bool:
    """Whether labels are dates of which the newest is the first; dates in no order are refused."""
    if all(map(is_number, labels)):
        numbers = np.array(labels, dtype=np.float64)
        dates, guesses = [], [numbers] if (numbers >= _FIRST_YEAR).all() else []
    else:
        dates = list(_times(labels, None))
        guesses = list(_times(labels, "mixed")) if all(map(_LIKE_A_DATE.search, labels)) else []
    steps = [np.diff(times) for times in dates or guesses]
    if not steps or any((step >= 0).all() for step in steps):
        return False
    if any((step <= 0).all() for step in steps):
        return True
    if not dates:
        return False
    line = int(np.argmax(steps[0] < 0)) + 1
    raise InputError(
        f"line {line + 1} of prices ('{labels[line][:_LONGEST]}') is older than the one before, and others are not: sort the lines"
    )


def _times(labels: list[str], form: str | None) -> Iterator[NDArray[Any]]:
    """Yield the times that labels stand for, two where days and months could be either; none where they are not of one form, or "mixed"."""
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    for day_first in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where days can only be first, or months
            found = form or guess_datetime_format(labels[0], dayfirst=day_first)
            try:
                times = pd.to_datetime(pd.Series(labels), format=found, dayfirst=day_first, utc=True) if found else pd.Series([pd.NaT])
            except (ValueError, OverflowError):
                continue
        if times.notna().all():
            yield times.dt.tz_convert(None).to_numpy().astype(np.int64)


def _columns(header: list[str], wanted: Sequence[str] | None) -> list[int]:
    """Return positions of the assets' columns."""
    if len(header) < 2:
        raise InputError("has one column only: the first one holds dates or labels, prices start at the second")
    if all(is_number(name) for name in header[1:]):
        raise InputError("has numbers where the names of the columns should be: its first line must be a header")
    for j, name in enumerate(header[1:], start=2):
        if not name:
            raise InputError(f"column {j} has no name in the first line")
        if name in header[1 : j - 1]:
            raise InputError(f"has two columns named '{name}'")
    if wanted is None:
        return list(range(1, len(header)))
    if isinstance(wanted, str) or not isinstance(wanted, Sequence) or not wanted or not all(isinstance(name, str) for name in wanted):
        raise InputError("columns", wanted, "a list of names")
    for i, name in enumerate(wanted):
        if name not in header[1:]:
            raise InputError(f"has no column '{name}' with prices{did_you_mean(name, header[1:])}")
        if name in wanted[:i]:
            raise InputError(f"columns names '{name}' twice")
    return [header.index(name, 1) for name in wanted]


def _prices(body: NDArray[Any], header: list[str], chosen: list[int], signs: dict[str, Any]) -> Array:
    import pandas as pd

    def numbers(cells: NDArray[Any]) -> Array:
        text = pd.Series(cells).str.strip()
        if signs["thousands"] is not None:
            text = text.str.replace(signs["thousands"], "", regex=False)
        if signs["decimal"] != ".":
            text = text.str.replace(".", "?", regex=False).str.replace(signs["decimal"], ".", regex=False)
        return np.asarray(pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64))

    prices = np.column_stack([numbers(body[:, j]) for j in chosen])
    wrong = np.argwhere(~((prices > 0.0) & np.isfinite(prices)))
    if len(wrong):
        i, k = (int(number) for number in wrong[0])
        text = body[i, chosen[k]]
        cell = text.strip() if isinstance(text, str) else ""
        place = f"'{header[chosen[k]]}' in line {i + 1} of prices ('{str(body[i, 0])[:_LONGEST]}')"
        if cell.lower() in _MISSING:
            raise InputError(f"the price of {place} is missing")
        if np.isnan(prices[i, k]):
            raise InputError(f"the price of {place} is no number: {cell[:_LONGEST]!r}")
        raise InputError(f"the price of {place}", cell[:_LONGEST], "finite and above 0")
    return prices


def market(relatives: Array, held_out: Array, *, name: str, notes: tuple[str, ...] = ()) -> TaskData:
    """One task whose rows are periods and whose features are assets, of T x d gross returns a period, and perhaps T' x d held-out ones.

    x_tj is the price of asset j after period t over its price before. Targets are 1 and mean nothing: a portfolio has none.
    """
    for periods in (relatives, held_out):
        wrong = np.argwhere(~((periods > 0.0) & np.isfinite(periods)))
        if len(wrong):
            t, j = map(int, wrong[0])
            raise InputError(f"price relatives must be finite and above 0, but that of asset {j} in period {t} is {periods[t, j]:g}")
    data = TaskData.shared(relatives, np.ones(len(relatives)), name=name, notes=notes)
    if not len(held_out):
        return data
    return data.with_held_out(TaskData.shared(held_out, np.ones(len(held_out)), name=f"{name}, held out"))
