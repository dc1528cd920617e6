# SPDX-License-Identifier: Apache-2.0
"""`python -m gharial`: the same as the command `gharial`."""

import sys

from gharial.cli import main

if __name__ == "__main__":
    sys.exit(main())
