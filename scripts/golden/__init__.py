# SPDX-License-Identifier: Apache-2.0
"""What test vectors are made of and with."""
