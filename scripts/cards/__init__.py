# SPDX-License-Identifier: Apache-2.0
"""Images for cards and modules that Vivado builds: top levels and scripts, from rtl/cards.yaml and rtl/configs.yaml."""
