"""Consensus ADMM: the examples in blocks, each with weights of its own."""

from bench_mtl.solvers.consensus_admm.solver import ConsensusADMM

__all__ = ["ConsensusADMM"]
