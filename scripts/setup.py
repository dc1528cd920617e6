#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make or bring up to date the environment in .venv: `scripts/setup.py run|test|lint|sim|synth|bitstream`.

Standard library only, and in syntax that Python 3.6 reads: a machine that lacks something must be told what, in one
line, and not with a traceback. What was installed is remembered in a stamp inside .venv, so a run that has nothing to
do ends at once. Exit codes: 0 ready, 2 something is missing or could not be installed.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWER_NAMES = ["python3.{}".format(minor) for minor in range(OLDEST[1], OLDEST[1] + 6)]
# target: extras of the package that it needs
TARGETS = {
    "run": [],
    "test": ["test", "rtl", "synth", "board"],
    "lint": ["lint", "rtl"],
    "sim": ["rtl"],
    "synth": ["rtl", "synth", "route"],
    "bitstream": ["rtl", "synth", "route", "board"],
}
SIMULATING = {"test", "sim"}  # these compile C++ when they run
STOPPING = {signal.SIGINT, signal.SIGTERM}

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "setup.log"
STAMP = VENV / "setup-stamp.json"
UNFINISHED = VENV / "setup-unfinished"  # there while pip works: packages may be half written

GHARIAL = ROOT / "host" / "gharial"
# C extension: folder of its sources
EXTENSIONS = {
    GHARIAL / "devices" / "emulator" / "_engine": GHARIAL / "devices" / "emulator" / "engine",
    GHARIAL / "features" / "_transform": GHARIAL / "features" / "transform",
    GHARIAL / "decoding" / "_search": GHARIAL / "decoding" / "core",
}
ISA = ROOT / "host" / "gharial" / "isa"
PINS = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
BUILD_INPUTS = [
    ROOT / "pyproject.toml",
    ROOT / "setup.py",
    ROOT / "scripts" / "gen_registers.py",
    ROOT / "rtl" / "csr" / "gharial.rdl",
    ROOT / "rtl" / "configs.yaml",
    ROOT / "rtl" / "boards.yaml",
]


class SetupError(Exception):
    """The setup cannot go on; the message is one line for the person at the terminal."""


def missing(what, found, wanted, remedy):
    return SetupError("{}: found {}, wanted {}; get it with: {}".format(what, found, wanted, remedy))


# --- What the machine must have -------------------------------------------------------------------------------------


