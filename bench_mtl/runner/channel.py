"""The two ends of the pipe between a process and its parent: pickles go down, frames of `bench_mtl.runner.wire` come up.

What goes down brings a token, which every frame that answers it begins with: bytes that somebody writes to a descriptor by accident are
never taken for a message.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import resource
import secrets
import select
import socket
import struct
from time import monotonic
from typing import Any

from bench_mtl.runner.gathered import Message
from bench_mtl.runner.wire import HEAD, MOST_ARRAYS, UnreadableError, lengths, packed, unpacked

#: The length of a pickle, and the token of the answers.
_DOWN = struct.Struct("<Q16s")
_TOKEN_BYTES = 16
_FRAME = _TOKEN_BYTES + HEAD.size
_CHUNK = 2**20
#: Descriptors that come are not those of programs that this process starts, where the system can say so at once.
_CLOSED_IN_PROGRAMS = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

#: The pipe of a worker is moved to some number from here on, where nobody looks for a descriptor by counting from 3.
_LOWEST, _NUMBERS = 300, 600


class WorkerEnd:
    """Of the process that runs what it is told."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=_moved(fd))
        self._token = bytes(_TOKEN_BYTES)
        self.descriptor: int | None = None
        """What came with the last message, open until the next one comes."""

    def receive(self) -> Any:
        """Wait for what the parent sends.

        Raises
        ------
        EOFError : the parent is gone.
        """
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        head, descriptors, _, _ = socket.recv_fds(self._socket, _DOWN.size, 1, _CLOSED_IN_PROGRAMS)
        if not head:
            raise EOFError
        self.descriptor = next(iter(descriptors), None)
        size, self._token = _DOWN.unpack(head + self._exactly(_DOWN.size - len(head)))
        return pickle.loads(self._exactly(size))

    def send(self, message: Message) -> None:
        first, *others = packed(message)
        self._socket.sendall(self._token + bytes(first))
        for buffer in others:
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
        self._needed = _FRAME
        self._token = bytes(_TOKEN_BYTES)
        self.most_arrays = MOST_ARRAYS
        """Bytes of arrays in one message."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, content: Any, descriptor: int | None = None) -> None:
        """Send this, with an open descriptor or with none."""
        data = pickle.dumps(content)
        self._token = secrets.token_bytes(_TOKEN_BYTES)
        head = _DOWN.pack(len(data), self._token)
        if descriptor is None:
            self._socket.sendall(head + data)
        else:
            sent = socket.send_fds(self._socket, [head], [descriptor])
            self._socket.sendall(head[sent:] + data)

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
        text = self._lengths()[1]
        payload = bytes(memoryview(self._read)[_FRAME : self._needed])
        del self._read[: self._needed]
        self._needed = _FRAME
        return unpacked(payload, text)

    def answer(self, seconds: float) -> Message | None:
        """Wait for a message, at most so long.

        Raises
        ------
        EOFError, UnreadableError : as `read` and `take`
        """
        until, poll = monotonic() + seconds, select.poll()
        poll.register(self._socket, select.POLLIN)
        while (message := self.take()) is None and (left := until - monotonic()) > 0.0:
            if poll.poll(1000.0 * left):
                with contextlib.suppress(BlockingIOError):
                    self.read()
        return message

    def close(self) -> None:
        self._socket.close()

    def _has_message(self) -> bool:
        known = min(len(self._read), _TOKEN_BYTES)
        if self._read[:known] != self._token[:known]:
            raise UnreadableError(f"{len(self._read)} bytes that are no message")
        if self._needed == _FRAME and len(self._read) >= _FRAME:
            self._needed = _FRAME + self._lengths()[0]
        return self._needed > _FRAME and len(self._read) >= self._needed

    def _lengths(self) -> tuple[int, int]:
        return lengths(memoryview(self._read)[_TOKEN_BYTES:_FRAME], self.most_arrays)


def _moved(fd: int) -> int:
    """Move a descriptor to a high number that nobody can guess, where there is room for it."""
    most = min(_LOWEST + _NUMBERS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if most <= _LOWEST:
        return fd
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST + secrets.randbelow(most - _LOWEST))
    except OSError:
        return fd
    os.close(fd)
    return moved
