# SPDX-License-Identifier: Apache-2.0
"""Synthesises one part of a design for UltraScale+ with Yosys; other parts below it stay boxes, which are counted.

A part is a module with its parameters. What cannot be whole at once for its size is so taken apart, and put together
again by cost.py.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.rtl import sources, tools
from scripts.rtl.tools import BUILD, ROOT, ToolError

# Cells of the device that each number counts, with their weights. A LUT that two small functions could share counts for
# each of them.
NUMBERS: dict[str, dict[str, float]] = {
    "luts": {
        **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
        **dict.fromkeys(("SRL16E", "SRLC32E", "RAM32X1S", "RAM64X1S"), 1),
        **dict.fromkeys(("RAM128X1S", "RAM32X1D", "RAM64X1D"), 2),
        **dict.fromkeys(("RAM256X1S", "RAM128X1D", "RAM32M", "RAM64M"), 4),
        **dict.fromkeys(("RAM512X1S", "RAM256X1D", "RAM32M16", "RAM64M8", "RAM32X16DR8", "RAM64X8SW"), 8),
    },
    "flip_flops": {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1},
    "dsps": {"DSP48E2": 1},
    "block_rams": {"RAMB36E2": 1, "RAMB18E2": 0.5},  # of 36 Kbit
    "ultra_rams": {"URAM288": 1},
}
# Those that come with the ones above, or are none.
FREE = {"CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9", "INV", "GND", "VCC", "$scopeinfo"}
COUNTED = {cell for cells in NUMBERS.values() for cell in cells}
# The pass is stopped where block and distributed RAM have been given out: what is a memory then becomes flip-flops.
READ = "read_slang -j 1 {boxes} --top {top} {parameters} {library} {files}\nwrite_rtlil {folder}/read.il\n"
SYNTHESIS = """\
read_rtlil {folder}/part.il
hierarchy -top {top}
proc -noopt
setattr -set keep 1 a:keep %ci1:+[Q] t:$*dff* %i
synth_xilinx -family xcup -flatten -uram -noiopad -noclkbuf -top {top} -run begin:map_ffram
tee -q -o {folder}/memories.txt dump t:$mem_v2
{forbidden}
synth_xilinx -family xcup -flatten -uram -noiopad -noclkbuf -top {top} -run map_ffram:check
tee -q -o {folder}/stat.json stat -json
"""
MINUTES = 60
"""Longest that Yosys may take over a part."""


@dataclass(frozen=True)
class Part:
    """A module with the parameters that its instance gives it, as Yosys takes them."""

    module: str
    parameters: tuple[tuple[str, str], ...] = ()

    def name(self) -> str:
        """For folders and faults: the module, and what tells it from others of its kind."""
        return re.sub(r"[^\w-]", "", self.module + "".join(f"-{value}" for _, value in self.parameters))


def parameter_names(module: str) -> set[str]:
    """What may be given to a module: the parameters of its head, local ones left out."""
    text = sources.find(module, sources.folders()).read_text(encoding="utf-8")
    head = re.search(rf"\bmodule {module}\b.*?\);", text, re.DOTALL)
    return set(re.findall(r"\bparameter [^=;]*?(\w+) *=", head[0])) if head else set()


def boxes(text: str, modules: Collection[str]) -> Counter[Part]:
    """Instances of `modules` in RTLIL that Yosys wrote, with the parameters that they were given."""
    found: Counter[Part] = Counter()
    for module, lines in re.findall(r"^  cell \\(\w+) \S+\n((?:    parameter .*\n)*)", text, re.MULTILINE):
        if module in modules:
            given = re.findall(r"parameter (?:signed )?\\(\w+) (.+)", lines)
            known = parameter_names(module)
            found[Part(module, tuple((name, _value(value)) for name, value in given if name in known))] += 1
    return found


def without_parameters(text: str, modules: Collection[str]) -> str:
    """RTLIL in which the instances of `modules` are boxes without parameters: Yosys would look for their source."""
    names = "|".join(map(re.escape, modules))
    text = re.sub(rf"(?m)^(  cell \\(?:{names}) \S+\n)(?:    parameter .*\n)*", r"\1", text)
    return re.sub(rf"(?m)^(module \\(?:{names})\n)(?:  parameter .*\n)*", r"\1", text)


def _value(text: str) -> str:
    """A parameter's value in RTLIL, as slang's -G takes it."""
    sized = re.fullmatch(r"(\d+)'([01]+)", text)
    return f"{sized[1]}'d{int(sized[2], 2)}" if sized else text


def synthesise(
    part: Part, config: str, modules: Collection[str], folder: Path, forbidden: Mapping[str, str]
) -> tuple[dict[str, int], Counter[Part]]:
    """Cells of a part by kind, and the parts below it.

    Args:
        part: what is synthesised.
        config: hardware configuration.
        modules: those that are parts of their own where they are found below.
        folder: for all that is written.
        forbidden: kinds of cells that are not wanted, with the selection that finds them; names go to KIND.txt.

    Raises:
        ToolError: Yosys refused it, with its last words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    below = [name for name in modules if name != part.module]
    looked_in = sources.folders()
    read = READ.format(
        boxes=" ".join(f"--blackboxed-module {name}" for name in [*below, "DSP48E2"]),
        top=part.module,
        parameters=" ".join(f"-G {name}={value}" for name, value in part.parameters),
        library=" ".join(sources.library(looked_in)),
        files=" ".join(map(str, [*sources.packages(config), sources.find(part.module, looked_in)])),
        folder=folder,
    )
    _yosys(part, folder, "read", read)
    text = (folder / "read.il").read_text()
    selections = "\n".join(f"tee -q -o {folder}/{kind}.txt select -list {what}" for kind, what in forbidden.items())
    script = SYNTHESIS.format(top=part.module, folder=folder, forbidden=selections)
    _synthesise_once(part, folder, without_parameters(text, below), script)
    stat = json.loads((folder / "stat.json").read_text())
    cells = {name: int(count) for name, count in stat["design"]["num_cells_by_type"].items() if name not in below}
    return cells, boxes(text, below)


