"""What processes tell each other: what is sent is what arrives, and out of other bytes there comes nothing."""

import pickle
import socket
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from bench_mtl.core.types import Certificate, Ending, Place, Proof, Record, Rung, Sample, Status, Times
from bench_mtl.model.patterns import PackedPattern
from bench_mtl.runner.channel import ParentEnd
from bench_mtl.runner.messages import (
    HEAD,
    MOST_TEXT,
    AboutProblem,
    Begins,
    Certified,
    Ended,
    Gone,
    JobFound,
    Message,
    Mistake,
    Parts,
    Proven,
    RungOver,
    Sampled,
    Taken,
    UnreadableError,
    built,
    flat,
    lengths,
)  # fmt: skip

CERTIFICATE = Certificate(0.1 + 0.2, -np.inf, 5e-324)
SAMPLES = Sample(0.5, 3, 1.5, CERTIFICATE, 1e-3, (("error", 0.25),), 0.75), Sample(1.0, 4, 2.0, CERTIFICATE)
RECORD = Record(
    Status.TIMEOUT, "a reason", SAMPLES, Times(solve=1.0), np.array([[np.nan, -0.0], [1e-310, 2.0]]),
    (("version", "1.2"), ("count", 3), ("is", True)), None, None, 12.5, 2.0, (), (Place("a.py", 3, "f", "x = 1"),),
)  # fmt: skip
PATTERN = PackedPattern("W", 1, 9, 3, None, b"\x00\xff")
POINT = np.arange(6.0).reshape(2, 3)

MESSAGES: list[Message] = [
    Taken(),
    Gone(-9),
    Mistake(None),
    AboutProblem({"n": 5, "d": 3}, ("a note", "ü\x00"), Certificate(1.0, -np.inf, 0.0, np.inf)),
    Begins("solve", 1e-3),
    RungOver(Rung(1e-3, 0.5, Ending.KILLED)),
    Sampled(SAMPLES[0]),
    JobFound({"values": [1, 2.5, "x", None]}),
    Ended(replace(RECORD, samples=(), solution=None), 3.5),
    Parts(("P", "Q")),
    Certified((Certificate(1.0, 0.5, 0.0, 1e-9), "NaN"), 2.0, Certificate(2.0, -np.inf, 0.0), None, 0.1, (PATTERN,)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    assert built(flat(message)) == message


@pytest.mark.parametrize("proof", [Proof(POINT), Proof(POINT, POINT[0]), Proof(POINT.T, None, POINT), Proof(np.zeros((0, 3)))])
def test_arrays_arrive_to_the_last_bit(proof: Proof) -> None:
    message = built(flat(Proven(proof)))
    for field in fields(Proof):
        sent, came = getattr(proof, field.name), getattr(message.proof, field.name)
        assert (sent is None) == (came is None)
        assert sent is None or np.array_equal(sent, came)


def test_nothing_else_can_be_sent() -> None:
    for thing in (object(), np.ones(2, dtype=np.float32), np.array([object()])):
        with pytest.raises(TypeError):
            flat(JobFound({"thing": thing}))


def framed(content: Any, arrays: bytes = b"") -> bytes:
    text = content if isinstance(content, bytes) else msgspec.msgpack.encode(content)
    return HEAD.pack(len(text) + len(arrays), len(text)) + text + arrays


def test_other_bytes_are_unreadable_and_run_nothing(tmp_path: Path) -> None:
    certificate = [1.0, 1.0, 0.0, 0.0]
    wrong = [
        framed(content)
        for content in (
            [], {}, 7, b"\x91" * 100_000, b"\xdd" + b"\xff" * 4, ["Other"], ["Taken", 1], ["Gone"], ["Gone", 1.5],
            ["Gone", True], [["Gone"], 1], ["Begins", 3, 1.0], ["Begins", "solve", "1"], ["AboutProblem", {"n": 1.5}, [], certificate],
            ["AboutProblem", {}, "text", certificate], ["AboutProblem", {}, [], [1.0]],
            ["Ended", {"status": "splendid", "reason": ""}, None], ["Proven", {"point": [2, 3]}],
            ["Proven", {"point": [-1]}], ["Proven", {"point": [1e3]}], ["Proven", {}],
        )
    ]  # fmt: skip
    wrong += [framed(["Proven", {"point": [1]}], bytes(16)), flat(Taken())[:-1], flat(Taken()) + b" ", b"", bytes(12), b"\xff" * 99]
    wrong += [framed(pickle.dumps(_Deed(tmp_path / "done"))), HEAD.pack(2**62, 10), HEAD.pack(10, 11), HEAD.pack(2**40, MOST_TEXT + 1)]
    for data in (*wrong, "text", None, 7, object()):
        with pytest.raises(UnreadableError):
            built(data)
    assert not (tmp_path / "done").exists()
    with pytest.raises(UnreadableError):
        lengths(HEAD.pack(2**20, 2), most_arrays=2**10)


class _Deed:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def test_a_reader_never_waits_for_the_rest() -> None:
    ours, theirs = socket.socketpair()
    end = ParentEnd(ours.detach())
    data, taken = flat(Proven(Proof(POINT))), []
    for byte in (data + data)[:-1]:
        theirs.send(bytes([byte]))
        end.read()
        taken.append(end.take())
    assert [type(message) for message in taken if message is not None] == [Proven]
    theirs.close()
    with pytest.raises(EOFError):
        end.read()
    end.close()
