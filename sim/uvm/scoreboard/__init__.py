# SPDX-License-Identifier: Apache-2.0
"""What the accelerator should do, and what it did."""
