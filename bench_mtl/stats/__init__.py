"""Statistics of times: means, profiles, intervals, tests and fits. Whatever SciPy has is SciPy's.

All raise InputError, by the name of the argument, for input that is not what they take.
"""

from __future__ import annotations

from bench_mtl.stats.arrays import student_half_width
from bench_mtl.stats.fits import PowerLaw, power_law
from bench_mtl.stats.intervals import RESAMPLES, Interval, geometric_mean_ratio, joint_confidence, ratio_interval, shifted_mean_interval
from bench_mtl.stats.means import shifted_geometric_mean, suitable_shift
from bench_mtl.stats.paired import SIGN, WILCOXON, Paired, holm, paired_test, sign_test
from bench_mtl.stats.profiles import Profile, performance_profile

__all__ = [
    "RESAMPLES", "SIGN", "WILCOXON", "Interval", "Paired", "PowerLaw", "Profile", "geometric_mean_ratio", "holm",
    "joint_confidence", "paired_test", "performance_profile", "power_law", "ratio_interval", "shifted_geometric_mean",
    "shifted_mean_interval", "sign_test", "student_half_width", "suitable_shift",
]  # fmt: skip
