# SPDX-License-Identifier: Apache-2.0
"""Devices behind one interface, and the names by which they are opened."""
