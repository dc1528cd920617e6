#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the demo model; all is in scripts.training, described in docs/training.md."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run by its path, it has this folder on the search path and not the one above.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from scripts.training.run import main

    sys.exit(main())
