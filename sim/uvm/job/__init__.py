# SPDX-License-Identifier: Apache-2.0
"""Jobs handed to the units, seen inside the engine."""
