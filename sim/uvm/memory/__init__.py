# SPDX-License-Identifier: Apache-2.0
"""The device memory behind the AXI4 port: model, responder, monitor."""
