# SPDX-License-Identifier: Apache-2.0
"""Benches of the whole core and of the memory beside it."""
