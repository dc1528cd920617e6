# SPDX-License-Identifier: Apache-2.0
"""Netlists for ECP5 as devices: the cells' behaviour, and what evaluates a netlist of them."""
