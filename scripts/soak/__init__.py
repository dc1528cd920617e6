# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind against a server, for a long time (scripts/bench_soak.py)."""
