# SPDX-License-Identifier: Apache-2.0
"""Commands and completions in their rings."""
