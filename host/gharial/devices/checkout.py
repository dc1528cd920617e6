# SPDX-License-Identifier: Apache-2.0
"""The source checkout that this package is used from: some devices need more of it than the package holds."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from gharial.errors import BadInput

ROOT = Path(__file__).resolve().parents[3]
"""Where the checkout is, if there is one."""


def has(*names: str) -> bool:
    """Whether there is a checkout with these files, paths from its root."""
    return all((ROOT / name).is_file() for name in names)


def module(name: str) -> ModuleType:
    """A module of the checkout, such as `sim.reference`, without putting the checkout on the module path.

    Raises:
        BadInput: it cannot be imported.
    """
    package = name.partition(".")[0]
    folder = ROOT / package
    try:
        if package not in sys.modules:
            place = [str(folder)]
            spec = importlib.util.spec_from_file_location(
                package, folder / "__init__.py", submodule_search_locations=place
            )
            if spec is None or spec.loader is None:
                raise ImportError(f"no package {package}")
            found = importlib.util.module_from_spec(spec)
            sys.modules[package] = found
            spec.loader.exec_module(found)
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise BadInput("this folder of the checkout cannot be used", folder, error) from error