def _synthesise_once(part: Part, folder: Path, text: str, script: str) -> None:
    """Synthesise RTLIL, unless the same has been: for another configuration, or before a change that does not reach it.

    What came out is kept in build/synth/parts, by what went in. Where its sources stand makes no difference.
    """
    what = re.sub(r"(?m)^ *(?:attribute \\src .*|autoidx .*)\n", "", text)
    version = importlib.metadata.version("pyosys")
    digest = hashlib.sha256("\n".join([version, script.replace(str(folder), ""), what]).encode()).hexdigest()
    kept = BUILD / "synth" / "parts" / f"{part.module}-{digest[:16]}"
    if not kept.is_dir():
        (folder / "part.il").write_text(text)
        _yosys(part, folder, "synth", script)
        new = kept.with_suffix(f".{os.getpid()}")
        new.mkdir(parents=True)
        for name in _results(script):
            shutil.copy(folder / name, new / name)
        new.rename(kept)
    for name in _results(script):
        shutil.copy(kept / name, folder / name)


def _results(script: str) -> list[str]:
    """Names of the files that a script writes what it found to."""
    return [Path(path).name for path in re.findall(r"-o (\S+)", script)]


def _yosys(part: Part, folder: Path, step: str, script: str) -> None:
    (folder / f"{step}.ys").write_text(script)
    log = folder / f"{step}.log"
    command = ["yosys", "-l", str(log), "-s", str(folder / f"{step}.ys")]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=tools.environment(), stderr=subprocess.PIPE, text=True, timeout=60 * MINUTES
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{part.name()}: Yosys takes more than {MINUTES} minutes; all of it: {log}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()][-20:]
        raise ToolError("\n".join([f"{part.name()}: Yosys stopped; all of it: {log}", *said]))


def numbers(cells: Mapping[str, int]) -> dict[str, float]:
    """What `cells` take of the device."""
    return {
        name: sum(weight * cells.get(cell, 0) for cell, weight in weights.items()) for name, weights in NUMBERS.items()
    }


def unknown(cells: Mapping[str, int]) -> list[str]:
    """Cells that are neither counted nor free, each as a fault."""
    return [f"{count} cells {name} are not counted" for name, count in cells.items() if name not in COUNTED | FREE]
