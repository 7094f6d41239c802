"""Curves of scores: what is said of them, with the best and the worst learner of every place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from papers.chen.curves import BEST, BEST_OTHER, WORST
from papers.chen.learners import MODELS
from papers.chen.variants import AUCS, DECISIONS
from papers.index import experiment
from papers.judge import Judged, Verdict
from papers.report import read_rows

KEYS = (*AUCS.values(), *(form.format(kind) for form in DECISIONS.values() for kind in ("macro", "micro")))
ORDER = {name: 0.9 - 0.02 * place for place, name in enumerate(MODELS)}


def rows(scores: Mapping[str, float], **settings: object) -> pd.DataFrame:
    """Rows of four repetitions whose scores are these but for what a draw adds to all of them alike, and a little more."""
    generator, table = np.random.default_rng(0), []
    about = {"features": "normalised", "intercept": "without", "status": "verified", "fit_seconds": 1.0, "tuning_seconds": 2.0, **settings}
    for seed in range(4):
        draw = 0.02 * generator.standard_normal()
        for model, value in scores.items():
            score = value + draw + 0.0005 * generator.standard_normal()
            table.append({"model": model, "seed": seed, **about, **dict.fromkeys(KEYS, score)})
    return pd.DataFrame(table)


def judged(name: str, *frames: pd.DataFrame) -> dict[str, list[Judged]]:
    """Verdicts by the beginning of the statement."""
    found: dict[str, list[Judged]] = {}
    for each in read_rows(experiment(name), pd.concat(frames, ignore_index=True).to_dict("records")).judged:
        found.setdefault(each.claim.statement[:20], []).append(each)
    return found


def test_along_the_training_ratio() -> None:
    ends = [rows({name: value + 0.1 * share for name, value in ORDER.items()}, data="scene", share=share) for share in (0.1, 0.9)]
    found = judged("chen-ratio", *ends)
    rising, best, early, close = found.values()
    assert {each.verdict for each in [*rising, *best]} == {Verdict.REPRODUCED}
    assert {each.verdict for each in early} == {Verdict.UNKNOWN}
    assert all("holds at 0.1; not run at 0.3" in each.why for each in early)
    assert [each.verdict for each in close] == [Verdict.NOT_REPRODUCED]  # they are 14 points apart
    part = judged("chen-ratio", ends[0])
    assert {each.verdict for each in [*part["the performance of a"], *part["all learners compare"]]} == {Verdict.NOT_RUN}


def test_along_the_number_of_labels() -> None:
    few, many = (rows(ORDER, data=f"sun09, {labels} labels") for labels in (20, 100))
    many[list(KEYS)] += 0.05
    found = judged("chen-tasks", few, many)
    assert {(each.verdict, each.reading) for each in found["the performance of a"]} == {(Verdict.OTHER_DATA, "does not hold")}
    assert {each.reading for each in found["MixedNorm outperform"]} == {"holds"}


def test_the_ends_are_those_of_their_place() -> None:
    turned = dict(zip(ORDER, reversed(ORDER.values()), strict=True))
    frame = pd.concat([rows(ORDER, data="scene", share=0.1), rows(turned, data="scene", share=0.5)], ignore_index=True)
    values = experiment("chen-ratio").values(frame)
    means = values[values["auc"] == "per label"].groupby(["training share", "model"])["value"].mean()
    for share, names in (("0.1", ("MixedNorm", "RidgeReg", "MTRL")), ("0.5", ("RidgeReg", "MixedNorm", "RidgeReg"))):
        for end, name in zip((BEST, WORST, BEST_OTHER), names, strict=True):
            assert means[share, end] == pytest.approx(means[share, name])
    missing = experiment("chen-ratio").values(frame[frame["model"] != "ASO"])
    assert not set(missing["model"]) & {BEST, WORST, BEST_OTHER}


def test_labels_share_cells_with_table_iii() -> None:
    theirs = experiment("chen-table3").scale("full").grid
    shared = [cell for cell in experiment("chen-tasks").scale("full").grid if cell in theirs]
    assert {cell["data"] for cell in shared} == {"sun09, 80 labels", "sun09, 100 labels"}
