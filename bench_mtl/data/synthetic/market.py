"""A market of correlated assets."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data.readers.prices import market
from bench_mtl.data.synthetic.common import sizes
from bench_mtl.model.task_data import TaskData


def synthetic_market(
    *, periods: int = 1000, assets: int = 50, factors: int = 3, common: float = 0.5, volatility: float = 0.02,
    drift_spread: float = 0.0003, cash: float | None = None, seed: int = 0, held_out: int = 0,
) -> TaskData:  # fmt: skip
    """Log-normal price relatives of correlated assets, independent from period to period.

    With z_t, e_t independent N(0, 1) for every period t,

        log x_tj = mu_j + volatility ( sqrt(common) b_j . z_t + sqrt(1 - common) e_tj ),    mu_j ~ N(0, drift_spread^2)

    where the directions b_j are Gaussian vectors of length 1, the first entry of each made positive: that factor is the market,
    which lifts all assets together. x_tj is the price of asset j after period t over its price before, a gross return a period.

    Parameters
    ----------
    periods, assets : T and d, each at least 1; `cash` is one asset more.
    factors : the number of common factors, at least 1.
    common : the share of an asset's variance that comes from the factors, from 0 to 1.
    volatility : standard deviation of a log return, a period (0.02 is much like a day of a share).
    drift_spread : standard deviation of the assets' mean log returns, a period (0.0003 a day is about 7 % a year).
    cash : interest a period, above -1, for a last column that is always 1 + cash; None for no such column.
    seed : as for `synthetic_glm`.
    held_out : the number of later periods to draw as `TaskData.held_out`; they change no earlier one.

    Returns
    -------
    TaskData : a shared T x d design; targets are 1 and mean nothing. The sizes and rates are choices of this package.

    Raises
    ------
    InputError : a size below 1, a share out of its range, a negative deviation, returns beyond the range of numbers.
    """
    T, d, n_factors = sizes(periods=periods, assets=assets, factors=factors)
    n_held_out = whole_number("held_out", held_out)
    share = real_number("common", common, maximum=1.0)
    std, spread = real_number("volatility", volatility), real_number("drift_spread", drift_spread)
    rate = None if cash is None else real_number("cash", cash, minimum=-1.0, strict=True)
    generator = np.random.default_rng(whole_number("seed", seed))
    drift = spread * generator.standard_normal(d)
    directions = generator.standard_normal((d, n_factors))
    directions[:, 0] = np.abs(directions[:, 0])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    loadings, own_std = std * np.sqrt(share) * directions, std * np.sqrt(1.0 - share)

    def draw(count: int) -> Array:
        normal = generator.standard_normal((count, n_factors + d))  # row by row, so that later periods change no earlier one
        with np.errstate(over="ignore", under="ignore"):  # refused by name later
            relatives = np.exp(drift + normal[:, :n_factors] @ loadings.T + own_std * normal[:, n_factors:])
        return relatives if rate is None else np.column_stack([relatives, np.full(count, 1.0 + rate)])

    try:
        return market(draw(T), draw(n_held_out), name="synthetic_market")
    except InputError as error:
        raise InputError(f"{error}: volatility = {std:g} or drift_spread = {spread:g} is too large") from None
