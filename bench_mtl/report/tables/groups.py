"""Which problems are alike, so that a mean over them says something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench_mtl.core.text import one_line

if TYPE_CHECKING:
    import pandas as pd


def groups(runs: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the problem labels of every group: a problem family on one data set, whatever the parameters and the preprocessing.

    They are in the order of the runs. Problems that were run on different machines are never in one group.
    Where a family has several groups there is one more after them, of the family as a whole: ``"all of l1inf_hinge"``.
    """
    members: dict[str, dict[str, list[str]]] = {}
    for label, (family, name) in _named(runs).items():
        members.setdefault(family, {}).setdefault(name, []).append(label)
    found: dict[str, tuple[str, ...]] = {}
    for family, of_family in members.items():
        found |= {name: tuple(labels) for name, labels in of_family.items()}
        if len(of_family) > 1:
            found[f"all of {family}"] = tuple(label for labels in of_family.values() for label in labels)
    return found


def _named(runs: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """By label the family and the group, each with the machine where there are several."""
    first = runs.drop_duplicates("problem_label")
    machines = first["machine"] if "machine" in first else [""] * len(first)
    found = {}
    for label, problem, text, machine in zip(first["problem_label"], first["problem"], first["data"], machines, strict=True):
        data = {key: value for key, value in json.loads(text).items() if key != "preprocess"}
        what = data.pop("name", None) or data.pop("file", "data")
        options = ", ".join(f"{key} = {value}" for key, value in data.items())
        where = f", {machine}" if machine else ""
        found[str(label)] = (f"{problem}{where}", one_line(f"{problem} on {what}" + (f" ({options})" if options else "") + where))
    return found
