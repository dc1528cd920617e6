# SPDX-License-Identifier: Apache-2.0
"""Simulation: the integer reference model and the benches of the RTL. Importable from the root of a checkout."""
