# SPDX-License-Identifier: Apache-2.0
"""Images for boards: what is around the accelerator, and the way from sources to an image."""
