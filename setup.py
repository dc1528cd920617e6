# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: the C extensions, and the files generated from rtl/ before anything is built."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build import build

ROOT = Path(__file__).resolve().parent
ISA = ROOT / "host" / "gharial" / "isa"
GHARIAL = Path("host", "gharial")
# Module, folder of its C sources, further options of the compiler.
EXTENSIONS = (
    ("gharial.devices.emulator._engine", GHARIAL / "devices" / "emulator" / "engine", []),
    # Its round-off is specified: every product and sum is rounded by itself, on CPUs with fused ones too.
    ("gharial.features._transform", GHARIAL / "features" / "transform", ["-ffp-contract=off"]),
    # Scores decide which hypotheses stay, so they are the same on every CPU. Small, and no call by way of a table of
    # addresses, as others' code runs in between.
    ("gharial.decoding._search", GHARIAL / "decoding" / "core", ["-O2", "-fvisibility=hidden", "-ffp-contract=off"]),
)
REGISTERS = ROOT / "rtl" / "csr" / "gharial.rdl"
# Copied into the package, each under its name with an underscore before it.
TABLES = (ROOT / "rtl" / "configs.yaml", ROOT / "rtl" / "boards.yaml")


class Generate(Command):
    """Bring what the hardware sources say into the package: register map, named configurations and boards.

    A step of its own, first of the build, in place: so that wheels, source installs and editable installs all have the
    files, and a failure stops each of them.
    """

    description = "generate package files from rtl/"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []
    editable_mode = False

    def initialize_options(self) -> None:
        """Has no options."""

    def finalize_options(self) -> None:
        """Has no options."""

    def run(self) -> None:
        """Write the generated files where they differ from what is there."""
        generator = [sys.executable, str(ROOT / "scripts" / "gen_registers.py")]
        subprocess.run([*generator, str(REGISTERS), "--output", str(ISA / "_registers.py")], check=True)
        for table in TABLES:
            shutil.copyfile(table, ISA / f"_{table.name}")

    def get_source_files(self) -> list[str]:
        """Inputs, for the source distribution."""
        return [str(path.relative_to(ROOT)) for path in (REGISTERS, *TABLES)]

    def get_outputs(self) -> list[str]:
        """Nothing under the build folder: build_py takes the files along."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """Nothing is built elsewhere than where it is used."""
        return {}


class Build(build):
    """The usual build with the generated files first."""

    sub_commands = [("generate", None), *build.sub_commands]  # noqa: RUF012 - distutils' own shape


def extensions() -> list[Extension]:
    """The C extensions; CPU-specific code is chosen at run time, so nothing here depends on the build machine."""
    return [
        Extension(
            name,
            sources=sorted(path.as_posix() for path in folder.glob("*.c")),
            depends=sorted(path.as_posix() for path in folder.glob("*.h")),
            include_dirs=[folder.as_posix()],
            libraries=["m"],
            extra_compile_args=["-O3", "-Wall", "-Wextra", *options],
        )
        for name, folder, options in EXTENSIONS
        if any(folder.glob("*.c"))
    ]


setup(ext_modules=extensions(), cmdclass={"build": Build, "generate": Generate})
