"""Consensus ADMM for losses of scores of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from bench_mtl.core.blocks import Blocks, Here
from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.dask_blocks import OnDask, Place, Workers
from bench_mtl.core.dask_cluster import scheduler_address
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import SteppingSolver
from bench_mtl.solvers.admm.blocks import Piece, divided, pieces
from bench_mtl.solvers.admm.group import Call, ConsensusStepper, Rule, group_objection

BACKENDS = ("threads", "dask")


@dataclass(frozen=True)
class ConsensusADMM(SteppingSolver):
    """ADMM with the examples in Q blocks, each with weights W_q of its own in the loss f_q of its share of them, f = sum_q f_q(H_q W)::

        W_q <- argmin f_q(H_q W) + lambda/2 ||W - Z + U_q||^2   subject to  W >= 0,      all blocks at once
        Z   <- prox of nu / (Q lambda) sum_j ||Z_j||, Z >= 0, at the mean of W^_q + U_q,    W^_q = relaxation W_q + (1 - relaxation) Z
        U_q <- U_q + W^_q - Z

    The steps of a block are those of `ADMM`, which this is with one block; for the hinge every block has scores S_q of its own. Blocks
    have equally many examples of every class, as near as can be. The backend and the number of workers change no bit of the result.

    Parameters
    ----------
    blocks : Q, at least 1 and at most the number of examples
    workers : number of blocks whose steps are taken at the same time, on this machine
    backend : "threads" of this process, or "dask": workers of a Dask cluster, which get their blocks once. When one of these dies, others
        get its blocks, take its last step again, and the result is the same
    cluster : "local" for Dask workers on this machine, or the address of a scheduler, of which all workers serve. Only with "dask"
    relaxation, balance : as in `ADMM`
    penalty : lambda to begin with; by default a Q-th of that of `ADMM`

    Raises
    ------
    InputError : a `cluster` that is no address; more blocks than examples; when a run begins, Dask is not installed, or no scheduler
        answers.

    References
    ----------
    Boyd, Parikh, Chu, Peleato, Eckstein, Foundations and Trends in Machine Learning 3(1), 2011, section 7.1; Paisitkriangkrai, Shen, van
    den Hengel, CVPR 2012, appendix, section 2.2 (equations 27 and 34 with the corrections of docs/adr/0025).
    """

    blocks: int = 2
    workers: int = 1
    backend: str = "threads"
    cluster: str = "local"
    relaxation: float | None = None
    penalty: float | None = None
    balance: bool = True

    name: ClassVar[str] = "consensus_admm"
    takes = (GroupForm,)
    placement: ClassVar[frozenset[str]] = frozenset({"workers", "backend", "cluster"})

    def __post_init__(self) -> None:
        whole_number("blocks", self.blocks, minimum=1)
        whole_number("workers", self.workers, minimum=1)
        one_of("backend", self.backend, BACKENDS)
        if self.cluster != "local":
            scheduler_address("cluster", self.cluster)
        if self.cluster != "local" and self.backend != "dask":
            raise InputError(f"cluster {self.cluster} needs backend dask, not {self.backend}")
        Rule.of(self)

    def objection(self, problem: Problem) -> str | None:
        examples = problem.form(GroupForm).fit.design.sizes[0]
        if self.blocks > examples:
            raise InputError(f"blocks: {self.label} cannot make {self.blocks} blocks of the {examples} examples of {problem.name}")
        return group_objection(self, problem, self.blocks)

    def stepper(self, problem: Problem) -> ConsensusStepper:
        form = problem.form(GroupForm)
        division = divided(form.fit.classes, self.blocks)
        return ConsensusStepper(form, self, division, lambda: self._blocks(pieces(form.fit, division)))

    @contextmanager
    def _blocks(self, parts: Sequence[Piece]) -> Iterator[Call]:
        """Yield a call of all blocks, where they are."""
        count = min(self.workers, len(parts))
        if self.backend == "threads":
            with one_blas_thread():  # once: threads that set it at every step take half as long again with OpenBLAS
                yield _call_of(Here(list(Here(parts, count).map(Piece.block)), count))
            return
        workers = Workers(Place(self.cluster, count), "backend dask")
        try:
            examples = tuple(len(part.fit.classes) for part in parts)
            yield _call_of(OnDask(workers, examples, ((),) * len(parts)).holding(parts, Piece.block))
        finally:
            workers.close()


def _call_of(blocks: Blocks) -> Call:
    return lambda method, arguments: blocks.map(_called, (method,), arguments)


def _called(block: Any, method: str, *arguments: Any) -> Any:
    return getattr(block, method)(*arguments)
