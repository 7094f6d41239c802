"""What a row may say: the samples of a run held against what another process proves, and its clock against the parent's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from bench_mtl.core.types import EPSILON, UNEXPLAINED_SHARE, Certificate, Proof, Record, Sample, Status, Tolerance
from bench_mtl.engine.proofs import format_gap, proven_gap
from bench_mtl.runner.gathered import Gathered, Kept, Mark
from bench_mtl.runner.messages import Certified

#: What the process of a run may use of processors beside what its clock counts, before anybody calls its clock false: seconds, a share of
#: the whole run, and so many times what its certificates take.
_CPU_SECONDS, _CPU_SHARE, _CPU_CERTIFICATES = 0.25, 0.05, 5.0
#: Certificates beside those of the samples: the last ones, with compensated products.
_EXTRA_CERTIFICATES = 8.0
#: What testing the claim of a one-shot solver costs, in certificates.
_CERTIFICATES_OF_A_CLAIM = 60.0

#: Sums of seconds agree up to this.
_ROUND_SECONDS = 1e-6


def judged(gathered: Gathered, record: Record, target: float, found: Certified, threads: int) -> Record:
    """Return what a run may say, given what another process finds of its proofs; no samples where it has shown something false."""
    samples, proofs = gathered.samples, gathered.proofs
    if found.contradiction is not None:
        return refused(record, found.contradiction)
    if (lie := _lie(gathered, found)) is not None:
        return refused(record, lie, Status.WRONG)
    is_one_shot = any(sample.asked is not None for sample in samples)
    if any(not 0.0 <= sample.seconds <= sample.counted for sample in samples) or (not is_one_shot and _is_out_of_order(record, samples)):
        return refused(record, "its clock is false: samples say other times than it has counted")
    if (lie := false_clock(gathered.clock, found.seconds, threads, is_one_shot=is_one_shot)) is not None:
        return refused(record, lie)
    kept = proven_samples(samples, proofs, found.verdicts)
    if record.status is not Status.VERIFIED:
        return replace(record, samples=kept)
    best = _best(found.verdicts)
    if best is None or not meets(best, target, found.scale):
        proven = "nothing" if best is None else f"a relative gap of {format_gap(best.relative_gap)}"
        return refused(record, f"says that a relative gap of {target:g} is proven, but its points prove {proven}", Status.WRONG)
    ending = "" if samples[-1].asked is None else f" at tolerance {samples[-1].asked:g}"
    gap = min(sample.certificate.relative_gap for sample in kept)
    return replace(record, samples=kept, reason=f"{proven_gap(gap, target, is_met=True)}{ending}")


def false_clock(mark: Mark | None, certificate: float, threads: int, *, is_one_shot: bool) -> str | None:
    """Say that the clock of a run leaves out what its watcher saw, if it leaves out far more than certificates take, each these seconds.

    That is processor time, of which each thread uses some and which a busy machine does not stretch, as far as time has passed for it. What
    is left out only grows.
    """
    if mark is None:
        return None
    each = _CERTIFICATES_OF_A_CLAIM if is_one_shot else 1.0
    certificates = certificate * (each * mark.samples + _EXTRA_CERTIFICATES)
    used = min(mark.cpu - threads * mark.counted, mark.wall - mark.counted)
    if used <= _CPU_SECONDS + _CPU_SHARE * mark.wall + _CPU_CERTIFICATES * certificates:
        return None
    seen = f"{mark.wall:.3g} s by the clock of its watcher, {mark.cpu:.3g} s of processor time"
    return f"its clock is false: it had counted {mark.counted:.3g} s after {seen}, and its certificates take {certificates:.2g} s"


def refused(record: Record, reason: str, status: Status = Status.ERROR) -> Record:
    """Return the record of a run of which nothing counts."""
    return replace(record, status=status, reason=reason, samples=(), places=())


def proven_samples(samples: Sequence[Sample], proofs: Sequence[Kept], verdicts: Sequence[Certificate | str]) -> tuple[Sample, ...]:
    """Cut back every sample to what is proven at the next proof, or by the last one; drop those of which nothing is.

    Between two proofs, which are at most a decade apart, the enclosure is thus between two proven ones.
    """
    proven = [(kept.place, verdict) for kept, verdict in zip(proofs, verdicts, strict=True) if isinstance(verdict, Certificate)]
    if samples and samples[-1].asked is not None:
        own = dict(proven)
        return tuple(_cut(sample, own[place]) for place, sample in enumerate(samples) if place in own)
    best = list(accumulate((verdict for _, verdict in proven), Certificate.tightened))
    found, following = [], 0
    for place, sample in enumerate(samples):
        while following < len(proven) - 1 and proven[following][0] < place:
            following += 1
        if best:
            found.append(_cut(sample, best[following]))
    return tuple(found)


def _cut(sample: Sample, proven: Certificate) -> Sample:
    stated = sample.certificate
    primal, dual = max(stated.primal, proven.primal), min(stated.dual, proven.dual)
    return replace(sample, certificate=Certificate(primal, dual, stated.infeasibility, proven.rounding))


def _lie(gathered: Gathered, found: Certified) -> str | None:
    """Evidence that a sample says more than its proof proves."""
    if (sample := gathered.unproven) is not None:
        gap = format_gap(sample.certificate.relative_gap)
        return f"shows no proof of the relative gap of {gap} that it says it had after {sample.seconds:.3g} s"
    for kept, verdict in zip(gathered.proofs, found.verdicts, strict=True):
        sample = gathered.samples[kept.place]
        stated = sample.certificate
        said = f"says that it had proven [{stated.dual:.9g}, {stated.primal:.9g}] after {sample.seconds:.3g} s"
        if isinstance(verdict, str):
            return f"{said}, but its points prove nothing ({verdict})"
        allowed = slack(verdict, found.scale)
        if stated.primal < verdict.primal - allowed or stated.dual > verdict.dual + allowed:
            return f"{said}, but its points prove only [{verdict.dual:.9g}, {verdict.primal:.9g}]"
    return None


def slack(proven: Certificate, scale: float) -> float:
    """Return by how much whoever computes a certificate again may come to other bounds."""
    return proven.rounding + UNEXPLAINED_SHARE * max(abs(proven.primal), abs(proven.dual)) + 16.0 * EPSILON * abs(scale)


def proving(proofs: Sequence[Kept], verdicts: Sequence[Certificate | str]) -> tuple[Proof, ...]:
    """Return the fewest proofs that prove the best bounds of a run: of those that do, the last ones."""
    proven = [(kept.proof, verdict) for kept, verdict in zip(proofs, verdicts, strict=True) if isinstance(verdict, Certificate)][::-1]
    if not proven:
        return ()
    upper, lower = min(proven, key=lambda each: each[1].primal)[0], max(proven, key=lambda each: each[1].dual)[0]
    return (upper,) if upper is lower else (upper, lower)


def _is_out_of_order(record: Record, samples: Sequence[Sample]) -> bool:
    """Whether samples of an iterative solver go back in time, or its record says that it took less than they do."""
    if any(after.seconds < before.seconds for before, after in pairwise(samples)):
        return True
    if record.status is not Status.VERIFIED or not samples:
        return False
    compiled = max(sample.counted - sample.seconds for sample in samples)
    return record.times.solve < samples[-1].seconds or record.times.compile + _ROUND_SECONDS < compiled


def _best(verdicts: Sequence[Certificate | str]) -> Certificate | None:
    proven = [verdict for verdict in verdicts if isinstance(verdict, Certificate)]
    return list(accumulate(proven, Certificate.tightened))[-1] if proven else None


def meets(certificate: Certificate, target: float, scale: float) -> bool:
    """Whether the gap meets the target to the last digits: the run itself has left room for rounding."""
    allowed = Tolerance(target).allowed_gap(certificate.primal, scale)
    return certificate.gap <= allowed * (1.0 + UNEXPLAINED_SHARE) and not certificate.contradicts_itself(scale)
