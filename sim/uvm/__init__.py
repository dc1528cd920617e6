# SPDX-License-Identifier: Apache-2.0
"""The pyuvm environment around the whole accelerator (docs/verification.md)."""
