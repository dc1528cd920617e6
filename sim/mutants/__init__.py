# SPDX-License-Identifier: Apache-2.0
"""Mutants of the RTL: mistakes put into it on purpose, each of which the tests must notice (docs/mutants.md)."""
