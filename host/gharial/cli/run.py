# SPDX-License-Identifier: Apache-2.0
"""A command line carried out; every error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from gharial.cli import terminal
from gharial.cli.commands import parse
from gharial.errors import GharialError

_FAILED = 1


def run(argv: Sequence[str] | None, interrupts: Sequence[int]) -> int:
    """Run a command line.

    Args:
        argv: its words; None for `sys.argv` without the program's name.
        interrupts: holds something once an interrupt came; what fails then fails in silence.

    Returns:
        The exit code.

    Raises:
        KeyboardInterrupt: an interrupt came.
    """
    terminal.prepare()
    with terminal.only_ours(), warnings.catch_warnings():
        if not os.environ.get("GHARIAL_DEBUG"):
            # NumPy's about numbers that overflow: what comes of them is refused in words of our own.
            warnings.simplefilter("ignore", RuntimeWarning)
        try:
            args = parse(list(sys.argv[1:] if argv is None else argv))
            code: int = args.run(args)
            return code
        except SystemExit as done:  # argparse: help was shown, or usage was wrong
            return done.code if isinstance(done.code, int) else 0
        except GharialError as error:
            terminal.error(error)
            return error.exit_code
        except BrokenPipeError:
            # Whoever read the output has gone: nothing is left to say, at the interpreter's exit neither.
            terminal.silence_stdout()
            return _FAILED
        except OSError as error:
            terminal.error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
            return _FAILED
        except MemoryError:
            terminal.error("out of memory")
            return _FAILED
        except Exception as error:
            if interrupts:
                raise KeyboardInterrupt from error
            if os.environ.get("GHARIAL_DEBUG"):
                import traceback

                traceback.print_exc()
            else:
                terminal.error(f"internal error, please report it: {type(error).__name__}: {error}")
                terminal.say("GHARIAL_DEBUG=1 shows where it happened")
            return _FAILED
