# SPDX-License-Identifier: Apache-2.0
"""What benches share: clock and reset, streams, memories, seeds."""
