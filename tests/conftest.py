# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every test may use."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent

# What the tests simulate on the RTL takes less time than compiling it with full effort would.
os.environ.setdefault("GHARIAL_RTL_BUILD", "quick")

# No deadline: on a busy machine a slow example is no fault. A failing example is printed with what reproduces it.
hypothesis.settings.register_profile("gharial", deadline=None, print_blob=True)
hypothesis.settings.load_profile("gharial")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the large recordings and models: $GHARIAL_DATA, else `shared/data` beside the checkout; or skip."""
    named = os.environ.get("GHARIAL_DATA")
    if named:
        folder = Path(named)
        if not folder.is_dir():  # a wrong name must not turn into skipped tests
            pytest.fail(f"GHARIAL_DATA={named}: no such folder")
        return folder
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the large recordings and models: set GHARIAL_DATA to their folder")
    return folder


@pytest.fixture
def seed() -> int:
    """Seed of a random test, printed so that a failure shows it; GHARIAL_SEED repeats one."""
    value = int(os.environ.get("GHARIAL_SEED") or secrets.randbits(32))
    print(f"seed: GHARIAL_SEED={value}")
    return value


@pytest.fixture
def load_script() -> Callable[..., ModuleType]:
    """A function (path under the repository, or in a copy of it) -> the script as a fresh module, not run."""

    def load(name: str, root: Path = ROOT) -> ModuleType:
        path = root / name
        spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up there
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """A function that runs a command line: words -> `command.Outcome`."""
    from command import runner  # not every test needs the package

    return runner(capsys)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled models are cached for the session, and not in the user's home."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
