"""Cumulative losses and regrets of online passes, read from rows: step sizes by a rule, slopes, and statements judged by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import Verdict
from bench_mtl.papers.singer.passes import EARLY_SHARE
from bench_mtl.papers.summaries import CONFIDENCE, NO_PAIR, Judgement, Mean, mean

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array

#: How eta0 is chosen of the grid, the same way for every method: by the loss of the whole stream that is judged, by that of its
#: beginning, or by the mean loss of the other draws.
HINDSIGHT, EARLY, ELSEWHERE = "hindsight", "early", "elsewhere"

#: The growth of the bounds on regret, sqrt(T).
BOUND_EXPONENT = 0.5
#: The last checkpoints that a slope goes through: from an eighth of the stream on.
_LAST = 4


def long(rows: pd.DataFrame, where: Sequence[str], rules: Sequence[str]) -> pd.DataFrame:
    """Return a row for each pass and rule: what the chosen eta0 gives.

    Parameters
    ----------
    rows : of cells that have `method`, `seed` and the values of `passes.as_values`, or those of the best fixed points
    where : columns that tell streams apart

    Returns
    -------
    pd.DataFrame
        The columns of `where`, `seed`, `method`, `rule`; `eta0`, `at_end` (whether it is an end of the grid); `loss`, `non_zeros` and
        `features` at the end; lists `rounds`, `losses`, `curve` (features that are not 0) and `regrets` (against the best fixed point of
        each beginning, where that is known); `slope` of log regret against log T; and `bound_share`, the largest share of Zinkevich's
        bound that a regret is, for methods that it holds for.
    """
    import pandas as pd

    columns = [*where, "seed", "method", "rule", "eta0", "at_end", "loss", "non_zeros", "features", "rounds", "losses", "curve", "regrets",
               "slope", "bound_share"]  # fmt: skip
    if not len(rows) or "total" not in rows:
        return pd.DataFrame(columns=columns)
    fixed = _fixed(rows, where)
    found = []
    for place, group in rows[rows["total"].map(lambda value: isinstance(value, list))].groupby([*where, "method"], sort=False):
        cells: list[dict[str, Any]] = group.to_dict("records")  # type: ignore[assignment] # the columns have names
        for row in cells:
            others = [other for other in cells if other is not row]
            best = fixed.get((*place[:-1], row["seed"], _is_capped(row["method"])))
            for rule in rules:
                i = _chosen(row, others, rule)
                if i is not None:
                    found.append({name: row[name] for name in (*where, "seed", "method")} | {"rule": rule} | _of(row, i, best))
    return pd.DataFrame(found, columns=columns)


def _fixed(rows: pd.DataFrame, where: Sequence[str]) -> dict[tuple[Any, ...], list[float]]:
    """Return the losses of the best fixed points by stream, seed, and whether their entries are capped."""
    if "fixed" not in rows:
        return {}
    known = rows[rows["fixed"].map(lambda value: isinstance(value, list))]
    return {(*(row[name] for name in (*where, "seed")), _is_capped(row["method"])): row["fixed"] for row in known.to_dict("records")}


def _is_capped(method: str) -> bool:
    return method.endswith("_capped")


def _chosen(row: Mapping[str, Any], others: Sequence[Mapping[str, Any]], rule: str) -> int | None:
    """Return the place of the chosen eta0 in the grid; None where the rule has nothing to go by."""
    import numpy as np

    if rule == ELSEWHERE:
        if not others:
            return None
        return int(np.mean([[losses[-1] for losses in other["total"]] for other in others], axis=0).argmin())
    rounds = row["rounds"]
    at = len(rounds) - 1 if rule == HINDSIGHT else rounds.index(rounds[-1] // EARLY_SHARE)
    return int(np.argmin([losses[at] for losses in row["total"]]))


def _of(row: Mapping[str, Any], i: int, best: Sequence[float] | None) -> dict[str, Any]:
    losses = row["total"][i]
    regrets = None if best is None else [loss - least for loss, least in zip(losses, best, strict=True)]
    return {
        "eta0": row["etas"][i],
        "at_end": len(row["etas"]) > 1 and i in (0, len(row["etas"]) - 1),
        "loss": losses[-1],
        "non_zeros": row["non_zeros"][i][-1],
        "features": row["features"][i][-1],
        "rounds": row["rounds"],
        "losses": losses,
        "curve": row["non_zeros"][i],
        "regrets": regrets,
        "slope": math.nan if regrets is None else slope(row["rounds"], regrets),
        "bound_share": math.nan if regrets is None or not row.get("has_bound") else _bound_share(row, i, regrets),
    }


def _bound_share(row: Mapping[str, Any], i: int, regrets: Sequence[float]) -> float:
    longest = row["longest"][i] if isinstance(row["longest"], list) else row["longest"]
    bounds = [gradient_bound(T, row["etas"][i], row["diameter"], longest) for T in row["rounds"]]
    return max(regret / bound for regret, bound in zip(regrets, bounds, strict=True))


def slope(rounds: Sequence[int], regrets: Sequence[float]) -> float:
    """Return the slope of log regret against log T from an eighth of the stream on; NaN where a regret is not above 0."""
    from bench_mtl.stats.fits import power_law

    if len(rounds) < _LAST or min(regrets[-_LAST:]) <= 0.0:
        return math.nan
    return power_law(rounds[-_LAST:], regrets[-_LAST:]).exponent


def gradient_bound(rounds: int, eta0: float, diameter: float, longest: float) -> float:
    """Return Zinkevich's bound on the regret of projected gradient steps eta0 / sqrt(t): D^2 sqrt(T) / (2 eta0) + G^2 sum_t eta_t / 2.

    Parameters
    ----------
    diameter : D, of the ball
    longest : G, the largest length of a gradient

    References
    ----------
    Zinkevich, ICML 2003, theorem 1.
    """
    import numpy as np

    steps: Array = eta0 / np.sqrt(np.arange(1.0, rounds + 1.0))
    return float(diameter**2 * rounds**0.5 / (2.0 * eta0) + 0.5 * longest**2 * steps.sum())


def judged_slopes(slopes: Mapping[Any, Mean]) -> Judgement:
    """Return whether regrets grow no faster than sqrt(T), by the intervals of their slopes over the repetitions.

    A steeper regret is no contradiction: a bound with a large constant allows it for as long as the regret is far below it.
    """
    found = [each for each in slopes.values() if each.repetitions]
    right = sum(each.value + each.half <= BOUND_EXPONENT for each in found)
    wrong = sum(each.value - each.half > BOUND_EXPONENT for each in found)
    rule = f"slope, {CONFIDENCE:.0%} interval: at most {BOUND_EXPONENT:g}"
    judged = _judged([each.value for each in found], right, wrong, rule, "above (which the bound allows)")
    return judged._replace(verdict=Verdict.UNKNOWN) if judged.verdict is Verdict.NOT_REPRODUCED else judged


def judged_ratios(ratios: Mapping[Any, Mean], words: str = "smaller") -> Judgement:
    """Return whether ratios, given as means of logarithms over the repetitions, are below 1 everywhere, by their intervals."""
    found = [each for each in ratios.values() if each.repetitions]
    right, wrong = sum(each.value < -each.half for each in found), sum(each.value > each.half for each in found)
    return _judged([math.exp(each.value) for each in found], right, wrong, f"ratio, {CONFIDENCE:.0%} interval: {words}", "the other way")


def judged_gains(gains: Mapping[Any, Mean]) -> Judgement:
    """Return whether differences are above 0 everywhere, by their intervals."""
    found = [each for each in gains.values() if each.repetitions]
    right, wrong = sum(each.value > each.half for each in found), sum(each.value < -each.half for each in found)
    return _judged([each.value for each in found], right, wrong, f"paired difference, {CONFIDENCE:.0%} interval: above 0", "below 0")


def _judged(values: Sequence[float], right: int, wrong: int, rule: str, otherwise: str) -> Judgement:
    """Return the range of the values and how many of them speak for and against a statement."""
    if not values:
        return NO_PAIR
    ours = f"{min(values):.2g} to {max(values):.2g}" if len(values) > 1 else f"{values[0]:.2g}"
    why = f"{rule} at {right} of {len(values)}, {otherwise} at {wrong}, open at {len(values) - right - wrong}"
    return Judgement(ours, _verdict(right, wrong, len(values)), why)


def _verdict(right: int, wrong: int, all_: int) -> Verdict:
    if right and wrong:
        return Verdict.DEPENDS
    if wrong:
        return Verdict.NOT_REPRODUCED
    return Verdict.REPRODUCED if right == all_ else Verdict.UNKNOWN


def judged_within(found: pd.DataFrame) -> Judgement:
    """Return whether no regret at any checkpoint, of any eta0 that a rule chose, is above Zinkevich's bound."""
    shares = found["bound_share"].dropna().tolist()
    if not shares:
        return NO_PAIR
    verdict = Verdict.REPRODUCED if max(shares) <= 1.0 else Verdict.NOT_REPRODUCED
    return Judgement(f"at most {max(shares):.2g} of it", verdict, f"the largest share of the bound over {len(shares)} passes")


