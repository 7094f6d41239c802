"""Consensus ADMM: the examples in blocks, each with weights of its own."""

from solvers.consensus_admm.solver import ConsensusADMM

__all__ = ["ConsensusADMM"]
