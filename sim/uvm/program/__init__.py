# SPDX-License-Identifier: Apache-2.0
"""Programs to run: drawn sizes, compiled, damaged."""
