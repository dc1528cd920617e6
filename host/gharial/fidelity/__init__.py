# SPDX-License-Identifier: Apache-2.0
"""How near a program comes to its checkpoint in float (docs/quantisation.md).

- `compare`: both led along the same path, every tensor side by side.
- `judge`, `require`: the bound that the compiler holds programs to.
- `gharial.fidelity.report`: all of it as a page and as JSON.
"""

from gharial.fidelity.bound import Verdict, judge, require, sample, verdict
from gharial.fidelity.compare import Comparison, Recording, compare

__all__ = ["Comparison", "Recording", "Verdict", "compare", "judge", "require", "sample", "verdict"]