def judged_under(judgements: Mapping[str, Judgement]) -> Judgement:
    """Return the first judgement where those under all rules agree, and otherwise that the statement depends on the rule."""
    verdicts = {each.verdict for each in judgements.values()}
    first = next(iter(judgements.values()))
    if len(verdicts) == 1:
        return first
    decided = verdicts & {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.DEPENDS}
    verdict = Verdict.DEPENDS if len(decided) > 1 or Verdict.DEPENDS in decided else Verdict.UNKNOWN
    why = "; ".join(f"{rule}: {each.why}" for rule, each in judgements.items())
    return Judgement("; ".join(f"{rule}: {each.ours}" for rule, each in judgements.items()), verdict, why)


def relative(rows: pd.DataFrame, measure: str, subject: str, rival: str) -> Mean:
    """Return the mean over the repetitions of log(subject / rival), whose exponential is a ratio of geometric means."""
    import numpy as np

    both = rows.pivot_table(index="seed", columns="method", values=measure).reindex(columns=[subject, rival]).dropna()
    return mean(np.log(both[subject] / both[rival]).tolist()) if len(both) else mean([])


def ratio_text(logarithm: Mean) -> str:
    """Return a ratio of geometric means with its interval, of the mean of its logarithms."""
    if not logarithm.repetitions:
        return "-"
    ends = [math.exp(logarithm.value + sign * logarithm.half) for sign in (-1.0, 1.0)]
    return f"{math.exp(logarithm.value):.3f}" + ("" if math.isnan(logarithm.half) else f" ({ends[0]:.3f} to {ends[1]:.3f})")
