"""What the two experiments on images read alike of joint and independent models: errors word by word, and coefficients as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from papers.experiment import Read
from papers.quattoni.annotation_models import MODELS
from papers.values import SEED, VALUE, melted, per_model

#: What tables of differences subtract from what.
PAIRS = (("l1inf", "l1"), ("l1inf", "l2"), ("l1", "l2"))


def errors_by_word(rows: pd.DataFrame, cell: Sequence[str], word: str) -> pd.DataFrame:
    """Return the EER of each judged word, whose column is called `word`, by the settings `cell`."""
    lists = ["words", *(f"{model}_eers" for model in MODELS)]
    each = rows[[*cell, SEED, *lists]].explode(lists, ignore_index=True).rename(columns={"words": word})
    return per_model(each, (*cell, word), MODELS, {f"EER of a {word}": "eers"})


def by_radius(rows: pd.DataFrame, cell: Sequence[str], radii: Sequence[float], measure: str, column: str) -> pd.DataFrame:
    """Return of every C that was tried whether it was chosen, and a measure whose column has a list by C."""
    tried: Any = [list(radii)] * len(rows)
    each = rows.assign(radius=tried).explode(["radius", *(f"{model}_{column}" for model in MODELS)], ignore_index=True)
    is_chosen = {f"{model}_chosen": each["radius"] == each[f"{model}_radius"] for model in MODELS}
    return per_model(each.assign(**is_chosen), (*cell, "radius"), MODELS, {"chosen": "chosen", measure: column})


def shares_of_words(errors: pd.DataFrame, cell: Sequence[str], word: str) -> pd.DataFrame:
    """Return the share of the words in which l1,inf has the lower mean EER over the repetitions, where there are two or more."""
    several = errors[errors.groupby(list(cell))[SEED].transform("nunique") > 1]
    means = several.pivot_table(index=[*cell, word], columns="model", values=VALUE, sort=False).reindex(columns=list(MODELS))
    lower = {f"share of {word}s with a lower EER than {rival}": means["l1inf"] < means[rival] for rival in ("l1", "l2")}
    shares = pd.DataFrame(lower).groupby(list(cell), sort=False).mean().reset_index()
    return melted(shares, cell, {name: name for name in lower}).assign(model="l1inf") if len(shares) else shares


def pictures(read: Read) -> list[tuple[str, Any]]:
    """Return the sizes of the coefficients of l1 and l1,inf, features x words, of the first cell of each collection that keeps them."""
    if "l1inf_picture" not in read.rows:
        return []
    rows, text, shown = read.rows.dropna(subset="l1inf_picture"), read.experiment.text, []
    for row in (rows.drop_duplicates("data") if "data" in rows else rows.head(1)).to_dict("records"):
        for model in ("l1", "l1inf"):
            label = [text(str(row.get("data", ""))), text(model), f"C = {row[f'{model}_radius']:g}"]
            sizes = np.reshape(row[f"{model}_picture"], (int(row[f"{model}_picture_rows"]), -1))
            shown.append((", ".join(filter(None, label)), sizes))
    return shown
