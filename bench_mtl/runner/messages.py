"""What processes of this package tell each other, as data: reading it can run no code, whoever wrote it.

A frame is the length of all that follows its head, the length of the JSON, the JSON, and arrays of float64 one after the other. Values of
dataclasses are the lists of their fields, read by the types that these are declared with; those of messages have their name first.
Pickles go the other way only, from a parent to what it has started.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import json
import math
import struct
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from bench_mtl.core.types import Array, Certificate, Proof, Record, Rung, Sample
from bench_mtl.model.patterns import PackedPattern

T = TypeVar("T")

HEAD = struct.Struct("<QI")
#: Bytes of JSON in one message, far more than any has, and bytes of arrays where nobody knows how large points are.
MOST_JSON, MOST_ARRAYS = 2**26, 2**34

#: What fields may be declared with whose modules import that for type checkers only.
_NAMES = {"Array": Array, "Certificate": Certificate, "Mapping": Mapping, "PackedPattern": PackedPattern, "Proof": Proof, "Record": Record}


class UnreadableError(Exception):
    """What a process has sent is no message."""


@dataclass_transform(frozen_default=True)
class Message:
    """A message. Its classes are dataclasses."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Ready(Message):
    """A worker has started."""

    environment: Mapping[str, Any]


class Mistake(Message):
    """What is wrong with an instance, if anything is."""

    sentence: str | None


class Taken(Message):
    """A worker has a case: comes before all that follows here."""


class Alone(Message):
    """The worker cannot be forked, and runs the case itself."""


class AboutProblem(Message):
    """What a run is made on, and what is proven of its zero point."""

    dimensions: Mapping[str, int]
    notes: tuple[str, ...]
    baseline: Certificate


class AboutSolver(Message):
    version: str


class Begins(Message):
    """A one-shot solver begins a phase, or with a tolerance."""

    phase: str
    asked: float | None


class Phase(Message):
    """A phase is over."""

    name: str
    seconds: float


class RungOver(Message):
    rung: Rung


class Proven(Message):
    """Comes before the sample that it proves."""

    proof: Proof


class Sampled(Message):
    sample: Sample


class JobFound(Message):
    """What a job has found, by name."""

    values: Mapping[str, Any]


class Ended(Message):
    """A run is over."""

    record: Record
    """Without its samples."""
    peak_mib: float | None


class Patterns(Message):
    """Those of the solution: the last message of a run."""

    patterns: tuple[PackedPattern, ...]


class Gone(Message):
    """The process of a run has ended, with all that it had started."""

    code: int
    """Its exit code, or minus the number of the signal that has killed it."""


class Certified(Message):
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


class Failed(Message):
    """What was asked for cannot be done."""

    reason: str


def packed(value: Any) -> list[bytes | memoryview]:
    """Return a value as the buffers of one frame, arrays not copied.

    Raises TypeError where it is made of other things than numbers, words, bytes, arrays of float64, lists, tables and dataclasses.
    """
    arrays: list[Array] = []
    text = json.dumps(_flat(value, arrays)).encode()
    buffers = [np.ascontiguousarray(array, dtype="<f8").data.cast("B") for array in arrays if array.size]
    return [HEAD.pack(len(text) + sum(map(len, buffers)), len(text)) + text, *buffers]


def lengths(head: bytes, most_arrays: int = MOST_ARRAYS) -> tuple[int, int]:
    """Return the length of the payload that follows a head, and of the JSON in it.

    Raises UnreadableError for no head of a message, or one of a message that is too long.
    """
    total, text = HEAD.unpack(head)
    if not 1 <= text <= min(total, MOST_JSON) or total - text > most_arrays:
        raise UnreadableError(f"a message of {total} bytes")
    return total, text


def unpacked(kind: type[T], payload: bytes, text: int) -> T:
    """Return the value of a type that `packed` has made a payload of, whose first `text` bytes are JSON.

    Raises UnreadableError where it has not.
    """
    arrays = _Arrays(memoryview(payload)[text:])
    try:
        value: T = _reader(typing.cast(Any, kind))(json.loads(payload[:text]), arrays)
    except UnreadableError:
        raise
    except Exception as error:  # whatever nonsense does to the parser, the deepest nesting included
        raise UnreadableError(f"{type(error).__name__}: {str(error)[:200]}") from None
    arrays.end()
    return value


def flat(value: Any) -> bytes:
    """Return a value as the bytes of one frame; raises as `packed`."""
    return b"".join(packed(value))


