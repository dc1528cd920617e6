# SPDX-License-Identifier: Apache-2.0
"""The other sides of the links to boards, for tests and measurements without a board (docs/links.md)."""
