# SPDX-License-Identifier: Apache-2.0
"""Benches of rtl/batch/seats: seat memories, state mover, batch aux, seater."""
