# SPDX-License-Identifier: Apache-2.0
"""A board's image as a whole in simulation."""
