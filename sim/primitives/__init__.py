# SPDX-License-Identifier: Apache-2.0
"""Models of vendor cells, and the bench of rtl/primitives."""
