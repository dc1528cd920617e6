# SPDX-License-Identifier: Apache-2.0
"""What a file is, good or bad, for a person or a script: `gharial inspect` (docs/inspect.md).

- `describe(path)`: a `Description` of any file; never raises for what the file holds.
"""

from gharial.inspect.describe import describe
from gharial.inspect.description import Description

__all__ = ["Description", "describe"]
