"""What processes of this package tell each other, as data: reading it can run no code, whoever wrote it.

A frame is the length of all that follows its head, the length of the MessagePack, the MessagePack, and arrays of float64 one after the
other, of which it has the shapes. Pickles go the other way only, from a parent to what it has started.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from bench_mtl.core.types import Array, Certificate, Proof, Record, Rung, Sample
from bench_mtl.model.patterns import PackedPattern

HEAD = struct.Struct("<QI")
#: Bytes of MessagePack in one message, far more than any has, and bytes of arrays where nobody knows how large points are.
MOST_TEXT, MOST_ARRAYS = 2**24, 2**34


class UnreadableError(Exception):
    """What a process has sent is no message."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """A message, whose fields are read by the types that they are declared with."""


class Ready(Message, frozen=True):
    """A worker has started."""

    environment: Mapping[str, Any]


class Mistake(Message, frozen=True):
    """What is wrong with an instance, if anything is."""

    sentence: str | None


class Taken(Message, frozen=True):
    """A worker has a case: comes before all that follows here."""


class Alone(Message, frozen=True):
    """The worker cannot be forked, and runs the case itself."""


class AboutProblem(Message, frozen=True):
    """What a run is made on, and what is proven of its zero point."""

    dimensions: Mapping[str, int]
    notes: tuple[str, ...]
    baseline: Certificate


class AboutSolver(Message, frozen=True):
    version: str


class Begins(Message, frozen=True):
    """A one-shot solver begins a phase, or with a tolerance."""

    phase: str
    asked: float | None


class Phase(Message, frozen=True):
    """A phase is over."""

    name: str
    seconds: float


class RungOver(Message, frozen=True):
    rung: Rung


class Proven(Message, frozen=True):
    """Comes before the sample that it proves."""

    proof: Proof


class Sampled(Message, frozen=True):
    sample: Sample


class JobFound(Message, frozen=True):
    """What a job has found, by name."""

    values: Mapping[str, Any]


class Ended(Message, frozen=True):
    """A run is over."""

    record: Record
    """Without its samples."""
    peak_mib: float | None


class Parts(Message, frozen=True):
    """What the parts of the solution are called, whose patterns its judge finds: the last message of a run."""

    names: tuple[str, ...]


class Gone(Message, frozen=True):
    """The process of a run has ended, with all that it had started."""

    code: int
    """Its exit code, or minus the number of the signal that has killed it."""


class Certified(Message, frozen=True):
    """What the proofs of a run prove."""

    verdicts: tuple[Certificate | str, ...]
    """One a proof, in their order; a sentence where one proves nothing."""
    scale: float
    baseline: Certificate
    contradiction: str | None
    """Evidence that the problem itself is at fault."""
    seconds: float
    """The longest that one proof took, its measures included."""
    patterns: tuple[PackedPattern, ...]
    """Those of the point of the last proof."""


class Failed(Message, frozen=True):
    """What was asked for cannot be done."""

    reason: str


def packed(message: Message) -> list[bytes | memoryview]:
    """Return a message as the buffers of one frame, arrays not copied.

    Raises TypeError for an array of other numbers than float64, and for what MessagePack has no form of.
    """
    buffers: list[memoryview] = []

    def plain(thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.dtype == np.float64:
            buffers.append(np.ascontiguousarray(thing, dtype="<f8").reshape(-1).view(np.uint8).data)
            return thing.shape
        if isinstance(thing, np.generic):
            return thing.item()
        raise TypeError(f"{type(thing).__name__} in a message")

    text = msgspec.msgpack.encode(message, enc_hook=plain)
    return [HEAD.pack(len(text) + sum(map(len, buffers)), len(text)) + text, *buffers]


def lengths(head: bytes, most_arrays: int = MOST_ARRAYS) -> tuple[int, int]:
    """Return the length of the payload that follows a head, and of the MessagePack in it.

    Raises UnreadableError for no head of a message, or one of a message that is too long.
    """
    total, text = HEAD.unpack(head)
    if not 1 <= text <= min(total, MOST_TEXT) or total - text > most_arrays:
        raise UnreadableError(f"a message of {total} bytes")
    return total, text


def flat(message: Message) -> bytes:
    """Return a message as the bytes of one frame; raises as `packed`."""
    return b"".join(packed(message))


def built(data: object, most_arrays: int = MOST_ARRAYS) -> Message:
    """Return the message that `flat` has made these bytes of, with at most so many of arrays.

    Raises UnreadableError where it has not.
    """
    if not isinstance(data, bytes) or len(data) < HEAD.size:
        raise UnreadableError(f"{type(data).__name__} in place of a message")
    total, text = lengths(data[: HEAD.size], most_arrays)
    if total != len(data) - HEAD.size:
        raise UnreadableError(f"{len(data)} bytes in place of {total}")
    start, arrays = memoryview(data)[HEAD.size : HEAD.size + text], memoryview(data)[HEAD.size + text :]

    def array(_: Any, shape: Any) -> Array:
        nonlocal arrays
        if min(shape, default=0) < 0:
            raise ValueError(f"an array of shape {shape}")
        taken: Array = np.ndarray(shape, "<f8", arrays).astype(np.float64)
        arrays = arrays[taken.nbytes :]
        return taken

    try:
        kinds: Any = functools.reduce(operator.or_, Message.__subclasses__())
        message: Message = msgspec.msgpack.decode(start, type=kinds, dec_hook=array)
    except Exception as error:  # whatever nonsense does to the parser, the deepest nesting included
        raise UnreadableError(f"{type(error).__name__}: {str(error)[:200]}") from None
    if arrays:
        raise UnreadableError(f"{len(arrays)} bytes too many")
    return message
