# SPDX-License-Identifier: Apache-2.0
"""Builds and runs benches of the RTL: `python -m sim.run [--short] [--waves] [--config C] [--test T] [BENCH]...`.

Without a bench it lists them. Builds lie in build/sim and are kept; GHARIAL_SEED repeats a run's random choices.
Exit codes: 0 all passed, 1 one failed, 2 usage or a tool is missing, 3 one did not build.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence

from scripts.rtl import sources, tools
from scripts.rtl.tools import BUILD, ROOT

from sim import benches
from sim.benches import Run
from sim.runtime import alone

# Only ports are visible to cocotb: with every signal visible, as its runner has it, Verilator can optimise little.
VISIBLE = """\
`verilator_config
public_flat_rw -module "{top}" -var "*_i"
public_flat_rw -module "{top}" -var "*_o"
"""
OPTIONS = ["--quiet", "--assert", "--timing", "-O3", "--x-assign", "unique", "--x-initial", "unique"]
# In one piece: several would be compiled in parallel, but precompiling Verilator's headers for them takes longer.
OPTIONS += ["--output-split", "0"]
# Properties written for formal proofs hold in every simulation too.
DEFINES = {"FORMAL": 1}


class Failed(Exception):
    """A bench did not pass; the message says which and where its log is."""

    exit_code = 1


class NotBuilt(Failed):
    """A bench did not build."""

    exit_code = 3


def needs(waves: bool = False) -> str | None:
    """One line about what is missing for simulation, or None."""
    problem = tools.lacking([tools.VERILATOR, tools.COCOTB, tools.MAKE], compiler=True)
    if problem is None and waves:
        headers = b"#include <lz4.h>\n#include <zlib.h>\n"
        probe = subprocess.run([tools.cxx(), "-E", "-x", "c++", "-"], input=headers, capture_output=True)
        if probe.returncode != 0:
            return "waves: lz4.h or zlib.h not found; get them with: apt-get install liblz4-dev zlib1g-dev"
    return problem


def _literal(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def simulate(run: Run, short: bool, waves: bool, test: str | None, log: bool) -> None:
    """Build and run one bench.

    Args:
        run: which.
        short: leave out what takes long (benches read it as sim.common.bench.short()).
        waves: record all signals.
        test: only tests whose name matches this regular expression.
        log: output to build/sim/.../{build,test}.log, not to the terminal.

    Raises:
        NotBuilt: it did not build.
        Failed: a test failed, or no test ran.
    """
    from cocotb_tools.check_results import get_results
    from cocotb_tools.config import share_dir
    from cocotb_tools.runner import Verilator, VerilatorControlFile

    main = str(share_dir / "lib" / "verilator" / "verilator.cpp")

    class PortsOnly(Verilator):
        """The runner without --public-flat-rw, with objects that benches share, and all else compiled in one piece."""

        def _build_command(self) -> list[list[str]]:
            verilate, compile_all = super()._build_command()
            verilate.remove("--public-flat-rw")
            verilate.remove(main)
            share = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "sim.runtime", str(self.build_dir), main]
            return [verilate, share, ["Vtop_bench.mk" if word == "Vtop.mk" else word for word in compile_all]]

    folder = BUILD / "sim" / (run.name.replace("/", "-") + ("-waves" if waves else ""))
    with alone(folder):
        visible = folder / "visible.vlt"
        if not visible.is_file() or visible.read_text() != VISIBLE.format(top=run.top):
            visible.write_text(VISIBLE.format(top=run.top))
        runner = PortsOnly()
        build_log, test_log = (folder / "build.log", folder / "test.log") if log else (None, None)
        looked_in = sources.folders(run.folder)
        arguments = [*OPTIONS, *sources.library(looked_in)]
        try:
            runner.build(
                sources=[
                    VerilatorControlFile(visible),
                    VerilatorControlFile(sources.WAIVERS),
                    *sources.packages(run.config),
                    sources.find(run.top, looked_in),
                ],
                hdl_toplevel=run.top,
                parameters={name: _literal(value) for name, value in run.parameters.items()},
                defines=DEFINES,
                build_args=arguments + (["--trace-fst", "--trace-structs"] if waves else []),
                build_dir=folder,
                timescale=("1ns", "1ps"),
                waves=waves,
                log_file=build_log,
            )
        except RuntimeError as error:
            raise NotBuilt(f"{run.name}: did not build" + (f": {build_log}" if log else "")) from error
        try:
            results = runner.test(
                hdl_toplevel=run.top,
                test_module=list(run.modules),
                build_dir=folder,
                seed=os.environ["GHARIAL_SEED"],
                waves=waves,
                test_filter=test,
                extra_env={"GHARIAL_BENCH": "short" if short else "full", "GHARIAL_CONFIG": run.config},
                log_file=test_log,
                results_xml="results.xml",
            )
            count, failed = get_results(results)
        except RuntimeError as error:
            raise Failed(f"{run.name}: {error}" + (f": {test_log}" if log else "")) from error
        if failed or not count:
            raise Failed(f"{run.name}: {failed} of {count} tests failed" + (f": {test_log}" if log else ""))
        if waves:
            print(f"waves: {(folder / 'dump.fst').relative_to(ROOT)}")


def chosen(names: Sequence[str], config: str | None) -> list[Run]:
    """Runs of the benches `names` ("bench" or a run's full name), of `config` only if given.

    Raises:
        ValueError: a name is not known.
    """
    found = benches.runs()
    out = []
    for name in names:
        matching = [run for run in found if run.name == name or run.bench == name]
        matching = [run for run in matching if config in (None, run.config)]
        if not matching:
            raise ValueError(f"no bench {name}{' for ' + config if config else ''}; `make sim` lists them")
        out += matching
    return out


def main(argv: list[str] | None = None) -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(prog="python -m sim.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", nargs="*", help="bench, or bench/config[/variant]; none: list them")
    parser.add_argument("--short", action="store_true", help="the form that `make test` runs")
    parser.add_argument("--waves", action="store_true", help="record signals to an FST file")
    parser.add_argument("--config", help="only this configuration")
    parser.add_argument("--test", help="only tests whose name matches")
    parser.add_argument("--log", action="store_true", help="output to build/sim/.../{build,test}.log")
    args = parser.parse_args(argv)
    os.chdir(ROOT)
    if not args.bench:
        for run in benches.runs():
            print(run.name)
        return 0
    problem = needs(args.waves)
    if problem:
        print(f"sim: {problem}", file=sys.stderr)
        return 2
    tools.prepare()
    os.environ.update(tools.environment())
    for name in ("PYTEST_CURRENT_TEST", "WAVES", "GUI"):  # the runner would listen to them instead of us
        os.environ.pop(name, None)
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # handed on to the simulator's Python
    os.environ.setdefault("GHARIAL_SEED", str(secrets.randbits(32)))
    print(f"seed: GHARIAL_SEED={os.environ['GHARIAL_SEED']}", flush=True)
    worst = 0
    try:
        for run in chosen(args.bench, args.config):
            try:
                simulate(run, args.short, args.waves, args.test, args.log)
                print(f"{run.name}: passed", flush=True)
            except Failed as failure:
                worst = max(worst, failure.exit_code)
                print(f"sim: {failure}", file=sys.stderr, flush=True)
    except (ValueError, tools.ToolError) as error:
        print(f"sim: {error}", file=sys.stderr)
        return 2
    return worst


if __name__ == "__main__":
    sys.exit(main())
