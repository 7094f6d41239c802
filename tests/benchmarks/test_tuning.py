"""The settings that are tried on training instances: as many for every solver, on data of no suite, ranked by the rule."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from bench_mtl import Status, load_registry
from bench_mtl.engine.suite import Case, expand
from bench_mtl.engine.suite_file import read_suite, shipped_suites
from benchmarks.tuning import settings

SUITE = Path(__file__).resolve().parents[2] / "benchmarks" / "tuning.toml"


def cases(suite: str) -> list[Case]:
    return expand(read_suite(suite), load_registry())


def test_every_solver_has_eight_settings_on_data_that_no_suite_uses() -> None:
    training = cases(str(SUITE))
    counts = Counter((case.instance.label, case.instance.seed, case.options.get("backend", case.solver)) for case in training)
    assert set(counts.values()) == {8}
    used = {(case.instance.data.get("name"), case.instance.seed) for suite in shipped_suites() for case in cases(suite)}
    assert not used & {(case.instance.data.get("name"), case.instance.seed) for case in training}


def test_a_setting_that_does_not_get_there_counts_with_the_limit() -> None:
    labels, seconds, ids = ["scs", "scs scale=1.0"] * 2, [1.0, 0.5, 4.0, None], [3, 1, 4, 2]  # the defaults ended last
    runs = pd.DataFrame({"id": ids, "position": range(4), "problem": "p", "solver": "conic", "solver_label": labels})
    runs = runs.assign(
        problem_label="p", instance_key="i", options='{"backend": "SCS"}', limit_seconds=32.0, status=str(Status.TIMEOUT), target=1e-4
    )
    samples = pd.DataFrame({"run_id": ids, "seconds": seconds, "relative_gap": [1e-5, 1e-5, 1e-5, 1e-2]})
    samples = samples.assign(primal=1.0, dual=0.0, passes=0.0, iteration=1, asked_tolerance=1e-4)
    best, worst = settings(SimpleNamespace(runs=runs, samples=samples, targets=(1e-4,))).to_dict("records")  # type: ignore[arg-type]
    assert (best["solver_label"], best["proven"], best["seconds"]) == ("scs", 2, pytest.approx(2.0))
    assert (worst["proven"], worst["of"], worst["over defaults"]) == (1, 2, pytest.approx(2.0))
