"""The two ends of the pipe between a process and its parent: pickles go down, frames of `bench_mtl.runner.messages` come up."""

from __future__ import annotations

import os
import pickle
import socket
import struct
from typing import Any

from bench_mtl.runner.messages import HEAD, MOST_ARRAYS, Message, Proven, built, lengths, packed

#: The length of a pickle.
_LENGTH = struct.Struct("<Q")
_CHUNK = 2**20


class WorkerEnd:
    """Of the process that runs what it receives."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)  # of no use to programs that this process starts
        self._socket = socket.socket(fileno=fd)
        self._unsent: list[bytes | memoryview] = []

    def receive(self) -> Any:
        """Wait for what the parent sends. Raises EOFError where the parent is gone."""
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(size))

    def send(self, message: Message) -> None:
        """Send a message; a proof waits for the next one, without which it is worth nothing."""
        self._unsent += packed(message)
        if isinstance(message, Proven):
            return
        buffers, self._unsent = self._unsent, []
        sent = self._socket.sendmsg(buffers)
        if sent < sum(map(len, buffers)):  # a signal has come between
            self._socket.sendall(b"".join(buffers)[sent:])

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            chunk = self._socket.recv(min(_CHUNK, size - len(content)))
            if not chunk:
                raise EOFError
            content += chunk
        return bytes(content)


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

    def read(self) -> None:
        """Read what is there. Raises EOFError where the worker has closed its end, and all it sent has been taken."""
        if self._has_message():
            return
        chunk = self._socket.recv(max(_CHUNK, min(self._needed - len(self._read), 16 * _CHUNK)), socket.MSG_DONTWAIT)
        if not chunk:
            raise EOFError
        self._read += chunk

    def take(self) -> Message | None:
        """Return the next message, if all of it is there. Raises UnreadableError where it is none."""
        if not self._has_message():
            return None
        frame = bytes(memoryview(self._read)[: self._needed])
        del self._read[: self._needed]
        self._needed = HEAD.size
        return built(frame, self.most_arrays)

    def close(self) -> None:
        self._socket.close()

    def _has_message(self) -> bool:
        if self._needed == HEAD.size and len(self._read) >= HEAD.size:
            self._needed = HEAD.size + lengths(bytes(self._read[: HEAD.size]), self.most_arrays)[0]
        return self._needed > HEAD.size and len(self._read) >= self._needed
