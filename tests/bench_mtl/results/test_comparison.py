"""Two results side by side: what is paired, what is refused, and when a verdict is reached."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.report.comparison_words import to_words, verdict
from bench_mtl.results import FILE_NAME
from bench_mtl.results.comparison import FEWEST_PAIRS, FLOOR_SECONDS, Verdict, compare, verdict_of
from bench_mtl.stats import Ratio, geometric_mean_ratio, joint_confidence

ROOT = Path(__file__).resolve().parents[3]


def noisy(factor=1.0, *, noise=0.05, pairs=20, seed=0, **run):
    """So many seeds, solved in about `factor` seconds."""
    rng = np.random.default_rng(seed)
    return [{"seed": i, "seconds": factor * float(np.exp(noise * rng.standard_normal())), **run} for i in range(pairs)]


@pytest.fixture
def both(make_results):
    """Compares two lists of runs."""

    def compared(old, new, **options):
        return compare(make_results("a", old), make_results("b", new), **options)

    return compared


def verdicts(comparison):
    return [cell.verdict for cell in comparison.cells]


def listed(folder):
    """How many runs a results folder lists."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as file:
        (rows,) = file.execute("SELECT count(*) FROM run WHERE superseded = 0 AND listed = 1").fetchone()
    assert rows >= 36
    return rows


def test_a_result_and_itself_are_the_same():
    folder = ROOT / "reports" / "quick"
    rows = listed(folder)
    found = compare(folder, folder)
    assert found.identical
    assert not found.has_regressed
    assert (found.pairs, found.runs, found.unpaired, found.changes) == (rows, (rows, rows), ((), ()), ())
    assert (found.machine, found.information, found.limits, found.other_data, found.contradictory) == ((), (), (), (), ())
    assert verdict(found).startswith(f"**Nothing changed**: {rows} pairs ended alike")


def test_seeds_that_are_missing_are_paired_too():
    """Real data have none."""
    folder = ROOT / "reports" / "scene"
    found = compare(folder, folder)
    assert (found.pairs, found.identical) == (listed(folder), True)


def test_a_slowdown_of_30_percent_under_noise_of_5_is_significant(both):
    found = both(noisy(seed=1), noisy(1.3, seed=2))
    assert verdicts(found) == [Verdict.SLOWER] * 3
    assert found.has_regressed
    assert found.cells[0].ratio.value == pytest.approx(1.3, rel=0.05)
    assert "**Regression**: 3 of 3 ratios tested say slower by more than 10 %." in verdict(found)


def test_the_other_way_round_it_is_a_speedup_by_the_reciprocal(make_results):
    a, b = make_results("a", noisy(seed=1)), make_results("b", noisy(1.3, seed=2))
    there, back = compare(a, b), compare(b, a)
    assert verdicts(back) == [Verdict.FASTER] * 3
    assert not back.has_regressed
    for one, other in zip(there.cells, back.cells, strict=True):
        assert one.ratio.value * other.ratio.value == pytest.approx(1.0)
        assert one.ratio.low * other.ratio.high == pytest.approx(1.0)


@pytest.mark.parametrize("pairs", [5, 20])
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3])
def test_noise_alone_is_no_regression(pairs, noise):
    """Over many seeds, each with 30 ratios that hold together."""
    confidence = joint_confidence(0.95, 30)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for _ in range(10):
            ratio = geometric_mean_ratio(*np.exp(noise * rng.standard_normal((2, pairs))), confidence=confidence)
            assert verdict_of(ratio, 0.1) in (Verdict.SAME, Verdict.UNCLEAR)


@pytest.mark.parametrize("seed", range(20))
def test_a_slowdown_is_found_among_many_ratios(seed):
    rng = np.random.default_rng(seed)
    old, new = np.exp(0.05 * rng.standard_normal((2, 20)))
    assert verdict_of(geometric_mean_ratio(old, 1.3 * new, confidence=joint_confidence(0.95, 30)), 0.1) == Verdict.SLOWER


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.11, 1.5, Verdict.SLOWER),
        (1.05, 1.5, Verdict.UNCLEAR),
        (0.95, 1.09, Verdict.SAME),
        (1.1, 1.1, Verdict.SAME),
        (0.8, 1.05, Verdict.UNCLEAR),
        (0.5, 0.9, Verdict.FASTER),
        (0.5, 2.0, Verdict.UNCLEAR),
    ],
)
def test_verdicts_follow_the_interval(low, high, expected):
    assert verdict_of(Ratio(1.0, low, high, FEWEST_PAIRS), 0.1) == expected
    assert verdict_of(Ratio(1.0, low, high, FEWEST_PAIRS - 1), 0.1) == Verdict.TOO_FEW


