# SPDX-License-Identifier: Apache-2.0
"""Bringing an image onto a board (docs/flash.md): what is checked first, the loader, what is read back."""
