"""What was sent between processes by runs on data in shards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bench_mtl.report.tables.scaling import WORKERS
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd

#: What a run counts, see `bench_mtl.core.worker_pool.Traffic`.
COUNTS = ("rounds", "messages", "sent", "received", "again", "shards")

_KIB = 1024.0

_COLUMNS = ["problem", "solver", "workers", "shards", "runs", "rounds", "messages_a_round", "sent_a_round_kib", "received_a_round_kib"]
_COLUMNS += ["again", "a_pass_kib"]


def communication(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per problem, solver and number of workers, of the runs that have counted what they sent.

    Returns
    -------
    DataFrame
        problem, solver, workers (missing where a scheduler has them), shards, runs, rounds (median), messages_a_round, sent_a_round_kib and
        received_a_round_kib (medians of a run's means), again (sum), a_pass_kib (median of what was sent and received by passes over the
        data; missing where no run says how many those were).
    """
    import pandas as pd

    told = runs["info"].map(_counts)
    ran = runs[told.notna()]
    if ran.empty:
        return pd.DataFrame(columns=_COLUMNS)
    counts = pd.DataFrame(told[ran.index].tolist(), index=ran.index).astype("float64")
    table = ran[["problem_label", "solver_label"]].set_axis(["problem", "solver"], axis=1)
    table["workers"] = [json.loads(text).get(WORKERS, float("nan")) for text in ran["data"]]
    table[["shards", "rounds", "again"]] = counts[["shards", "rounds", "again"]]
    table["messages_a_round"] = counts["messages"] / counts["rounds"]
    for name in ("sent", "received"):
        table[f"{name}_a_round_kib"] = counts[name] / counts["rounds"] / _KIB
    passes = numbers(ran, "passes")
    table["a_pass_kib"] = (counts["sent"] + counts["received"]) / passes.where(passes > 0) / _KIB
    groups = table.groupby(["problem", "solver", "workers", "shards"], sort=False, dropna=False)
    medians = ["rounds", "messages_a_round", "sent_a_round_kib", "received_a_round_kib", "a_pass_kib"]
    found = groups[medians].median()
    found["runs"], found["again"] = groups.size(), groups["again"].sum()
    return found.reset_index()[_COLUMNS]


def _counts(info: str) -> dict[str, int] | None:
    """Return what a run has counted; None where it has not, or has asked for nothing."""
    said: dict[str, Any] = json.loads(info)
    found = {name: said[name] for name in COUNTS if isinstance(said.get(name), int)}
    return found if len(found) == len(COUNTS) and found["rounds"] > 0 else None
