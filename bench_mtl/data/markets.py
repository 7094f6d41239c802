"""Price relatives as task data: what the generator of markets and the reader of price tables share."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.task_data import TaskData


def market(relatives: Array, held_out: Array, *, name: str, notes: tuple[str, ...] = ()) -> TaskData:
    """One task whose rows are periods and whose features are assets.

    Parameters
    ----------
    relatives, held_out : T x d and T' x d gross returns a period, x_tj = the price of asset j after period t over its price before;
        T' = 0 for no held-out periods. Targets are 1 and mean nothing: a portfolio has none.
    """
    data = _one_task(relatives, name, notes)
    return data.with_held_out(_one_task(held_out, f"{name}, held out", ())) if len(held_out) else data


def _one_task(relatives: Array, name: str, notes: tuple[str, ...]) -> TaskData:
    wrong = np.argwhere(~((relatives > 0.0) & np.isfinite(relatives)))
    if len(wrong):
        t, j = (int(i) for i in wrong[0])
        raise InputError(f"price relatives must be finite and above 0, but that of asset {j} in period {t} is {relatives[t, j]:g}")
    return TaskData.shared(relatives, np.ones(len(relatives)), name=name, notes=notes)