def test_the_threshold_is_what_is_accepted(both):
    found = both(noisy(seed=1), noisy(1.3, seed=2), threshold=0.5)
    assert verdicts(found) == [Verdict.SAME] * 3
    assert not found.has_regressed
    assert "slower by more than 50 %" in verdict(found)


def test_few_pairs_are_told_but_are_no_regression(both):
    found = both(noisy(pairs=4, noise=0.0), noisy(3.0, pairs=4, noise=0.0))
    assert verdicts(found) == [Verdict.TOO_FEW] * 3
    assert not found.has_regressed
    assert found.cells[0].ratio.value == pytest.approx(3.0)
    assert "no run lost `verified`, and no ratio could be tested" in verdict(found)
    assert "Too few pairs to tell: 3 ratios, 3 of them above 1.1." in verdict(found)


def test_intervals_are_wider_where_more_are_judged(make_results):
    old, new = ([run for place in range(10) for run in noisy(seed=seed, problem=f"p{place}")] for seed in (1, 2))
    a, b = make_results("a", old), make_results("b", new)
    alone, among = compare(a, make_results("first of b", new[:20])), compare(a, b)
    assert (len(alone.cells), len(among.cells)) == (3, 30)
    assert among.cells[0].ratio.low < alone.cells[0].ratio.low
    assert among.cells[0].ratio.high > alone.cells[0].ratio.high


def test_times_of_zero_and_of_less_than_a_clock_tells_count_as_the_floor(both):
    found = both(noisy(0.0), noisy(FLOOR_SECONDS / 2))
    assert [(cell.ratio.value, cell.verdict) for cell in found.cells] == [(1.0, Verdict.SAME)] * 3
    assert not found.identical
    assert f"Times below {FLOOR_SECONDS:g} s count as that." in to_words(found)


def test_a_lost_verified_is_a_regression_and_enters_no_ratio(both):
    new = noisy()
    new[3] = {"seed": 3, "seconds": 1.0, "gap": 5e-5, "status": "timeout"}
    found = both(noisy(), new)
    assert found.lost == ("hinge seed 3 | pg",)
    assert found.has_regressed
    assert [(cell.lost, cell.gained, cell.ratio.pairs) for cell in found.cells] == [(0, 0, 20), (0, 0, 20), (1, 0, 19)]
    assert found.groups[0].verified == (20, 19)
    text = to_words(found)
    assert "- verified -> timeout: 1 (hinge seed 3 | pg)" in text
    assert "same, 19 pairs, lost 1" in text
    assert "**Regression**: 1 run lost `verified`." in text


def test_a_gained_verified_is_told(both):
    old = noisy()
    old[0] = {"seed": 0}
    found = both(old, noisy())
    assert [(change.old, change.new, change.cases) for change in found.changes] == [("timeout", "verified", ("hinge seed 0 | pg",))]
    assert [cell.gained for cell in found.cells] == [1, 1, 1]
    assert not found.has_regressed


def test_a_gap_that_neither_reaches_has_no_ratio(both):
    runs = noisy(gap=5e-5, status="timeout")
    found = both(runs, runs)
    assert [cell.ratio is None for cell in found.cells] == [False, False, True]
    assert found.cells[2].verdict is None


def test_cases_are_paired_by_what_they_are_not_by_versions_labels_or_the_order_of_keys(both):
    one = {"data": {"name": "x", "rows": 3}, "options": {"a": 1, "b": 2}, "seconds": 1.0}
    other = {**one, "data": {"rows": 3, "name": "x"}, "options": {"b": 2, "a": 1}, "label": "renamed", "version": "2.0", "fingerprint": ""}
    found = both([one], [other])
    assert (found.pairs, found.groups[0].solver, found.other_data) == (1, "renamed", ())


