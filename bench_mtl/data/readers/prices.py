"""Reader of price tables: a CSV file with a line for each date and a column for each asset."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data.markets import market
from bench_mtl.data.readers.common import is_number, naming, parsing, readable_file
from bench_mtl.model.task_data import TaskData

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_LONGEST = 40


def read_prices(path: str | Path, *, columns: Sequence[str] | None = None, held_out: int = 0) -> TaskData:
    """Return a market from a CSV table of prices: gross returns of consecutive lines, x_tj = p_tj / p_(t-1)j.

    The first line names the columns. The first column holds dates or other labels, in the order of time: they are not read. Every
    other column is an asset, every cell a price above 0, with a point for decimals. n lines of prices give n - 1 periods.

    Parameters
    ----------
    path : the file.
    columns : the names of the assets to use, in this order; None uses all.
    held_out : the number of last periods to keep as `TaskData.held_out`.

    Returns
    -------
    TaskData : one shared design, periods x assets; targets are 1 and mean nothing.

    Raises
    ------
    InputError : anything but such a file, fewer than two lines of prices, a cell that is missing, no number or not above 0 (its
        line and column are named), two columns of one name, an unknown column, no period left for training.
    """
    source = readable_file(path)
    n_held_out = whole_number("held_out", held_out)
    with naming(source):
        cells = _cells(source)
        header, body = [str(name).strip() for name in cells[0]], cells[1:]
        chosen = _columns(header, columns)
        if len(body) < 2:
            raise InputError(f"has {len(body)} line(s) of prices: at least 2 are needed for a period")
        prices = _prices(body, header, chosen)
        with np.errstate(over="ignore", under="ignore"):  # refused by name where the relatives are used
            relatives = prices[1:] / prices[:-1]
        n = len(relatives) - n_held_out
        if n < 1:
            raise InputError(f"held_out must be at most {len(relatives) - 1}, so that one of {len(relatives)} periods is left")
        note = f"Prices were read as returns of {len(relatives)} periods" + (
            f", of which the last {n_held_out} are held out." if n_held_out else "."
        )
        return market(relatives[:n], relatives[n:], name=source.stem, notes=(note,))


def _cells(source: Path) -> NDArray[Any]:
    """Return all cells as text, the header first."""
    import pandas as pd

    with parsing("a CSV table"):
        try:
            table = pd.read_csv(source, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig", skipinitialspace=True)
        except pd.errors.EmptyDataError:
            raise InputError("has no line") from None
    return table.to_numpy(dtype=object)


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
        raise InputError(f"columns must be a list of names, not {wanted!r}")
    for i, name in enumerate(wanted):
        if name not in header[1:]:
            near = difflib.get_close_matches(name, header[1:], n=1)
            raise InputError(f"has no column '{name}' with prices" + (f": did you mean '{near[0]}'?" if near else ""))
        if name in wanted[:i]:
            raise InputError(f"columns names '{name}' twice")
    return [header.index(name, 1) for name in wanted]


def _prices(body: NDArray[Any], header: list[str], chosen: list[int]) -> Array:
    import pandas as pd

    columns = [pd.to_numeric(pd.Series(body[:, j]).str.strip(), errors="coerce").to_numpy(dtype=np.float64) for j in chosen]
    prices = np.column_stack(columns)
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
        raise InputError(f"the price of {place} must be finite and above 0, not {cell[:_LONGEST]}")
    return prices
