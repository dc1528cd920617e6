# SPDX-License-Identifier: Apache-2.0
"""The command `yosys` around pyosys: `yosys [-q] [-l LOG] [-p COMMANDS]... [-s SCRIPT | FILE]...`; -Q, -T are accepted.

FILE is a script if it ends in .ys, else Verilog. Exit code 0, or 1 where Yosys stops with an error.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str]) -> int:
    """Run the commands in Yosys' own order: files and scripts first, then -p."""
    files, commands, log, quiet = [], [], None, False
    arguments = iter(argv)
    for argument in arguments:
        if argument in ("-V", "--version"):
            from importlib.metadata import version

            print(f"Yosys {version('pyosys')} (pyosys)")
            return 0
        if argument == "-p":
            commands.append(next(arguments))
        elif argument == "-s":
            files.append("script " + next(arguments))
        elif argument == "-l":
            log = next(arguments)
        elif argument == "-q":
            quiet = True
        elif argument not in ("-Q", "-T"):
            files.append(("script " if argument.endswith(".ys") else "read -sv ") + argument)
    from pyosys import libyosys

    if quiet or log:  # pyosys has no handle on the log: its lines go to standard output
        out = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
    design = libyosys.Design()
    for command in files + commands:
        libyosys.run_pass(command, design)
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # pyosys' own destructors crash at exit
