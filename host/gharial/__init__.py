# SPDX-License-Identifier: Apache-2.0
"""Gharial: an open accelerator for streaming LSTM speech recognition, and the host software that drives it."""

__version__ = "0.1.0.dev0"
