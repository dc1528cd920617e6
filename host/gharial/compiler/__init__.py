# SPDX-License-Identifier: Apache-2.0
"""The compiler: a hardware checkpoint in, a program for one configuration out (docs/compiler.md)."""
