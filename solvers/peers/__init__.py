"""Solvers of other libraries that minimise one of our objectives, a file a library: solvers of the kind `peer`."""

from bench_mtl.solvers.peers.celer import Celer
from bench_mtl.solvers.peers.cyanure import Cyanure
from bench_mtl.solvers.peers.skglm import Skglm
from bench_mtl.solvers.peers.sklearn import Sklearn
from bench_mtl.solvers.peers.spams import Spams

__all__ = ["Celer", "Cyanure", "Skglm", "Sklearn", "Spams"]
