# SPDX-License-Identifier: Apache-2.0
"""The command `gharial`: one module a subcommand, each imported when it is run, so that `--help` comes at once.

Exit codes: 0 done; 1 failed (device, I/O, a check that did not hold); 2 bad input or usage; 130 interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (`sys.argv` without the program's name if None); returns the exit code."""
    try:
        with _interruptible() as interrupts:
            from gharial.cli.run import run  # here, so that an interrupt finds its handler while the rest is imported

            code = run(argv, interrupts)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return _INTERRUPTED if interrupts else code


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Keep a list of the interrupts that came: NumPy makes an ImportError of one that hits its import."""
    seen: list[int] = []

    def handle(number: int, _frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield seen
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
