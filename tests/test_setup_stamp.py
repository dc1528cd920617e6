# SPDX-License-Identifier: Apache-2.0
"""What scripts/setup.py repeats, and what not, after a change, a failure or an interruption. Nothing is installed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

FILES = ["scripts/setup.py", "scripts/gen_registers.py", "pyproject.toml", "constraints.txt", "setup.py"]
SHARED = ["rtl/csr/gharial.rdl", "rtl/configs.yaml"]
FOLDERS = ["host/gharial/devices/emulator/engine", "host/gharial/features/transform", "host/gharial/decoding/core"]


class Installer:
    """The script in a copy of the checkout, with its commands recorded in place of run, and their traces left."""

    def __init__(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = module
        self.commands: list[str] = []
        self.fail: type[BaseException] | None = None
        self.fail_at = ""
        monkeypatch.setattr(module, "run_logged", self.record)
        monkeypatch.setattr(module, "check_machine", lambda target: None)

    def record(self, what: str, command: list[str], began: float) -> None:
        kind = "environment" if "venv" in command else "build" if "--editable" in command else "packages"
        self.commands.append(kind)
        if self.fail is not None and kind == self.fail_at:
            raise self.fail("failed")
        if kind == "environment":
            python = Path(self.module.PYTHON)
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            python.chmod(0o755)
        if kind == "build":
            suffix = self.module.sysconfig.get_config_var("EXT_SUFFIX")
            extensions = ("devices/emulator/_engine", "features/_transform", "decoding/_search")
            built = [f"../{name}{suffix}" for name in extensions]
            for name in ("_registers.py", "_configs.yaml", "_boards.yaml", *built):
                (self.module.ISA / name).touch()

    def __call__(self, target: str) -> list[str]:
        """Run for `target`; the kinds of commands that took."""
        self.commands = []
        assert self.module.main([target]) == 0
        return self.commands

    def failing(self, target: str, at: str, error: type[BaseException]) -> int:
        """Run for `target` with `error` raised by the step `at`; the exit code."""
        self.fail, self.fail_at = error, at
        try:
            return int(self.module.main([target]))
        finally:
            self.fail = None


@pytest.fixture
def installer(tmp_path: Path, load_script: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> Installer:
    for name in FILES + SHARED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "step.c").write_text("int step;\n")
    (tmp_path / "host/gharial/isa").mkdir()
    return Installer(load_script("scripts/setup.py", tmp_path), monkeypatch)


def test_first_run_does_all_and_the_second_nothing(installer: Installer) -> None:
    assert installer("run") == ["environment", "packages", "build"]
    assert installer("run") == []


def test_test_extends_the_same_environment(installer: Installer) -> None:
    installer("run")
    assert installer("test") == ["packages"]
    assert installer("lint") == ["packages"]
    assert [installer(target) for target in ("run", "test", "lint")] == [[], [], []]


def test_run_is_part_of_test(installer: Installer) -> None:
    installer("test")
    assert installer("run") == []


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("constraints.txt", ["packages"]),
        ("pyproject.toml", ["packages", "build"]),
        ("setup.py", ["build"]),
        ("scripts/gen_registers.py", ["build"]),
        ("rtl/csr/gharial.rdl", ["build"]),
        ("rtl/configs.yaml", ["build"]),
        (f"{FOLDERS[0]}/step.c", ["build"]),
        (f"{FOLDERS[0]}/new.c", ["build"]),
        (f"{FOLDERS[1]}/step.c", ["build"]),
        (f"{FOLDERS[1]}/new.h", ["build"]),
        ("host/gharial/module.py", []),
    ],
)
def test_a_change_repeats_what_depends_on_it(installer: Installer, tmp_path: Path, name: str, steps: list[str]) -> None:
    installer("run")
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    assert installer("run") == steps
    assert installer("run") == []


def test_new_pins_hold_for_every_target(installer: Installer, tmp_path: Path) -> None:
    installer("test")
    with (tmp_path / "constraints.txt").open("a") as file:
        file.write("# changed\n")
    assert installer("run") == ["packages"]
    assert installer("test") == ["packages"]


@pytest.mark.parametrize("name", ["_registers.py", "_configs.yaml", "_boards.yaml"])
def test_a_removed_product_is_built_again(installer: Installer, name: str) -> None:
    installer("run")
    (installer.module.ISA / name).unlink()
    assert installer("run") == ["build"]


def test_another_python_or_place_makes_a_new_environment(installer: Installer, monkeypatch: pytest.MonkeyPatch) -> None:
    installer("test")
    monkeypatch.setattr(installer.module.platform, "python_version", lambda: "3.99.0")
    assert installer("run") == ["environment", "packages", "build"]
    assert installer("test") == ["packages"]  # what the old one had does not count


@pytest.mark.parametrize("at", ["environment", "packages", "build"])
def test_interrupted_leaves_no_stamp(installer: Installer, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert installer.failing("run", at, KeyboardInterrupt) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "setup: interrupted; run it again to finish"
    assert not installer.module.STAMP.exists()
    assert installer("run") == ["environment", "packages", "build"]  # packages may be half written


@pytest.mark.parametrize("at", ["packages", "build"])
def test_failed_step_leaves_no_stamp_and_keeps_the_environment(installer: Installer, at: str) -> None:
    assert installer.failing("run", at, installer.module.SetupError) == 2
    assert not installer.module.STAMP.exists()
    assert installer("run") == ["packages", "build"]


def test_interrupted_update_forgets_the_old_stamp(installer: Installer, tmp_path: Path) -> None:
    installer("run")
    (tmp_path / "constraints.txt").write_text("")
    installer.failing("run", "packages", KeyboardInterrupt)
    assert not installer.module.STAMP.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"env": '])
def test_a_damaged_stamp_is_no_stamp(installer: Installer, content: str) -> None:
    installer("run")
    installer.module.STAMP.write_text(content)
    assert installer("run") == ["packages", "build"]


def test_failing_command_is_told_in_one_line_and_logged(
    tmp_path: Path, load_script: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_script("scripts/setup.py")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOG", tmp_path / "setup.log")
    code = "import sys; print('Collecting x\\nERROR: No matching distribution for x\\nWARNING: new pip'); sys.exit(3)"
    with pytest.raises(module.SetupError) as caught:
        module.run_logged("pip", [sys.executable, "-c", code], 0.0)
    assert str(caught.value) == "pip failed (exit 3): ERROR: No matching distribution for x; all of it: setup.log"
    assert "Collecting x\n" in (tmp_path / "setup.log").read_text()


def test_stopped_setup_takes_its_children_along(tmp_path: Path, load_script: Callable[..., ModuleType]) -> None:
    """SIGTERM to the script ends what its command had started: else it would go on writing into .venv."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/setup.py").write_bytes((ROOT / "scripts/setup.py").read_bytes())
    grandchild = f"sleep 600 & echo $! >{tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait"
    code = (
        "import subprocess, sys, time, setup\n"
        "start = subprocess.Popen\n"  # the signal comes while the command is being started, at the worst time of all
        "subprocess.Popen = lambda *args, **options: (start(*args, **options), time.sleep(0.3))[0]\n"
        f"setup.setup = lambda target: setup.run_logged('step', ['sh', '-c', {grandchild!r}], 0.0)\n"
        "sys.exit(setup.main(['run']))"
    )
    script = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path / "scripts", stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "pid").exists():
        assert script.poll() is None, script.communicate()
        time.sleep(0.01)
    script.send_signal(signal.SIGTERM)
    _, errors = script.communicate(timeout=60)
    assert (script.returncode, errors) == (130, "setup: interrupted; run it again to finish\n")
    sleeper = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    for _ in range(3000):  # it ends soon; a zombie that nobody reaps has ended too
        if not sleeper.exists() or ") Z " in sleeper.read_text():
            return
        time.sleep(0.01)
    pytest.fail("the command's child is still running")


def test_unreachable_index_is_not_blamed_on_versions(load_script: Callable[..., ModuleType]) -> None:
    output = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken\nERROR: Cannot install numpy\n"
    assert "index cannot be reached" in load_script("scripts/setup.py").first_error(output)


def test_requirements_are_those_of_pyproject(load_script: Callable[..., ModuleType]) -> None:
    requirements = load_script("scripts/setup.py").requirements
    assert {"setuptools", "numpy"} <= set(requirements("run")) and "pytest" not in requirements("run")
    assert set(requirements("run")) < set(requirements("test"))
    assert {"pytest", "torch"} <= set(requirements("test")) and "mypy" in requirements("lint")
