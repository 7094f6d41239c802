"""The problem that most tests of the driver run on."""

import pytest
from yielding import hinge

from bench_mtl.problems.l1inf_hinge import L1InfHinge


@pytest.fixture(scope="session")
def problem() -> L1InfHinge:
    return hinge()
