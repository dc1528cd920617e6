# SPDX-License-Identifier: Apache-2.0
"""LSTMs that others trained and published, read without the frameworks that wrote them, and their front ends."""
