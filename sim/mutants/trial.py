# SPDX-License-Identifier: Apache-2.0
"""One mutant on trial: a copy of the checkout with the mistake in it, and the tests that must notice it, run there."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sim.mutants.catalogue import Mutant, Stale

COPIED = ("host", "rtl", "scripts", "sim", "tests", "pyproject.toml")
LEFT = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
# What does not depend on the RTL under test, and is made anew where it is out of date.
TAKEN_ALONG = ("build/rtl", "build/sim/runtime")
BUILD_SECONDS = 900.0  # a machine that is that slow or that busy is of no use for this
LIBRARY = "from gharial.devices.verilator.build import library; from gharial.isa.configs import config; "
LIBRARY += "library(config('tiny'))"
NOT_BUILT = 3  # exit code of sim.run


class Verdict(StrEnum):
    """How a trial ended."""

    KILLED = "killed"
    SURVIVED = "survived"
    STALE = "stale"
    NOT_BUILT = "not built"  # the mistake is no Verilog
    ERROR = "error"  # the tests could not be run


@dataclass(frozen=True)
class Outcome:
    """A verdict, who gave it or why, and how long that took."""

    name: str
    verdict: Verdict
    by: str
    seconds: float


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, or None past its time."""

    code: int | None


class Commands:
    """Runs commands, each in a process group of its own, so that all that it started can be ended with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, seconds: float) -> Ended:
        """Run it, its output appended to `log`, for so many seconds at most.

        Raises:
            KeyboardInterrupt: `stop` was called.
        """
        with log.open("ab") as output:
            output.write(f"$ {' '.join(command)}\n".encode())
            output.flush()
            with self._lock:
                if self._stopped:
                    raise KeyboardInterrupt
                process = subprocess.Popen(
                    command, cwd=cwd, env=dict(env), stdout=output, stderr=output, start_new_session=True
                )
                self._running.add(process)
            try:
                return Ended(process.wait(seconds))
            except subprocess.TimeoutExpired:
                self._end(process)
                return Ended(None)
            finally:
                with self._lock:
                    self._running.discard(process)
                    if self._stopped:
                        raise KeyboardInterrupt

    def stop(self) -> None:
        """End everything that runs, and begin nothing any more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True)
class Court:
    """Where mutants are tried.

    Args:
        root: the checkout, of which copies are made; it is not touched.
        place: folder for the copies and the logs, one folder a trial.
        seed: of the tests' random choices.
        seconds: that tests may take.
        keep: leave the copies there.
    """

    root: Path
    place: Path
    seed: int
    commands: Commands
    seconds: float = 240.0
    keep: bool = False

    def copy(self, name: str) -> Path:
        """A copy of the checkout for the trial of that name, without what was built from the RTL."""
        folder = self.place / name
        shutil.rmtree(folder, ignore_errors=True)
        tree = folder / "tree"
        tree.mkdir(parents=True)
        for part in (*COPIED, *TAKEN_ALONG):
            source = self.root / part
            if source.is_dir():
                shutil.copytree(source, tree / part, ignore=LEFT)
            elif source.is_file():
                shutil.copyfile(source, tree / part)
        return tree

    def environment(self, tree: Path) -> dict[str, str]:
        """For commands within a copy, which takes the place of the installed package."""
        env = dict(os.environ)
        for name in ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "GHARIAL_BENCH"):
            env.pop(name, None)
        env |= {
            "PYTHONPATH": f"{tree / 'host'}{os.pathsep}{tree}",
            "GHARIAL_SEED": str(self.seed),
            "GHARIAL_RTL_BUILD": "quick",
            "OMP_NUM_THREADS": "1",
            # What is the same in all copies is compiled once, although each has it in another folder.
            "CCACHE_BASEDIR": str(tree),
            "CCACHE_NOHASHDIR": "1",
        }
        return env

    def without(self, name: str, killed_by: Sequence[str]) -> str | None:
        """The tests without a mistake: what does not pass, or None."""
        mutant = Mutant(name, "nothing", "", "", "", tuple(killed_by))
        log = self.place / name / "log"
        outcome = self._judge(mutant, self.copy(name), log, 4 * self.seconds, every=True)
        if outcome[0] == Verdict.SURVIVED:
            self._tidy(name)
            return None
        return f"{outcome[1]}: {log}"

    def trial(self, mutant: Mutant) -> Outcome:
        """Try a mutant."""
        start = time.monotonic()
        tree = self.copy(mutant.name)
        file = tree / mutant.file
        try:
            text = mutant.of(file.read_text(encoding="utf-8"))
            file.unlink()
            file.write_text(text, encoding="utf-8")
            verdict, by = self._judge(mutant, tree, self.place / mutant.name / "log", self.seconds)
        except (Stale, FileNotFoundError) as error:
            verdict, by = Verdict.STALE, str(error)
        if verdict == Verdict.KILLED:
            self._tidy(mutant.name)
        return Outcome(mutant.name, verdict, by, time.monotonic() - start)

    def _tidy(self, name: str) -> None:
        if not self.keep:
            shutil.rmtree(self.place / name / "tree", ignore_errors=True)

    def _judge(self, mutant: Mutant, tree: Path, log: Path, seconds: float, every: bool = False) -> tuple[Verdict, str]:
        """Run benches, then tests, up to the first that fails, or of the tests `every` one."""
        env = self.environment(tree)

        def command(*words: str, within: float) -> Ended:
            return self.commands.run([sys.executable, *words], tree, env, log, within)

        for name in mutant.benches:
            bench, _, test = name.partition(":")
            only = ["--test", test] if test else []
            ended = command("-m", "sim.run", "--short", "--log", *only, bench, within=BUILD_SECONDS + seconds)
            if ended.code == NOT_BUILT:
                return Verdict.NOT_BUILT, f"{bench} does not build"
            if ended.code not in (0, 1):
                return _elsewhere(ended, bench)
            if ended.code == 1:
                return Verdict.KILLED, _failed(tree / "build" / "sim" / bench.replace("/", "-"), bench)
        if mutant.tests:
            ended = command("-c", LIBRARY, within=BUILD_SECONDS)
            if ended.code != 0:
                return Verdict.NOT_BUILT, "the device does not build"
            stop = [] if every else ["-x"]
            results = tree / "build" / "results.xml"
            ended = command(
                *("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={results}"),
                *(*stop, *mutant.tests),
                within=seconds,
            )
            if ended.code not in (0, 1):
                return _elsewhere(ended, "the tests")
            if ended.code == 1:
                return Verdict.KILLED, _failed(results.parent, "tests")
            skipped = [
                case.get("name", "?") for case in ET.parse(results).iter("testcase") if case.find("skipped") is not None
            ]
            if skipped:
                return Verdict.ERROR, f"skipped: {', '.join(skipped)}"
        return Verdict.SURVIVED, f"{', '.join(mutant.killed_by)} passed"


def _elsewhere(ended: Ended, what: str) -> tuple[Verdict, str]:
    """Verdict on a command that neither passed nor failed."""
    if ended.code is None:
        return Verdict.KILLED, f"{what}: past its time"
    return Verdict.ERROR, f"{what} ended with exit code {ended.code}"


def _failed(folder: Path, what: str) -> str:
    """Which tests failed, by results.xml in the folder; `what` if it does not tell."""
    try:
        cases = list(ET.parse(folder / "results.xml").iter("testcase"))
    except (OSError, ET.ParseError):
        cases = []
    first, *more = list(_names(cases)) or [f"{what}: the simulation ended"]
    return f"{first} and {len(more)} more" if more else first


def _names(cases: Sequence[ET.Element]) -> Iterator[str]:
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            yield f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
