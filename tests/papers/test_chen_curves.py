"""Curves of scores: the best and the worst learner of every place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from papers.chen.learners import MODELS
from papers.chen.scores import BEST, BEST_OTHER, WORST
from papers.chen.variants import AUCS, DECISIONS
from papers.index import experiment

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
