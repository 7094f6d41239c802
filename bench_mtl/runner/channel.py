"""The two ends of the pipe between a worker and its parent: pickles go down, frames of `bench_mtl.runner.wire` come up."""

from __future__ import annotations

import pickle
import select
import socket
import struct
from typing import Any

from bench_mtl.runner.gathered import Message
from bench_mtl.runner.wire import HEAD, MOST_ARRAYS, lengths, packed, unpacked

_LENGTH = struct.Struct("<Q")
_CHUNK = 2**20


class WorkerEnd:
    """Of the process that runs what it is told."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)

    def receive(self) -> Any:
        """Wait for what the parent sends.

        Raises
        ------
        EOFError : the parent is gone.
        """
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(size))

    def send(self, message: Message) -> None:
        for buffer in packed(message):
            self._socket.sendall(buffer)

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            chunk = self._socket.recv(min(_CHUNK, size - len(found)))
            if not chunk:
                raise EOFError
            found += chunk
        return bytes(found)


class ParentEnd:
    """Of the process that watches. It never waits for the rest of a message, and never builds anything but data from what it reads."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._read = bytearray()
        self._needed = HEAD.size
        self.most_arrays = MOST_ARRAYS
        """Bytes of arrays in one message."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, content: Any) -> None:
        data = pickle.dumps(content)
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come that was not taken, not even a part of a message."""
        return not self._read and not select.select([self._socket], [], [], 0.0)[0]

    def read(self) -> None:
        """Read what is there.

        Raises
        ------
        EOFError : the worker has closed its end, and all it sent has been taken.
        """
        if self._has_message():
            return
        chunk = self._socket.recv(max(_CHUNK, min(self._needed - len(self._read), 16 * _CHUNK)), socket.MSG_DONTWAIT)
        if not chunk:
            raise EOFError
        self._read += chunk

    def take(self) -> Message | None:
        """Return the next message, if all of it is there.

        Raises
        ------
        UnreadableError : it is none.
        """
        if not self._has_message():
            return None
        text = lengths(memoryview(self._read)[: HEAD.size], self.most_arrays)[1]
        payload = bytes(memoryview(self._read)[HEAD.size : self._needed])
        del self._read[: self._needed]
        self._needed = HEAD.size
        return unpacked(payload, text)

    def close(self) -> None:
        self._socket.close()

    def _has_message(self) -> bool:
        if self._needed == HEAD.size and len(self._read) >= HEAD.size:
            self._needed = HEAD.size + lengths(memoryview(self._read)[: HEAD.size], self.most_arrays)[0]
        return self._needed > HEAD.size and len(self._read) >= self._needed
