# SPDX-License-Identifier: Apache-2.0
"""The command `gharial`: one module a subcommand, each imported when it is run, so that `--help` comes at once.

Exit codes: 0 done; 1 failed (device, I/O, a check that did not hold); 2 bad input or usage; 130 interrupted,
143 and 129 ended by SIGTERM or SIGHUP (128 and the signal's number), with nothing half-written left behind.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_BY_SIGNAL = 128
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (`sys.argv` without the program's name if None); returns the exit code."""
    interrupts: list[int] = []
    try:
        with _interruptible(interrupts):
            from gharial.cli.run import run  # here, so that an interrupt finds its handler while the rest is imported

            code = run(argv, interrupts)
    except KeyboardInterrupt:
        return _BY_SIGNAL + (interrupts or [signal.SIGINT])[0]
    return _BY_SIGNAL + interrupts[0] if interrupts else code


@contextmanager
def _interruptible(seen: list[int]) -> Iterator[None]:
    """Keep a list of the signals that came: NumPy makes an ImportError of an interrupt that hits its import.

    Signals that a process is ended by leave by the same way, so that all is cleared away; ignored ones stay ignored.
    """

    def handle(number: int, _frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    main_thread = threading.current_thread() is threading.main_thread()
    usual = (signal.default_int_handler, signal.SIG_DFL)
    before = {number: signal.getsignal(number) for number in _ENDING} if main_thread else {}
    ours = [number for number, handler in before.items() if handler in usual]
    if before.get(signal.SIGINT) is signal.SIG_DFL:
        ours.remove(signal.SIGINT)
    for number in ours:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
