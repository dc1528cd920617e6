# SPDX-License-Identifier: Apache-2.0
"""Scripts of the project. Most are run as files; those of a package as modules from the root."""
