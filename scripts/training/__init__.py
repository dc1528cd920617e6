# SPDX-License-Identifier: Apache-2.0
"""Training of the demo model from recordings of single words (docs/training.md)."""
