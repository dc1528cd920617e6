# SPDX-License-Identifier: Apache-2.0
"""Converters that bring LSTMs of other frameworks to the machine, as examples (docs/bring_your_lstm.md)."""