@pytest.mark.parametrize(
    "change",
    [
        {"family": "else"},
        {"data": {"name": "else"}},
        {"parameters": {"radius": 2.0}},
        {"seed": 7},
        {"seed": None},
        {"solver": "else"},
        {"options": {"a": 1}},
        {"repetition": 1},
    ],
)
def test_other_cases_are_not_paired(both, change):
    same, other = {"seconds": 1.0, "problem": "kept"}, {"seconds": 1.0}
    found = both([same, other], [same, other | change])
    assert found.pairs == 1
    assert [len(cases) for cases in found.unpaired] == [1, 1]
    assert "only in A: 1 (hinge seed 0 | pg)" in to_words(found)


def test_nothing_in_common_is_refused(both):
    with pytest.raises(InputError, match="no case in common"):
        both([{"seconds": 1.0}], [{"seconds": 1.0, "seed": 1}])


def test_only_gaps_of_both_are_compared(make_results):
    a, b = make_results("a", noisy(), targets=(1e-2, 1e-6)), make_results("b", noisy(), targets=(1e-4, 1e-6))
    assert compare(a, b).targets == (1e-6,)
    assert compare(make_results("c", noisy(), targets=(1e-6,)), b).targets == (1e-6,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environment": {"processor": "slow one"}}, r"processor \(quick one in A, slow one in B\)"),
        ({"environment": {"logical_cores": 8}}, r"logical cores \(4 in A, 8 in B\)"),
        ({"environment": {"memory_gib": 32.0}}, r"memory \(GiB\) \(16.0 in A, 32.0 in B\)"),
        ({"environment": {"system": "Darwin arm64"}}, r"system \(Linux x86_64 in A, Darwin arm64 in B\)"),
        ({"threads": 2}, r"threads \(1 in A, 2 in B\)"),
    ],
)
def test_other_machines_and_threads_are_refused_unless_told_to(make_results, change, words):
    a, b = make_results("a", noisy(seed=1)), make_results("b", noisy(seed=2, **change))
    with pytest.raises(InputError, match=f"do not compare, for they differ in {words}: .* --anyway"):
        compare(a, b)
    found = compare(a, b, anyway=True)
    assert len(found.machine) == 1
    assert "different conditions" in verdict(found)
    assert "- machine: " in to_words(found)


def test_isolation_and_slots_count_where_both_know_them(make_results):
    inline = {"isolation": "inline", "slots": 1}
    a, b = make_results("a", noisy(environment=inline)), make_results("b", noisy(environment={**inline, "isolation": "process"}))
    with pytest.raises(InputError, match=r"isolation \(inline in A, process in B\)"):
        compare(a, b)
    found = compare(make_results("old", noisy()), b)
    assert [(entry.what, entry.old, entry.new) for entry in found.information] == [
        ("isolation", "not recorded", "process"),
        ("slots", "not recorded", "1"),
    ]


def test_one_pair_of_another_machine_is_enough(make_results):
    """Both folders know both machines: what counts is where the runs of a pair were made."""
    slow = {"processor": "slow one"}
    old, new = noisy(pairs=2), noisy(pairs=2)
    old[0]["environment"] = new[1]["environment"] = slow
    with pytest.raises(InputError, match="processor"):
        compare(make_results("a", old), make_results("b", new))
    new = [new[0] | {"environment": slow}, new[1] | {"environment": {}}]
    assert not compare(make_results("c", old), make_results("d", new)).machine


def test_a_crashed_run_has_no_times_that_a_machine_could_matter_for(both):
    old, new = noisy(), noisy()
    old[0] = new[0] = {"seed": 0, "status": "crashed"}
    new[0] = {**new[0], "environment": {"processor": "the one that waited"}}
    assert not both(old, new).machine


def test_a_kernel_that_keeps_a_little_more_memory_is_the_same_machine(both):
    assert not both(noisy(), noisy(environment={"memory_gib": 15.9})).machine


def test_versions_and_limits_are_told(both):
    new = noisy(environment={"bench_mtl": "0.2.0", "packages": {"numpy": "2.1", "ecos": "2.0"}}, version="1.1", limit=30.0)
    found = both(noisy(), new)
    assert "- environment: bench_mtl 0.1.0 -> 0.2.0, ecos none -> 2.0, numpy 2.0 -> 2.1, solver pg 1.0 -> 1.1" in to_words(found)
    assert "- limits: seconds 60.0 -> 30.0" in to_words(found)
    assert not found.has_regressed


