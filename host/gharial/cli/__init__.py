# SPDX-License-Identifier: Apache-2.0
"""The command `gharial`: one module a subcommand, each imported when it is run, so that `--help` comes at once.

Exit codes: 0 done; 1 failed (device, I/O, a check that did not hold); 2 bad input or usage; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from gharial.cli import terminal
from gharial.cli.commands import parse
from gharial.errors import GharialError

_INTERRUPTED = 130
_FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (`sys.argv` without the program's name if None); returns the exit code."""
    terminal.prepare()
    with terminal.only_ours():
        return _run(list(sys.argv[1:] if argv is None else argv))


def _run(argv: list[str]) -> int:
    """Carry out a command line; every error becomes a message and an exit code."""
    try:
        args = parse(argv)
        code: int = args.run(args)
        return code
    except SystemExit as done:  # argparse: help was shown, or usage was wrong
        return done.code if isinstance(done.code, int) else 0
    except GharialError as error:
        terminal.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
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
        if os.environ.get("GHARIAL_DEBUG"):
            traceback.print_exc()
        else:
            terminal.error(f"internal error, please report it: {type(error).__name__}: {error}")
            terminal.say("GHARIAL_DEBUG=1 shows where it happened")
        return _FAILED
