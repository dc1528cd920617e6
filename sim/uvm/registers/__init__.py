# SPDX-License-Identifier: Apache-2.0
"""The AXI4-Lite port: registers read and written."""
