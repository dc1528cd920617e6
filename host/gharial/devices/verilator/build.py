# SPDX-License-Identifier: Apache-2.0
"""Compiles the RTL of a configuration with Verilator into a library, once for each state of the sources.

The library is kept in build/verilator/CONFIG of the checkout, under a digest of all that it depends on: sources of the
RTL and of the shim, options, versions of Verilator and compiler, and the CPU, for whose instructions it is compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gharial.devices import checkout
from gharial.errors import BadInput, DeviceError
from gharial.isa.configs import Config

TOPS = {"onchip": "gharial_onchip", "memory": "gharial_memory"}
"""Top module by where a configuration keeps weights."""
SHIM = Path(__file__).with_name("shim")
BUILD = checkout.ROOT / "build" / "verilator"

_NEEDED = ("rtl/configs.yaml", "scripts/rtl/tools.py", "scripts/rtl/sources.py", "sim/trace/trace_bindings.sv")
# Registers and memories start at random: what relies on a start at zero is found out. Properties written for formal
# proofs hold in every simulation too.
_OPTIONS = ["-O3", "--x-assign", "fast", "--x-initial", "unique", "--assert", "+define+FORMAL=1", "--no-timing"]
_OPTIONS += ["--quiet", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
_FLAGS = ["-fPIC", "-march=native", "-fvisibility=hidden", "-fno-gnu-unique"]
_OUTPUT = ["-include", str(SHIM / "output.h")]
_HOOKS = ["-DVL_USER_FINISH", "-DVL_USER_STOP", "-DVL_USER_FATAL"]
_SECONDS = {"tiny": 40}
_SECONDS_ELSE = 60
_EFFORT = "GHARIAL_RTL_BUILD"


@dataclass(frozen=True)
class Effort:
    """How hard the C++ compiler works: its option, and into how large pieces Verilator splits what it makes.

    The pieces are compiled in parallel, with Verilator's headers precompiled: reading those alone takes two seconds.
    """

    optimise: str
    split: int


EFFORTS = {"full": Effort("-O3", 20000), "quick": Effort("-O1", 0)}
"""By name: "quick" is compiled in half the time, and simulates more slowly."""


def problem() -> str | None:
    """Why the RTL cannot be compiled here, in one line, or None."""
    if not checkout.has(*_NEEDED):
        return "needs a source checkout with the RTL"
    tools: Any = checkout.module("scripts.rtl.tools")
    found: str | None = tools.lacking([tools.VERILATOR, tools.MAKE], compiler=True)
    if found is None and importlib.util.find_spec("peakrdl_regblock") is None:
        found = "peakrdl-regblock: not found; get it with: make sim"
    return found


def effort(name: str | None = None) -> str:
    """The effort of that name, or else of the environment variable GHARIAL_RTL_BUILD, or else "full".

    Raises:
        BadInput: there is none of that name.
    """
    found = name or os.environ.get(_EFFORT) or "full"
    if found not in EFFORTS:
        raise BadInput("unknown effort for compiling the RTL", None if name else _EFFORT, found, " or ".join(EFFORTS))
    return found


def library(config: Config, top: Path | None = None, build: str | None = None) -> Path:
    """The library of a configuration, compiled if it is not there yet, which a note on standard error announces.

    Args:
        config: the configuration.
        top: another file that holds a module of the top's name and ports, and all that it needs beside packages.
        build: name of the effort that compiling is worth, see `effort`.

    Raises:
        BadInput: the checkout or the tools are missing, or there is no such effort.
        DeviceError: it does not compile; the message names the log.
    """
    found = problem()
    if found is not None:
        what, _, remedy = found.partition("; ")
        raise BadInput(f"the RTL cannot be simulated: {what}", f"device verilator:{config.name}", remedy=remedy or None)
    tools: Any = checkout.module("scripts.rtl.tools")
    sources: Any = checkout.module("scripts.rtl.sources")
    try:
        tools.prepare()
        packages: list[Path] = sources.packages(config.name)
    except tools.ToolError as error:
        raise BadInput("the RTL cannot be simulated", f"device verilator:{config.name}", error) from error
    if top is None:
        observing = _observing(config)
        folders: list[Path] = sources.folders(*observing)
        bindings = [path for folder in observing for path in sorted(folder.glob("*_bindings.sv"))]
        files = [sources.WAIVERS, *packages, *bindings, sources.find(TOPS[config.weights], folders)]
    else:
        folders, files = [top.parent], [*packages, top]
    chosen = effort(build)
    options = [*_OPTIONS, "--output-split", str(EFFORTS[chosen].split), *sources.library(folders)]
    key = _key(tools, config, EFFORTS[chosen], files, folders)
    parts = [config.name, *([top.parent.name] if top else []), *([chosen] if chosen != "full" else [])]
    place = BUILD / "-".join(parts)
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = place / f"{key}.so"
        if not made.is_file():
            _compile(tools, config, EFFORTS[chosen], [*options, *map(str, files)], place, made)
    return made


def _observing(config: Config) -> list[Path]:
    """Folders of the modules that look into the RTL: for profiles, and for traces where there are some."""
    simulation = checkout.ROOT / "sim"
    trace = [] if config.in_memory else [simulation / "trace"]
    return [*trace, simulation / "profile", simulation / "profile" / config.weights]


def _compile(tools: Any, config: Config, worth: Effort, arguments: Sequence[str], place: Path, made: Path) -> None:
    seconds = _SECONDS.get(config.name, _SECONDS_ELSE) // (1 if worth is EFFORTS["full"] else 3)
    print(
        f"gharial: building the RTL simulation of {config.name} (once, about {seconds} s)", file=sys.stderr, flush=True
    )
    folder = place / "obj"
    env = tools.environment()
    flags = [*_FLAGS, *_HOOKS]
    verilate = [
        "verilator",
        "--cc",
        *arguments,
        "--top-module",
        TOPS[config.weights],
        "--prefix",
        "Vgharial",
        "--Mdir",
        str(folder),
    ]
    verilate += [option for flag in flags for option in ("-CFLAGS", flag)]
    jobs = str(min(4, os.cpu_count() or 1))
    # Only Verilator's own sources print; elsewhere output.h would hide the precompiled header, which must come first.
    speed = [f"OPT_FAST={worth.optimise}", "OPT_SLOW=-O1", f"OPT_GLOBAL={worth.optimise} {' '.join(_OUTPUT)}"]
    make = ["make", "-C", str(folder), "-f", "Vgharial.mk", "-j", jobs, *speed, "libVgharial.a", "libverilated.a"]
    include = tools.VERILATOR_ROOT / "include"
    part = made.with_suffix(".part")
    own = [tools.cxx(), "-std=c++20", "-Wall", "-Wextra", worth.optimise, *flags, *_OUTPUT]
    own += _defines(config)
    own += [f"-I{folder}", "-isystem", str(include), "-isystem", str(include / "vltstd")]
    shim = folder / "shim.cpp"  # in one piece, as every piece reads Verilator's headers
    cached = env["OBJCACHE"].split() if env.get("OBJCACHE") else []
    compiling = [*cached, *own, "-c", "-o", str(shim.with_suffix(".o")), str(shim)]
    link = [tools.cxx(), "-shared", "-o", str(part), str(shim.with_suffix(".o"))]
    link += [str(folder / "libVgharial.a"), str(folder / "libverilated.a")]
    link += ["-Wl,-Bsymbolic", "-Wl,--no-undefined", "-pthread", "-latomic"]
    log = place / "build.log"
    folder.mkdir(exist_ok=True)
    shim.write_text("".join(f'#include "{source}"\n' for source in sorted(SHIM.glob("*.cpp"))))
    with log.open("wb") as output:
        for command in (verilate, make, compiling, link):
            output.write(f"$ {' '.join(command)}\n".encode())
            output.flush()
            if subprocess.run(command, cwd=checkout.ROOT, env=env, stdout=output, stderr=output).returncode != 0:
                raise DeviceError(f"the RTL did not compile ({command[0]}): {_first_error(log)}", detail=str(log))
    part.replace(made)
    for old in place.glob("*.so"):
        if old != made:
            old.unlink(missing_ok=True)  # whoever has loaded it keeps it


def _defines(config: Config) -> list[str]:
    """What the shim has to know of the configuration."""
    found = [f"-DGHARIAL_ROWS={config.rows}", f"-DGHARIAL_COLS={config.cols}"]
    if config.in_memory:
        found += ["-DGHARIAL_IN_MEMORY", f"-DGHARIAL_PORTS={config.ports}", f"-DGHARIAL_PORT_BYTES={config.port_bytes}"]
        found += [f"-DGHARIAL_WINDOW_BYTES={config.window_bytes}ull", f"-DGHARIAL_MEMORY_RATE={config.memory_rate}"]
        found += [f"-DGHARIAL_MEMORY_LATENCY={config.memory_latency}"]
    return found


def _first_error(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if "rror" in line and line[0] != "$"]
    return lines[0][:200] if lines else "no error in the log"


def _key(tools: Any, config: Config, worth: Effort, files: Sequence[Path], folders: Sequence[Path]) -> str:
    """Digest of everything that the library depends on."""
    total = hashlib.sha256()
    for part in _dependencies(tools, config, worth, files, folders):
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()[:24]


def _dependencies(
    tools: Any, config: Config, worth: Effort, files: Sequence[Path], folders: Sequence[Path]
) -> Iterator[bytes]:
    yield repr((_OPTIONS, _FLAGS, _OUTPUT, _HOOKS, worth, _defines(config))).encode()
    yield Path(__file__).read_bytes()
    yield importlib.metadata.version("verilator").encode()
    yield subprocess.run([tools.cxx(), "--version"], capture_output=True, check=True).stdout
    yield _cpu()
    modules = [path for folder in folders for path in folder.glob("*.sv")]
    for path in sorted({*files, *modules, *SHIM.iterdir()}):
        yield path.name.encode()
        yield path.read_bytes()


def _cpu() -> bytes:
    """What the CPU can do, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")
    return platform.machine().encode() + flags
