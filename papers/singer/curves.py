"""What online passes give, of their rows: eta0 by a rule, losses, regrets against the best fixed point and how these grow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench_mtl.stats import power_law
from papers import Array
from papers.singer.passes import EARLY_SHARE
from papers.values import SEED, melted, tidy

#: How eta0 is chosen of the grid, the same way for every method: by the loss of the whole stream that is judged, by that of its
#: beginning, or by the mean loss of the other draws.
HINDSIGHT, EARLY, ELSEWHERE = "hindsight", "early", "elsewhere"

#: Measures at the end of a pass.
LOSS, MEAN_LOSS, NOT_ZERO, USED = "loss", "mean loss", "weights not 0", "weights not negligible"
ETA0, AT_END = "log2 of eta0", "share of choices at an end of the grid"
REGRET, SLOPE, SHARE = "regret", "slope of regret", "largest share of the bound, per cent"
#: Over all passes of a method, whatever the stream and the rule.
LARGEST = "largest share of Zinkevich's bound"

#: The last checkpoints that a slope goes through: from an eighth of the stream on.
_LAST = 4


def so_far(measure: str) -> str:
    """Return what a measure is called along the rounds, in the column `T`."""
    return f"{measure} so far"


def values(rows: pd.DataFrame, where: Sequence[str], rules: Sequence[str]) -> pd.DataFrame:
    """Return the measures of every pass with the eta0 that each rule chooses, by the columns `where` of streams and along rounds `T`."""
    settings = (*where, "method", "rule")
    found = pd.DataFrame(_passes(rows, where, rules))
    if not len(found):
        return tidy([], (*settings, "T"))
    curves = (LOSS, MEAN_LOSS, NOT_ZERO, REGRET)
    along = found.drop(columns=list(curves)).explode(["T", *map(so_far, curves)])
    largest = [found.groupby(list(by), sort=False)[SHARE].max().reset_index() for by in (settings, ("method",))]
    ends = (LOSS, MEAN_LOSS, NOT_ZERO, USED, ETA0, AT_END, REGRET, SLOPE)
    parts = [
        melted(found.drop(columns="T"), settings, {name: name for name in ends}),
        melted(along, (*settings, "T"), {so_far(name): so_far(name) for name in curves}),
        melted(largest[0], settings, {SHARE: SHARE}),
        melted(largest[1], ("method",), {LARGEST: SHARE}, 0.01),
    ]
    return tidy(parts, (*settings, "T"))


def _passes(rows: pd.DataFrame, where: Sequence[str], rules: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what the chosen eta0 gives, for each pass and rule."""
    if "total" not in rows:
        return
    fixed = {
        (*(row[name] for name in (*where, SEED)), _is_capped(row["method"])): (row["fixed"], row["fixed_bound"])
        for row in rows.to_dict("records")
        if isinstance(row.get("fixed"), list)
    }
    for _, group in rows[rows["total"].notna()].groupby([*where, "method"], sort=False):
        cells: list[Any] = group.to_dict("records")
        for row in cells:
            place = {name: row[name] for name in (*where, SEED)}
            least = fixed.get((*place.values(), _is_capped(row["method"])), [[math.nan] * len(row["rounds"])] * 2)
            for rule in rules:
                i = _chosen(row, [other for other in cells if other is not row], rule)
                if i is not None:
                    yield {**place, "method": row["method"], "rule": rule, **_of(row, i, np.array(least))}


def _is_capped(method: str) -> bool:
    return method.endswith("_capped")


def _chosen(row: Mapping[str, Any], others: Sequence[Mapping[str, Any]], rule: str) -> int | None:
    """Return the place of the chosen eta0 in the grid; None where the rule has nothing to go by."""
    if rule == ELSEWHERE:
        return int(np.mean([np.array(other["total"])[:, -1] for other in others], axis=0).argmin()) if others else None
    rounds = row["rounds"]
    at = len(rounds) - 1 if rule == HINDSIGHT else rounds.index(rounds[-1] // EARLY_SHARE)
    return int(np.array(row["total"])[:, at].argmin())


def _of(row: Mapping[str, Any], i: int, least: Array) -> dict[str, Any]:
    """Return what a pass gives with the i-th eta0, against the losses of the best fixed point of each beginning: of those that are known,
    and, for the share of a bound on regret, of what is proven of the best."""
    rounds, etas, losses = np.array(row["rounds"]), row["etas"], np.array(row["total"][i])
    regrets, is_chosen, share = losses - least[0], len(etas) > 1, math.nan
    if row["has_bound"]:
        longest = row["longest"][i] if isinstance(row["longest"], list) else row["longest"]
        bounds = [gradient_bound(T, etas[i], row["diameter"], longest) for T in row["rounds"]]
        share = 100.0 * float(((losses - least[1]) / bounds).max())
    curves = {LOSS: losses, MEAN_LOSS: losses / rounds, NOT_ZERO: np.array(row["non_zeros"][i]), REGRET: regrets}
    return {
        **{name: curve[-1] for name, curve in curves.items()},
        **{so_far(name): curve for name, curve in curves.items()},
        "T": rounds,
        USED: row["features"][i][-1],
        ETA0: math.log2(etas[i]) if is_chosen else math.nan,
        AT_END: float(i in (0, len(etas) - 1)) if is_chosen else math.nan,
        SLOPE: slope(row["rounds"], regrets.tolist()),
        SHARE: share,
    }


def slope(rounds: Sequence[int], regrets: Sequence[float]) -> float:
    """Return the slope of log regret against log T from an eighth of the stream on; NaN where a regret is not above 0."""
    if len(rounds) < _LAST or not min(regrets[-_LAST:]) > 0.0:
        return math.nan
    return power_law(rounds[-_LAST:], regrets[-_LAST:]).exponent


def gradient_bound(rounds: int, eta0: float, diameter: float, longest: float) -> float:
    """Return D^2 sqrt(T) / (2 eta0) + G^2 sum_t eta_t / 2, which bounds the regret of projected gradient steps eta_t = eta0 / sqrt(t).

    Zinkevich, ICML 2003, theorem 1, with the diameter D of the ball and the largest length G of a gradient.
    """
    steps: Array = eta0 / np.sqrt(np.arange(1.0, rounds + 1.0))
    return float(diameter**2 * rounds**0.5 / (2.0 * eta0) + 0.5 * longest**2 * steps.sum())