def built(kind: type[T], data: object) -> T:
    """Return the value of a type that `flat` has made these bytes of; raises UnreadableError where it has not."""
    if not isinstance(data, bytes) or len(data) < HEAD.size:
        raise UnreadableError(f"{type(data).__name__} in place of a message")
    total, text = lengths(data[: HEAD.size])
    if total != len(data) - HEAD.size:
        raise UnreadableError(f"{len(data)} bytes in place of {total}")
    return unpacked(kind, data[HEAD.size :], text)


def _flat(value: Any, arrays: list[Array]) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype != np.float64:
            raise TypeError(f"an array of {value.dtype}")
        arrays.append(value)
        return list(value.shape)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value):
        fields = [_flat(getattr(value, field.name), arrays) for field in dataclasses.fields(value)]
        return [type(value).__name__, *fields] if isinstance(value, Message) else fields
    if isinstance(value, (tuple, list)):
        return [_flat(item, arrays) for item in value]
    if isinstance(value, Mapping):
        return {key: _flat(item, arrays) for key, item in value.items()}
    return value


class _Arrays:
    """The arrays of a message, taken one after the other."""

    def __init__(self, payload: memoryview) -> None:
        self._left = payload

    def take(self, shape: list[int]) -> Array:
        size = 8 * math.prod(shape)
        if min(shape, default=0) < 0 or size > len(self._left):
            raise UnreadableError(f"an array of shape {shape}")
        array: Array = np.frombuffer(self._left[:size], dtype="<f8").astype(np.float64).reshape(shape)
        self._left = self._left[size:]
        return array

    def end(self) -> None:
        if self._left:
            raise UnreadableError(f"{len(self._left)} bytes too many")


_Reader = Callable[[Any, _Arrays], Any]


@functools.cache
def _reader(kind: Any) -> _Reader:
    """Return what reads a value of a declared type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value, arrays: value
    if kind is Message:
        return _read_message
    if origin in (typing.Union, types.UnionType):
        return functools.partial(_read_one_of, [_reader(part) for part in inner if part is not type(None)])
    if origin is np.ndarray:
        return lambda value, arrays: arrays.take([_a(int, size) for size in _a(list, value)])
    if origin is tuple and inner[1:] == (...,):
        each = _reader(inner[0])
        return lambda value, arrays: tuple(each(item, arrays) for item in _a(list, value))
    if origin is tuple:
        return functools.partial(_read_fields, lambda *items: items, [_reader(part) for part in inner])
    if origin is not None and issubclass(origin, Mapping):
        of_table = _reader(inner[1])
        return lambda value, arrays: {name: of_table(item, arrays) for name, item in _a(dict, value).items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return lambda value, arrays: kind(value)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, localns=_NAMES)
        return functools.partial(_read_fields, typing.cast(Any, kind), [_reader(hints[field.name]) for field in dataclasses.fields(kind)])
    if isinstance(kind, type) and issubclass(kind, tuple):
        return functools.partial(_read_fields, kind, list(map(_reader, typing.get_type_hints(kind, localns=_NAMES).values())))
    if kind is bytes:
        return lambda value, arrays: base64.b64decode(_a(str, value), validate=True)
    if kind in (bool, int, float, str):
        kinds = (int, float) if kind is float else kind  # as it was sent: keys of cases depend on it
        return lambda value, arrays: _a(kinds, value)
    raise TypeError(f"no reader is declared for {kind}")


def _read_fields(make: Callable[..., Any], readers: list[_Reader], value: Any, arrays: _Arrays) -> Any:
    return make(*(read(item, arrays) for read, item in zip(readers, _a(list, value), strict=True)))


def _read_message(value: Any, arrays: _Arrays) -> Message:
    name, *fields = _a(list, value)
    kinds = {kind.__name__: kind for kind in Message.__subclasses__()}
    if name not in kinds:
        raise UnreadableError(f"{str(name)[:50]!r} is no message")
    message: Message = _reader(typing.cast(Any, kinds[name]))(fields, arrays)
    return message


def _read_one_of(readers: list[_Reader], value: Any, arrays: _Arrays) -> Any:
    """Read what is declared as one of several types, or as None."""
    if value is None:
        return None
    for read in readers[:-1]:
        with suppress(UnreadableError):
            return read(value, arrays)
    return readers[-1](value, arrays)


def _a(kind: Any, value: Any) -> Any:
    """`value` if it is of this very kind: no bool is a number here."""
    if type(value) not in (kind if isinstance(kind, tuple) else (kind,)):
        raise UnreadableError(f"{type(value).__name__} where it has no place")
    return value
