"""Proves stored rows again, from the points and dual points that they keep and from their data, without any solver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Certificate, Status
from bench_mtl.engine.proofs import format_gap
from bench_mtl.engine.suite import IN_MEMORY, Instance
from bench_mtl.results import Store
from bench_mtl.results.stored_proofs import read_proof
from bench_mtl.runner.certifier import Certifier, UncertifiableError
from bench_mtl.runner.judgement import meets, slack
from bench_mtl.runner.setting import Setting


class Standing(StrEnum):
    """What becomes of a row when it is proven again."""

    PROVEN = "proven again"
    FALSE = "says more than its points prove"
    UNPROVABLE = "cannot be proven again"
    EMPTY = "has no bounds"


@dataclass(frozen=True)
class Recertified:
    """A row, looked at again."""

    id: int
    label: str
    standing: Standing
    reason: str = ""


def recertify(store: Store, setting: Setting) -> Iterator[Recertified]:
    """Prove every listed row of a results file again, in a process of its own, and say what has become of it.

    The upper bound of a row must be an objective at its stored point, its lower bound the bound of its stored dual point, up to the last
    digits; a verified row must meet its target again. `setting` says where plug-ins and data are. Raises InputError for a damaged file.
    """
    store.require_whole()
    with closing(Certifier(setting)) as certifier:
        # Of one problem after the other, since each is built anew.
        for row in store.runs().sort_values(["instance_key", "id"], kind="stable").to_dict("records"):
            label = f"row {row['id']} ({row['solver_label']} on {row['problem_label']})"
            yield Recertified(int(row["id"]), label, *_standing(row, store.proofs(int(row["id"])), certifier))


def _standing(row: Mapping[Any, Any], stored: list[tuple[bytes, bytes | None, bytes | None]], certifier: Certifier) -> tuple[Standing, str]:
    primal, dual, target = row["primal"], row["dual"], float(row["target"])
    if primal is None or primal != primal or dual is None:
        return Standing.EMPTY, ""
    data, parameters = json.loads(row["data"]), json.loads(row["parameters"])
    if data.get("name") == IN_MEMORY:
        return Standing.UNPROVABLE, "its problem was in the memory of whoever compared solvers on it"
    seed = None if row["seed"] is None or row["seed"] != row["seed"] else int(row["seed"])
    instance = Instance(row["problem"], row["problem_label"], data, parameters, seed, fingerprint=row["data_fingerprint"])
    try:
        proofs = [read_proof(*arrays) for arrays in stored]
        found = certifier.certify(instance, proofs, target)
    except (UncertifiableError, InputError, ValueError) as error:
        return Standing.UNPROVABLE, str(error)
    for verdict in found.verdicts:
        if isinstance(verdict, str):
            return Standing.FALSE, f"its points prove nothing: {verdict}"
    proven = reduce(Certificate.tightened, [each for each in found.verdicts if isinstance(each, Certificate)], found.baseline)
    if found.contradiction is not None:
        return Standing.FALSE, found.contradiction
    allowed = slack(proven, found.scale)
    if primal >= proven.primal - allowed and dual <= proven.dual + allowed:
        if row["status"] != Status.VERIFIED or meets(proven, target, found.scale):
            return Standing.PROVEN, ""
        return Standing.FALSE, f"is verified at {target:g}, but its points prove a relative gap of {format_gap(proven.relative_gap)}"
    if not proofs:
        return Standing.UNPROVABLE, "it keeps no points"
    said = f"[{dual:.9g}, {primal:.9g}]"
    return Standing.FALSE, f"says {said}, but its points prove only [{proven.dual:.9g}, {proven.primal:.9g}]"
