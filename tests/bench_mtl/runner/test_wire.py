"""Messages of a worker: what is sent is what arrives, and nothing but messages is read."""

from __future__ import annotations

import json
import pickle
import socket
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.types import Certificate, Place, Proof, Record, Sample, Status, Times
from bench_mtl.engine.places import LONGEST_FILE, LONGEST_FUNCTION, LONGEST_SOURCE, MOST_PLACES
from bench_mtl.model.patterns import pattern_of
from bench_mtl.runner.channel import ParentEnd
from bench_mtl.runner.wire import HEAD, MOST_JSON, UnreadableError, lengths, packed, unpacked

POINT = np.arange(6.0).reshape(2, 3)
PATTERN = pattern_of("W", POINT)

#: As many and as long as can be.
PLACES = (
    Place("f" * LONGEST_FILE, 2**63 - 1, "g" * LONGEST_FUNCTION, "s" * LONGEST_SOURCE),
    *(Place("solvers/mine.py", 31, "Mine.steps", "\x1b]0;title\x07 \ud800") for _ in range(MOST_PLACES - 1)),
)

MESSAGES: list[Any] = [
    ("taken",),
    ("problem", {"n": 5, "d": 3}, ("a note", "\ud800"), Certificate(1.0, -np.inf, 0.0, np.inf)),
    ("solver", "1.0"),
    ("phase", "warm_up", 0.25),
    ("sample", Sample(0.1, 3, 2.5, Certificate(1.0, 0.5, 0.0), 1e-3, (("non-zeros", 4.0),), 0.2)),
    ("record", Record(Status.VERIFIED, "why", times=Times(solve=1.0), info=(("a", 1), ("b", "c"), ("d", True)), counted=2.0), None),
    ("record", Record(Status.ERROR, "why", places=PLACES), 3.5),
    ("patterns", (PATTERN,), ("RLIMIT_CPU", "3 threads"), False),
    ("found", {"values": [1, 2.5, "x", None]}),
    ("mistake", None),
    ("prepared", 0.5, 80, 0),
    ("certified", (Certificate(1.0, 0.5, 0.0, 1e-9), "NaN"), 2.0, Certificate(2.0, -np.inf, 0.0), None, 0.1, (PATTERN,)),
    ("failed", "the problem cannot be built"),
]


def payload(message: Any) -> tuple[bytes, int]:
    data = b"".join(map(bytes, packed(message)))
    total, text = lengths(data[: HEAD.size])
    assert len(data) == HEAD.size + total
    return data[HEAD.size :], text


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message[0])
def test_a_message_arrives_as_it_was_sent(message: Any) -> None:
    assert unpacked(*payload(message)) == message


@pytest.mark.parametrize("proof", [Proof(POINT), Proof(POINT, POINT[0]), Proof(POINT.T, None, POINT), Proof(np.zeros((0, 3)))])
def test_arrays_arrive_to_the_last_bit(proof: Proof) -> None:
    kind, found = unpacked(*payload(("proof", proof)))
    assert kind == "proof"
    for sent, came in zip((proof.point, proof.dual, proof.bound_point), (found.point, found.dual, found.bound_point), strict=True):
        assert (sent is None) == (came is None)
        assert sent is None or np.array_equal(sent, came)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{}", b"7", b'["sample", []]', b'["sample", [NaN, 1, 1, [1, 1, 0, 0], null, [], 0]]', b'["pickle", []]', b'["taken"]',
        b'["sample", [1, 1.5, 1, [1, 1, 0, 0], null, [], 0]]', b'["sample", [1, 1, 1, [NaN, 1, 0, 0], null, [], 0]]',
        b'["record", ["splendid", "", {}, [], 0, null, []]]', b'["record", ["verified", "", {"other": 1}, [], 0, null, []]]',
        b'["record", ["verified", "", {}, [["a", [1]]], 0, null, []]]', b'["record", ["error", "", {}, [], 0, null]]',
        b'["problem", [{"n": 1e300}, [], [1, 0, 0, 0]]]',
        b'["sample", [1, 1, 1, [1, 1, 0, 0], null, [["a", 1], ["a", 1]], 1]]',
        b'["sample", [1, 1, 1, [1, 1, 0, 0], null, [["\\ud800", 1]], 1]]',
        b'["proof", [[[2, 3], null, null]]]', b'["proof", [[[-1], null, null]]]',
        b'["proof", [[[1e3], null, null]]]', b"[" * 100_000, pickle.dumps(print), np.random.default_rng(0).bytes(64),
    ],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_nothing_else_is_read(text: bytes) -> None:
    with pytest.raises(UnreadableError):
        unpacked(text, len(text))


PLACE = ["solvers/mine.py", 31, "Mine.steps", "x = y"]


@pytest.mark.parametrize(
    "places",
    [
        None, {}, "places", [PLACE] * (MOST_PLACES + 1), [[]], [PLACE[:3]], [[*PLACE, ""]], ["four"],
        [["f" * (LONGEST_FILE + 1), *PLACE[1:]]],
        [[PLACE[0], -1, *PLACE[2:]]], [[PLACE[0], 1.5, *PLACE[2:]]], [[PLACE[0], True, *PLACE[2:]]], [[PLACE[0], 2**63, *PLACE[2:]]],
        [[PLACE[0], "31", *PLACE[2:]]], [[*PLACE[:2], "g" * (LONGEST_FUNCTION + 1), ""]], [[*PLACE[:3], "s" * (LONGEST_SOURCE + 1)]],
        [[*PLACE[:3], None]], [[["solvers"], *PLACE[1:]]],
    ],
    ids=lambda places: repr(places)[:30],
)  # fmt: skip
def test_places_of_other_types_and_lengths_are_no_record(places: Any) -> None:
    text = json.dumps(["record", ["error", "", {}, [], 0, None, places]]).encode()
    with pytest.raises(UnreadableError):
        unpacked(text, len(text))
    whole = json.dumps(["record", ["error", "", {}, [], 0, None, [PLACE]]]).encode()
    assert unpacked(whole, len(whole))[1].places == (Place(*PLACE),)


def test_arrays_that_are_left_over_are_no_message() -> None:
    text = json.dumps(["proof", [[[1], None, None]]]).encode()
    with pytest.raises(UnreadableError):
        unpacked(text + bytes(16), len(text))


@pytest.mark.parametrize(("total", "text"), [(2**62, 10), (10, 11), (0, 0), (2**40, MOST_JSON + 1)])
def test_lengths_that_nothing_has_are_refused(total: int, text: int) -> None:
    with pytest.raises(UnreadableError):
        lengths(HEAD.pack(total, text))


def test_a_reader_never_waits_for_the_rest() -> None:
    ours, theirs = socket.socketpair()
    end = ParentEnd(ours.detach())
    data = bytes(16) + b"".join(map(bytes, packed(("proof", Proof(POINT)))))  # a token, before anything is asked
    assert end.is_silent
    for byte in (data + data)[:-1]:
        theirs.send(bytes([byte]))
        end.read()
        found = end.take()
        assert found is None or found[0] == "proof"
    assert not end.is_silent
    theirs.close()
    with pytest.raises(EOFError):
        end.read()
    end.close()
