# SPDX-License-Identifier: Apache-2.0
"""Builds a card's image, where Vivado is: what it is given is written to build/cards/CARD, then it is run."""

from __future__ import annotations

import shutil
import subprocess
import sys

from gharial.errors import BadInput, GharialError
from scripts.cards import tcl
from scripts.cards.facts import Card
from scripts.rtl.tools import BUILD, ROOT

PROGRAM = "vivado"


def build(card: Card) -> int:
    """Build the image; the exit code.

    Raises:
        BadInput: there is no Vivado here.
        GharialError: Vivado stopped, or timing is missed.
    """
    folder = BUILD / "cards" / card.key
    facts = tcl.write(card, folder)
    command = [PROGRAM, "-mode", "batch", "-nojournal", "-log", str(folder / "vivado.log")]
    command += ["-source", str(tcl.BUILD_SCRIPT), "-tclargs", str(facts)]
    if shutil.which(PROGRAM) is None:
        raise BadInput(
            f"{card.name}: its image is built by Vivado, which is not on PATH",
            f"BOARD={card.key}",
            remedy=f"source Vivado's settings64.sh and run it again, or there: {' '.join(command)}",
        )
    print("bitstream: not yet run on hardware; docs/cards.md", file=sys.stderr)
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode != 0:
        raise GharialError(f"{card.name}: Vivado stopped, or timing is missed; all of it: {folder / 'vivado.log'}")
    print(f"  {(folder / 'image.bit').relative_to(ROOT)}")
    return 0