def test_other_data_of_the_same_name_are_told(both):
    old, new = noisy(), noisy()
    new[4]["fingerprint"] = "g"
    found = both(old, new)
    assert found.other_data == ("hinge seed 4 | pg",)
    assert "compared although their data differ (their fingerprints do): 1 (hinge seed 4 | pg)" in to_words(found)


def test_proofs_that_contradict_each_other_are_left_out_and_are_no_success(both):
    """The whole instance goes: the solver that got nowhere on it solved the other problem too."""
    old = noisy() + noisy(solver="scs")
    new = noisy() + noisy(solver="scs")
    new[2]["optimum"] = 1.01  # its lower bound is above what A has reached
    del new[22]["seconds"]
    found = both(old, new)
    assert found.contradictory == ("hinge seed 2 | pg", "hinge seed 2 | scs")
    assert (found.pairs, found.lost) == (38, ())
    assert found.has_regressed
    assert "In 2 cases A and B prove bounds that cannot both be true" in verdict(found)
    assert "left out, because what A and B prove of the optimum contradicts the other: 2 (" in to_words(found)


@pytest.mark.parametrize("optimum", [1.0 + 1e-10, 1.0 - 1e-10])
def test_rounding_is_no_contradiction(both, optimum):
    found = both(noisy(gap=0.0), noisy(gap=0.0, optimum=optimum))
    assert found.contradictory == ()


def test_results_of_other_problems_are_refused(both):
    with pytest.raises(InputError, match=r"did not solve the same problems: .* in each of the 20 cases"):
        both(noisy(), noisy(optimum=2.0))


def test_a_result_that_contradicts_itself_is_no_contradiction_with_itself(make_results):
    a, b = make_results("a", noisy() + noisy(solver="liar", optimum=1.5)), make_results("b", noisy())
    assert compare(a, a).identical
    assert compare(a, b).contradictory == ()
    with pytest.raises(InputError, match="did not solve the same problems"):
        compare(b, a)  # a bound that is false now


def test_of_a_case_with_two_rows_the_later_counts(make_results):
    """As a store holds them while a suite's limits have changed and nobody has planned it again."""
    a = make_results("a", [{"seconds": 1.0, "limit": 10.0}, {"seconds": 2.0}])
    found = compare(a, make_results("b", [{"seconds": 4.0}]))
    assert found.pairs == 1
    assert found.cells[0].ratio.value == pytest.approx(2.0)


def test_opening_changes_no_file(make_results):
    a, b = make_results("a", noisy()), make_results("b", noisy())
    before = {path: path.read_bytes() for path in (a / FILE_NAME, b / FILE_NAME)}
    compare(a, b)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("threshold", [-0.1, float("nan")])
def test_a_threshold_is_at_least_zero(make_results, threshold):
    a = make_results("a", noisy())
    with pytest.raises(InputError, match="threshold must be"):
        compare(a, a, threshold=threshold)


def test_folders_without_results_are_refused(make_results, tmp_path):
    a = make_results("a", noisy())
    with pytest.raises(InputError, match="no results in"):
        compare(a, tmp_path / "nowhere")
    with pytest.raises(InputError, match="no finished run"):
        compare(make_results("empty", []), a)


def test_the_table_names_every_group_once(both):
    runs = [run for solver in ("pg", "scs") for run in noisy(solver=solver, problem="a | b")]
    text = to_words(both(runs, runs))
    rows = [line for line in text.splitlines() if line.startswith("| a \\| b")]
    assert len(rows) == 2
    assert "20 -> 20" in rows[0]
    assert rows[0].count("1.00 (1.00 to 1.00) same") == 3
    assert "The 6 intervals in brackets hold together with 95 % (each with 99.1667 %)." in text


def test_long_lists_of_cases_are_cut(both):
    found = both(noisy(pairs=50), [{"seed": i} for i in range(50)])
    text = to_words(found)
    assert "- verified -> timeout: 50 (hinge seed 0 | pg; " in text
    assert "; and 30 more)" in text
