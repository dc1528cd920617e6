# SPDX-License-Identifier: Apache-2.0
"""Tools of the RTL: where they are, what is generated, lint, synthesis. Run as modules from the root."""
