# SPDX-License-Identifier: Apache-2.0
"""What has been seen, and what has not."""
