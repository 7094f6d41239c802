"""What Ctrl-C means to whoever runs cases."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Self


class Interrupt:
    """While it is entered, the first Ctrl-C only asks to stop; the second, and a termination, stop when next looked at.

    They do not raise where they strike: that may be while the main thread has taken a lock of a future, which then nobody gives back, so
    that the thread with the outcome waits for it, and the command for that thread, for ever. Who cannot wait for the next look strikes
    once more, and what runs in this very thread (`at_once`) can only be stopped where it is.

    Parameters
    ----------
    notify : called at the first Ctrl-C, with a sentence for the user; None where the first stops already
    """

    def __init__(self, *, at_once: bool, notify: Callable[[str], None] | None = None) -> None:
        self._at_once = at_once
        self._notify = notify
        self._finishes = notify is None
        self._stops = False

    def asks(self) -> bool:
        """Return whether to finish the running cases only. Raises KeyboardInterrupt for not even these."""
        if self._stops:
            raise KeyboardInterrupt
        return self._finishes and self._notify is not None

    def __enter__(self) -> Self:
        self._before = [(number, signal.signal(number, self._take)) for number in (signal.SIGINT, signal.SIGTERM)]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            if handler is not None:  # which was not Python's
                signal.signal(number, handler)

    def _take(self, number: int, _: object) -> None:
        if self._finishes or number == signal.SIGTERM:
            raises = self._stops or self._at_once
            self._finishes = self._stops = True  # where the error is lost, in a finaliser, the next look stops
            if raises:
                raise KeyboardInterrupt
        else:
            self._finishes = True
            assert self._notify is not None
            self._notify("stopping after the running cases; Ctrl-C again stops now")
