"""Statistics of times: means, profiles, intervals, tests and fits. Whatever SciPy has is SciPy's."""

from __future__ import annotations

from bench_mtl.stats.arrays import student_half_width
from bench_mtl.stats.fits import PowerLaw, power_law
from bench_mtl.stats.intervals import Interval, ratio_interval, shifted_mean_interval
from bench_mtl.stats.means import Failures, replace_failures, shifted_geometric_mean, suitable_shift
from bench_mtl.stats.paired import SIGN, WILCOXON, Paired, holm, paired_test, sign_test
from bench_mtl.stats.profiles import Profile, data_profile, pairwise_profile, performance_profile
from bench_mtl.stats.ratios import RESAMPLES, Ratio, geometric_mean_ratio, joint_confidence

__all__ = [
    "RESAMPLES",
    "SIGN",
    "WILCOXON",
    "Failures",
    "Interval",
    "Paired",
    "PowerLaw",
    "Profile",
    "Ratio",
    "data_profile",
    "geometric_mean_ratio",
    "holm",
    "joint_confidence",
    "paired_test",
    "pairwise_profile",
    "performance_profile",
    "power_law",
    "ratio_interval",
    "replace_failures",
    "shifted_geometric_mean",
    "shifted_mean_interval",
    "sign_test",
    "student_half_width",
    "suitable_shift",
]
