"""What tables and words say that no oracle derives: baselines, sentences, kinds, machines."""

from __future__ import annotations

import pandas as pd
import pytest
from audited import TARGETS

from bench_mtl.core.errors import InputError
from bench_mtl.report.registry import TABLES, Source
from bench_mtl.report.tables.groups import FASTEST_SPECIALISED, groups
from bench_mtl.report.words import failures
from bench_mtl.results.enclosures import objectives
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN, kinds, status_counts

# relative gaps 0.5, 5e-3, 5e-7 of the primal 1
PG = {
    "solver": "pg",
    "samples": [(0.1, 0, 1.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 1 - 5e-3, None), (0.4, 99, 100.0, 1.0, 1 - 5e-7, None)],
}
SCS = {
    "solver": "scs",
    "family": "conic",
    "samples": [(3.0, 40, 0.0, 1.0, 1 - 5e-3, 1e-3), (2.0, 50, 0.0, 1.0, 1 - 5e-5, 1e-5), (6.0, 90, 0.0, 1.0, 1 - 5e-7, 1e-7)],
}
#: It gets to the loosest target alone, and is stopped.
SLOW = {**SCS, "status": "timeout", "samples": SCS["samples"][:1], "times": {"solve": 60.0}}


def run(solver, seconds, seed=0, **more):
    """A run that proves everything after so many seconds; scs and ecos are generic."""
    generic = solver in ("scs", "ecos")
    return {
        "solver": solver, "family": "conic" if generic else solver, "seed": seed,
        "samples": [(seconds, 9, 9.0, 1.0, 1.0, 1e-7 if generic else None)], **more,
    }  # fmt: skip


@pytest.fixture
def made(make_store, frames):
    """What tables are made from, of hand-made runs."""

    def of(*runs, baseline=None, folder="results"):
        read, samples = frames(make_store(*runs, folder=folder))
        return Source(read, samples, pd.DataFrame(), TARGETS, baseline, {})

    return of


def table(name, source):
    return TABLES[name].build(source)


def test_against_a_baseline(made):
    runs = [run("pg", 1.0), run("ag", 2.0), run("scs", 4.0), run("ecos", 8.0)]
    runs = [each | {"seed": seed} for each in runs for seed in (0, 1)]
    source = made(*runs, baseline="ecos", folder="ecos")
    row = table("winners", source).iloc[0]
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", "ecos", pytest.approx(8.0), False)
    assert table("speed_ups", source)["ratio"][0] == pytest.approx(8.0)
    against = table("comparisons", source)
    assert list(against["solver"].unique()) == ["pg", "ag", "scs", FASTEST_SPECIALISED]
    assert set(against["reference"]) == {"ecos"}
    source = made(*runs, baseline="pg", folder="pg")
    row = table("winners", source).iloc[0]
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", "ag", pytest.approx(2.0), True)
    assert table("speed_ups", source)["ratio"][0] == pytest.approx(0.5)
    failed = table("winners", made(PG, SLOW, baseline="scs", folder="failed"))["failed"]
    assert failed.iloc[-1] == "no run of the baseline scs reaches it (scs: timeout after 60.0 s)"
    with pytest.raises(InputError, match="unknown baseline 'sc': did you mean 'scs'"):
        table("comparisons", made(*runs, baseline="sc", folder="unknown"))


def test_failures_say_on_how_many_seeds_a_solver_was_run(made):
    some = [*(PG | {"seed": seed} for seed in range(3)), SCS | {"seed": 0}, SLOW | {"seed": 1}, SCS | {"solver": "ecos", "seed": 0}]
    ((_, sentence),) = failures(table("winners", made(*some)))
    assert "scs: run on 2 of 3 seeds, in 1 of 2 runs, else timeout after 60.0 s" in sentence
    assert "ecos: run on 1 of 3 seeds, in 1 of 1 runs" in sentence


def test_kinds_do_not_need_a_point(make_store, frames):
    slow = {"solver": "ecos", "family": "conic_b", "status": "timeout", "times": {"build": 0.1, "solve": 60.0}}
    lost = {"solver": "celer", "family": "peer_celer", "status": "crashed"}
    known = kinds(*frames(make_store(PG, slow, lost, {"solver": "mystery", "status": "crashed"})))
    assert known == {"pg": SPECIALISED, "conic_b": GENERIC, "peer_celer": PEER, "mystery": UNKNOWN}
    assert (status_counts(["timeout", "verified", "timeout"]), status_counts(["skipped"])) == ("verified 1/3, timeout 2/3", "skipped")


@pytest.mark.parametrize(("start", "primal", "dual"), [(1.0, 1.0, 1.0 + 1e-10), (60.0, 1e-14, 2e-14)])
def test_rounding_is_no_contradiction(make_store, frames, start, primal, dual):
    first = {"solver": "a", "samples": [(0.1, 0, 1.0, start, 0.0, None), (0.2, 1, 2.0, primal, 0.0, None)]}
    second = {"solver": "b", "samples": [(0.1, 0, 1.0, start, 0.0, None), (0.2, 1, 2.0, start, dual, None)]}
    assert objectives(*frames(make_store(first, second)))["agrees"].all()


def test_a_group_is_of_one_machine():
    data = {"problem": "hinge", "data": '{"name": "scene"}', "machine": ["machine 1", "machine 1", "machine 2"]}
    shown = groups(pd.DataFrame({"problem_label": [*"abc"], **data}))
    assert shown["hinge on scene, machine 1"] == ("a", "b")
    assert shown["hinge on scene, machine 2"] == ("c",)
