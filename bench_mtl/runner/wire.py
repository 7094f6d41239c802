"""Messages of a worker, or of a certifier, as bytes: JSON and raw arrays of float64, so that reading one can run no code, whoever wrote it.

A frame is the length of all that follows its head, the length of the JSON, the JSON, and the arrays one after the other. What a message
may hold depends on its kind; anything else is refused. Pickles go the other way only, from a parent to what it has started.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Certificate, Ending, Place, Proof, Record, Rung, Sample, Status, Times
from bench_mtl.engine.places import LONGEST_FILE, LONGEST_FUNCTION, LONGEST_SOURCE, MOST_PLACES
from bench_mtl.model.patterns import PackedPattern
from bench_mtl.runner.gathered import GONE, TAKEN, Message

HEAD = struct.Struct("<QI")

#: Bytes of JSON in one message, far more than any honest one has.
MOST_JSON = 2**24
#: Bytes of arrays in one message where nobody knows how large points are.
MOST_ARRAYS = 2**34

#: The most dimensions of a point, characters of a word, and entries of a table.
_MOST_DIMENSIONS, _LONGEST_WORD, _MOST_ENTRIES = 8, 10_000, 1_000


class UnreadableError(Exception):
    """What a worker has sent is no message."""


def packed(message: Message) -> list[bytes | memoryview]:
    """Return a message as the buffers of one frame, arrays not copied."""
    kind, *content = message
    arrays: list[Array] = []
    body = _PACKED[kind](content, arrays) if kind in _PACKED else content
    text = json.dumps([kind, body], default=_plain).encode()
    buffers = [np.ascontiguousarray(array, dtype="<f8").data.cast("B") for array in arrays if array.size]
    return [HEAD.pack(len(text) + sum(map(len, buffers)), len(text)) + text, *buffers]


def lengths(head: bytes | bytearray | memoryview, most_arrays: int = MOST_ARRAYS) -> tuple[int, int]:
    """Return the length of the payload that follows a head, and of the JSON in it.

    Raises
    ------
    UnreadableError : no head of a message, or one of a message that is too long.
    """
    total, text = HEAD.unpack(head)
    if not 2 <= text <= min(total, MOST_JSON) or total - text > most_arrays:
        raise UnreadableError(f"a message of {total} bytes")
    return total, text


def unpacked(payload: bytes | bytearray | memoryview, text: int) -> Message:
    """Return the message of a payload whose first `text` bytes are JSON.

    Raises
    ------
    UnreadableError : it is none.
    """
    try:
        kind, content = json.loads(bytes(payload[:text]))
        message = _UNPACKED[kind](content, _Arrays(payload[text:]))
    except UnreadableError:
        raise
    except Exception as error:  # whatever nonsense does to the parser, the deepest nesting included
        raise UnreadableError(f"{type(error).__name__}: {str(error)[:200]}") from None
    return message


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy, which jobs find, as Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is nothing that a message can hold")


def _sample(sample: Sample) -> list[Any]:
    counts = [float(sample.seconds), sample.step, float(sample.work)]
    return [*counts, list(sample.certificate), sample.asked, list(sample.measures), sample.counted]


def _pack_proof(content: list[Any], arrays: list[Array]) -> Any:
    (proof,) = content
    given = [array for array in (proof.point, proof.dual, proof.bound_point) if array is not None]
    arrays += given
    return [[None if array is None else list(array.shape) for array in (proof.point, proof.dual, proof.bound_point)]]


def _pack_rung(content: list[Any], arrays: list[Array]) -> Any:
    (rung,) = content
    return [rung.asked, rung.seconds, str(rung.ending), rung.setup]


def _pack_record(content: list[Any], arrays: list[Array]) -> Any:
    record, peak = content
    places = [list(place) for place in record.places]
    return [str(record.status), record.reason, asdict(record.times), list(record.info), record.counted, peak, places]


def _pack_patterns(content: list[Any], arrays: list[Array]) -> Any:
    patterns, leftovers, is_last = content
    rows = [[p.part, p.rows, p.columns, p.nonzeros, p.rank, base64.b64encode(p.bits).decode()] for p in patterns]
    return [rows, list(leftovers), bool(is_last)]


def _pack_certified(content: list[Any], arrays: list[Array]) -> Any:
    *others, patterns = content
    return [*others, _pack_patterns([patterns, (), False], arrays)[0]]


_PACKED: Mapping[str, Callable[[list[Any], list[Array]], Any]] = {
    "sample": lambda content, arrays: _sample(content[0]),
    "proof": _pack_proof,
    "rung": _pack_rung,
    "record": _pack_record,
    "patterns": _pack_patterns,
    "certified": _pack_certified,
}


class _Arrays:
    """The arrays of a message, taken one after the other."""

    def __init__(self, payload: bytes | bytearray | memoryview) -> None:
        self._left = memoryview(payload)

    def take(self, shape: Any) -> Array:
        _require(isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS and all(type(size) is int and size >= 0 for size in shape))
        size = 8 * math.prod(shape)
        _require(size <= len(self._left))
        array = np.frombuffer(self._left[:size], dtype="<f8").astype(np.float64).reshape(shape)
        self._left = self._left[size:]
        return array

    def end(self) -> None:
        _require(not self._left)


def _require(condition: bool) -> None:
    if not condition:
        raise UnreadableError("a message that is no message")


def _number(value: Any) -> float:
    _require(type(value) in (int, float))
    return float(value)


def _finite(value: Any) -> float:
    number = _number(value)
    _require(math.isfinite(number))
    return number


def _seconds(value: Any) -> float:
    seconds = _finite(value)
    _require(seconds >= 0.0)
    return seconds


def _count(value: Any) -> int:
    _require(type(value) is int and 0 <= value < 2**63)
    return int(value)


def _word(value: Any, longest: int = _LONGEST_WORD) -> str:
    _require(isinstance(value, str) and len(value) <= longest)
    return str(value)


def _bool(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _optional(read: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else read(value)


def _table(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict) and len(value) <= _MOST_ENTRIES)
    return dict(value)


def _certificate(value: Any) -> Certificate:
    _require(isinstance(value, list) and len(value) == 4)
    certificate = Certificate(*map(_number, value))
    _require(not any(map(math.isnan, certificate)))
    return certificate


def _read_problem(content: Any, arrays: _Arrays) -> Message:
    dimensions, notes, baseline = content
    sizes = {_word(name): _count(size) for name, size in _table(dimensions).items()}
    return "problem", sizes, tuple(map(_word, notes[:_MOST_ENTRIES])), _certificate(baseline)


def _read_sample(content: Any, arrays: _Arrays) -> Message:
    seconds, step, work, certificate, asked, measures, counted = content
    _require(len(measures) <= _MOST_ENTRIES)
    read = tuple((_word(name), _finite(value)) for name, value in measures)
    # Each has a row of its own under its name.
    _require(len(dict(read)) == len(read) and all(name.isprintable() for name, _ in read))
    times = _finite(seconds), _finite(counted)
    _require(_finite(work) >= 0.0)
    return "sample", Sample(times[0], _count(step), _finite(work), _certificate(certificate), _optional(_finite, asked), read, times[1])


def _read_proof(content: Any, arrays: _Arrays) -> Message:
    ((point, dual, bound_point),) = content
    proof = Proof(arrays.take(point), _optional(arrays.take, dual), _optional(arrays.take, bound_point))
    arrays.end()
    return "proof", proof


def _read_rung(content: Any, arrays: _Arrays) -> Message:
    asked, seconds, ending, setup = content
    return "rung", Rung(_finite(asked), _seconds(seconds), Ending(_word(ending)), _optional(_seconds, setup))


def _read_record(content: Any, arrays: _Arrays) -> Message:
    status, reason, times, info, counted, peak, places = content
    seconds = Times(**{_word(name): max(0.0, _finite(value)) for name, value in _table(times).items()})
    _require(len(info) <= _MOST_ENTRIES)
    facts = tuple((_word(name), value) for name, value in info)
    _require(all(isinstance(value, (bool, int, float, str)) for _, value in facts))
    passed = _places(places)
    record = Record(Status(_word(status)), _word(reason), (), seconds, None, facts, counted=_finite(counted), places=passed)
    return "record", record, _optional(_finite, peak)


def _places(rows: Any) -> tuple[Place, ...]:
    _require(isinstance(rows, list) and len(rows) <= MOST_PLACES)
    return tuple(
        Place(_word(file, LONGEST_FILE), _count(line), _word(function, LONGEST_FUNCTION), _word(source, LONGEST_SOURCE))
        for file, line, function, source in rows
    )


def _read_patterns(content: Any, arrays: _Arrays) -> Message:
    rows, leftovers, is_last = content
    _require(len(leftovers) <= _MOST_ENTRIES)
    return "patterns", _patterns(rows), tuple(map(_word, leftovers)), _bool(is_last)


def _read_certified(content: Any, arrays: _Arrays) -> Message:
    verdicts, scale, baseline, contradiction, seconds, rows = content
    _require(len(verdicts) <= _MOST_ENTRIES)
    read = tuple(_word(verdict) if isinstance(verdict, str) else _certificate(verdict) for verdict in verdicts)
    return "certified", read, _finite(scale), _certificate(baseline), _optional(_word, contradiction), _seconds(seconds), _patterns(rows)


def _patterns(rows: Any) -> tuple[PackedPattern, ...]:
    _require(len(rows) <= _MOST_ENTRIES)
    return tuple(
        PackedPattern(
            _word(part), _count(rows), _count(columns), _count(nonzeros), _optional(_count, rank), base64.b64decode(bits, validate=True)
        )
        for part, rows, columns, nonzeros, rank, bits in rows
    )


_UNPACKED: Mapping[str, Callable[[Any, _Arrays], Message]] = {
    TAKEN[0]: lambda content, arrays: TAKEN,
    "environment": lambda content, arrays: ("environment", _table(content[0])),
    GONE[0]: lambda content, arrays: GONE,
    "warmed": lambda content, arrays: ("warmed",),
    "placed": lambda content, arrays: ("placed", _bool(content[0])),
    "mistake": lambda content, arrays: ("mistake", _optional(_word, content[0])),
    "problem": _read_problem,
    "solver": lambda content, arrays: ("solver", _word(content[0])),
    "phase": lambda content, arrays: ("phase", _word(content[0]), _finite(content[1])),
    "begins": lambda content, arrays: ("begins", _word(content[0]), _optional(_finite, content[1])),
    "rung": _read_rung,
    "proof": _read_proof,
    "sample": _read_sample,
    "void": lambda content, arrays: ("void",),
    "found": lambda content, arrays: ("found", _table(content[0])),
    "planned": lambda content, arrays: ("planned", _table(content[0])),
    "record": _read_record,
    "patterns": _read_patterns,
    "prepared": lambda content, arrays: ("prepared", _seconds(content[0]), _count(content[1]), _count(content[2])),
    "certified": _read_certified,
    "failed": lambda content, arrays: ("failed", _word(content[0])),
}