def newer_python():
    """Path of the first Python on PATH that is new enough, or None; it is asked, for a link may be dead."""
    code = "import sys; sys.exit(sys.version_info < {})".format(OLDEST)
    for path in filter(None, map(shutil.which, NEWER_NAMES)):
        if subprocess.run([path, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return path
    return None


def check_machine(target):
    """Raise SetupError for the first thing that this Python or this machine lacks for the package and `target`."""
    this = "python{}.{}".format(*sys.version_info[:2])
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise missing("module venv", "none in " + sys.executable, "one with pip", "apt-get install " + this + "-venv")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        raise missing("C compiler", "no " + compiler[0], "gcc or clang", "apt-get install gcc libc6-dev")
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        raise missing("Python headers", "no Python.h in " + include, this, "apt-get install " + this + "-dev")
    trial = subprocess.run(
        [*compiler, "-fsyntax-only", "-I" + include, "-x", "c", "-"],
        input=b"#include <Python.h>\n#include <math.h>\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if trial.returncode != 0:
        why = first_error(trial.stdout.decode(errors="replace"))
        raise missing("C library headers", why, "a working " + compiler[0], "apt-get install libc6-dev")
    if target in SIMULATING:
        compiler = shlex.split(os.environ.get("CXX") or "g++")
        if shutil.which(compiler[0]) is None:
            raise missing("C++ compiler", "no " + compiler[0], "g++ 10 or newer", "apt-get install g++")


def first_error(text):
    """The first line of a tool's output that names an error, else its last line that is not empty."""
    if "Retry(total=0" in text:  # pip goes on to blame the versions it could not look up
        return "the package index cannot be reached (another one: PIP_INDEX_URL)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # pip announces every failed build with a line that says nothing
    named = (line for line in lines if "error:" in line.lower() and "subprocess-exited-with-error" not in line)
    return next(named, lines[-1] if lines else "no output")


# --- What is installed, and what should be --------------------------------------------------------------------------


def digest(paths):
    """Hash over names and contents; a file that is not there counts as such."""
    total = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else None
        total.update(repr((str(path.relative_to(ROOT)), content)).encode())
    return total.hexdigest()


def extension_sources():
    return sorted(path for folder in EXTENSIONS.values() for path in folder.glob("*.[ch]"))


def wanted_state():
    """What an up-to-date environment was made from: the interpreter and place, the pins, the inputs of the build."""
    return {
        "env": [platform.python_version(), platform.machine(), str(ROOT)],
        "pins": digest(PINS),
        "build": digest(BUILD_INPUTS + extension_sources()),
    }


def read_stamp():
    """What the environment was made from, {} if it was not finished; "targets" lists what is installed."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and PYTHON.exists() else {}


def write_stamp(state):
    part = STAMP.with_name(STAMP.name + ".part")
    part.write_text(json.dumps(state))
    part.replace(STAMP)


def products_exist():
    """Whether all that the build writes into the source tree is there (`make clean` removes it)."""
    needed = [ISA / "_registers.py", ISA / "_configs.yaml", ISA / "_boards.yaml"]
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    needed += [
        module.with_name(module.name + suffix) for module, sources in EXTENSIONS.items() if any(sources.glob("*.c"))
    ]
    return all(path.is_file() for path in needed)


def todo(target, stamp, wanted):
    """What is left to do: a subset of ["environment", "packages", "build"], in this order."""
    if stamp.get("env") != wanted["env"]:
        # Without a stamp an environment of the right version may be there all the same, made by hand.
        fresh = bool(stamp) or UNFINISHED.exists() or not usable_environment()
        return (["environment"] if fresh else []) + ["packages", "build"]
    steps = []
    if stamp.get("pins") != wanted["pins"] or not installed_for(target, stamp):
        steps.append("packages")
    if stamp.get("build") != wanted["build"] or not products_exist():
        steps.append("build")
    return steps


def installed_for(target, stamp):
    # Every target has all that `run` needs.
    return target in stamp.get("targets", []) or (target == "run" and bool(stamp.get("targets")))


def usable_environment():
    """Whether .venv works, has pip, and is of the version that runs this script."""
    code = "import pip, platform; print(platform.python_version())"
    try:
        out = subprocess.run([str(PYTHON), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return out.returncode == 0 and out.stdout.decode().strip() == platform.python_version()


# --- Doing it -------------------------------------------------------------------------------------------------------


def run_logged(what, command, began):
    """Run `command` with its output in the log, and its latest line on the terminal, if there is one."""
    terminal = sys.stderr.isatty()
    with LOG.open("a") as log:
        log.write("$ {}\n".format(" ".join(map(shlex.quote, command))))
        log.flush()
        # Between the start of the child and the `try` no signal may come, or nobody would end the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        child = subprocess.Popen(
            command,
            cwd=str(ROOT),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its own process group, so that its children can be ended with it
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        )
        output = []
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for raw in child.stdout:
                line = raw.decode(errors="replace")
                output.append(line)
                log.write(line)
                if terminal and not line.startswith("WARNING"):
                    width = shutil.get_terminal_size().columns - 1
                    shown = "setup: {:3.0f} s  {}".format(time.time() - began, line.strip())
                    sys.stderr.write("\r\033[K" + shown[:width])
                    sys.stderr.flush()
            code = child.wait()
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise
        finally:
            if terminal:
                sys.stderr.write("\r\033[K")
    if code != 0:
        why = first_error("".join(output))
        raise SetupError("{} failed (exit {}): {}; all of it: {}".format(what, code, why, LOG.relative_to(ROOT)))


def requirements(target):
    """Names from pyproject.toml: what builds the package, what it needs, what the target adds."""
    import tomllib  # 3.11; imported here so that an older Python gets as far as its message

    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    extras = project["project"]["optional-dependencies"]
    needed = project["build-system"]["requires"] + project["project"]["dependencies"]
    return needed + [name for extra in TARGETS[target] for name in extras[extra]]


def install(target, steps, began):
    """Carry out `steps` for `target`."""
    if "environment" in steps:
        if VENV.exists():
            shutil.rmtree(str(VENV))
        VENV.mkdir()
        # Followed to its end: this script may be run by the very .venv that was just removed.
        run_logged("python -m venv", [os.path.realpath(sys.executable), "-m", "venv", str(VENV)], began)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off"]
    pip += ["--no-warn-script-location", "--constraint", str(ROOT / "constraints.txt")]
    UNFINISHED.touch()
    try:
        if "packages" in steps:
            run_logged("pip", [*pip, *requirements(target)], began)
        if "build" in steps:
            # The build's own needs are installed and pinned already: no isolated environment, no second download.
            run_logged("building gharial", [*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], began)
    except SetupError:
        UNFINISHED.unlink()  # pip ended by itself and left whole packages
        raise
    UNFINISHED.unlink()


def setup(target):
    """Bring .venv up to what `target` needs; returns at once if it is."""
    wanted = wanted_state()
    if not todo(target, read_stamp(), wanted):
        return
    check_machine(target)
    lock = os.open(str(ROOT), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another setup may be at work in this checkout: then use what it leaves
        stamp = read_stamp()
        steps = todo(target, stamp, wanted)
        if not steps:
            return
        began = time.time()
        if "packages" in steps:
            say("installing what `{}` needs into .venv (a minute or so the first time)".format(target))
        if STAMP.exists():
            STAMP.unlink()
        install(target, steps, began)
        kept = stamp.get("targets", []) if stamp.get("env") == wanted["env"] else []
        if stamp.get("pins") != wanted["pins"]:
            kept = []
        write_stamp(dict(wanted, targets=sorted(set(kept) | {target})))
        say("ready for `{}` after {:.0f} s".format(target, time.time() - began))
    finally:
        os.close(lock)


def say(text):
    sys.stderr.write("setup: {}\n".format(text))
    sys.stderr.flush()


def main(argv):
    if len(argv) != 1 or argv[0] not in TARGETS:
        say("usage: scripts/setup.py " + "|".join(TARGETS))
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stopped by a supervisor: end pip too
    try:
        if sys.version_info < OLDEST:
            better = newer_python()
            if better is None:
                found = "{}.{}.{} ({})".format(*sys.version_info[:3], sys.executable)
                names = "apt-get install python3.11 python3.11-venv python3.11-dev"
                raise missing("Python", found, "{}.{} or newer".format(*OLDEST), names)
            os.execv(better, [better, str(Path(__file__).resolve()), *argv])
        setup(argv[0])
    except SetupError as stop:
        say(str(stop))
        return 2
    except KeyboardInterrupt:
        say("interrupted; run it again to finish")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
