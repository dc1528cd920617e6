# SPDX-License-Identifier: Apache-2.0
"""Checks rtl/ and the modules of sim/: `python -m scripts.rtl.lint [--format] [--only FOLDER]... [CONFIG]...`.

verible checks style and format, slang and Verilator (-Wall) the elaborated design of each configuration, every module
that no other instantiates being a top (default: the on-chip configurations and tiny-batch; what is in rtl/batch,
sim/batch and sim/profile/memory is for configurations with weights in memory, all else is checked on chip). --only
checks the modules of some folders alone, --format formats first. A warning fails; a waiver stands at its line in the
source.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gharial.errors import BadInput
from gharial.isa import configs
from scripts.rtl import csr, sources, tools
from scripts.rtl.tools import ROOT

RULES = ROOT / "rtl" / ".verible-lint-rules"
FORMAT = ROOT / "rtl" / ".verible-format-flags"
# Vendor cells keep the vendor's names and have a port a bit: nothing there is ours to style.
UNSTYLED = ROOT / "sim" / "primitives"
# Of the configurations with weights in memory, the one that is checked each time.
BATCH = "tiny-batch"
BATCH_FOLDERS = (sources.RTL / "batch", sources.SIM / "batch", sources.SIM / "profile" / "memory")
# slang's warnings that contradict the others: verible wants the default; a cast is useless at one size only.
UNWANTED = ["-Wno-case-redundant-default", "-Wno-useless-cast"]


def style(files: Sequence[Path]) -> bool:
    """Whether verible has nothing to say about `files`; what it says is printed."""
    env = tools.environment()
    lint = ["verible-verilog-lint", f"--rules_config={RULES}", *map(str, files)]
    good = subprocess.run(lint, env=env).returncode == 0
    for path in files:
        # Several files at once it refuses without --inplace.
        command = ["verible-verilog-format", f"--flagfile={FORMAT}", "--verify", str(path)]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            good = False
            print(f"{path.relative_to(ROOT)}: not formatted; do: python -m scripts.rtl.lint --format")
            print("".join(line + "\n" for line in done.stdout.splitlines() if "Needs formatting" not in line), end="")
    return good


def belonging(modules: Sequence[Path], in_memory: bool) -> list[Path]:
    """Those of `modules` that are checked in configurations with weights in memory, or on chip."""
    return [path for path in modules if in_memory == any(folder in path.parents for folder in BATCH_FOLDERS)]


def reformat(files: Sequence[Path]) -> None:
    """Write `files` as verible formats them."""
    command = ["verible-verilog-format", f"--flagfile={FORMAT}", "--inplace", *map(str, files)]
    subprocess.run(command, env=tools.environment(), check=True)


def slang(config: str, modules: Sequence[Path], looked_in: Sequence[Path]) -> list[str] | None:
    """Tops among `modules` as slang elaborates them for `config`, or None where it found a fault (and printed it)."""
    from pyslang import driver

    run = driver.Driver()
    run.addStandardArgs()
    files = [*sources.packages(config), *modules]
    options = ["-Wextra", *UNWANTED, "-Werror", *sources.library(looked_in)]
    options += ["--suppress-warnings", str(csr.FOLDER)]
    line = " ".join(f'"{part}"' for part in ["slang", *options, *map(str, files)])
    if not (run.parseCommandLine(line) and run.processOptions() and run.parseAllSources()):
        return None
    compilation = run.createCompilation()
    run.reportCompilation(compilation, True)
    run.runAnalysis(compilation)
    if not run.reportDiagnostics(True):
        return None
    return [instance.name for instance in compilation.getRoot().topInstances]


def verilator(config: str, tops: Sequence[str], looked_in: Sequence[Path]) -> bool:
    """Whether Verilator has nothing to say about any of `tops` in the configuration `config`."""
    good = True
    for top in tops:
        command = ["verilator", "--lint-only", "--quiet", "-Wall", "--timing", "--top-module", top]
        command += sources.library(looked_in)
        files = [sources.WAIVERS, *sources.packages(config), sources.find(top, looked_in)]
        command += map(str, files)
        good &= subprocess.run(command, env=tools.environment(), cwd=ROOT).returncode == 0
    return good


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 nothing found, 1 faults were printed, 2 usage or a tool is missing."""
    parser = argparse.ArgumentParser(prog="python -m scripts.rtl.lint", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config", nargs="*", help="configurations (default: those on chip, tiny-batch)")
    parser.add_argument("--only", action="append", type=Path, metavar="FOLDER", help="check this folder's modules only")
    parser.add_argument("--format", action="store_true", help="format the files first")
    args = parser.parse_args(argv)
    problem = tools.lacking([tools.VERILATOR, tools.PYSLANG, tools.VERIBLE])
    if problem:
        print(f"lint: {problem}", file=sys.stderr)
        return 2
    bench_folders = sorted({path.parent for path in sources.SIM.rglob("*.sv")} - {UNSTYLED})
    modules = sources.modules(*bench_folders)
    styled = [*sorted((sources.RTL / "pkg").glob("*.sv")), *modules]
    if args.only:
        only = {folder.resolve() for folder in args.only}
        modules, styled = ([path for path in files if path.parent in only] for files in (modules, styled))
    if args.format and styled:
        reformat(styled)
    tools.prepare()
    good = style(styled) if styled else True
    looked_in = sources.folders(*bench_folders)
    try:
        for name in args.config or [n for n, config in configs.configs().items() if n == BATCH or not config.in_memory]:
            own = belonging(modules, configs.config(name).in_memory)
            tops = slang(name, own, looked_in) if own else []
            good &= tops is not None and verilator(name, tops, looked_in)
    except (BadInput, tools.ToolError) as error:
        print(f"lint: {error}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
