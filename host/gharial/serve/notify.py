# SPDX-License-Identifier: Apache-2.0
"""Tells the service manager how the server is: systemd's notification socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(*lines: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send lines such as "READY=1" to whoever started the server; False where nobody asked, or it did not work.

    Args:
        lines: assignments, as sd_notify(3) has them.
        environ: names the socket, NOTIFY_SOCKET; an @ in front stands for a name that is no file's.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            link.setblocking(False)
            link.sendto("\n".join(lines).encode(), address)
    except OSError:
        return False
    return True


def watchdog_s(environ: Mapping[str, str] = os.environ) -> float | None:
    """Seconds within which the service manager wants to hear "WATCHDOG=1"; None where it does not."""
    try:
        microseconds = int(environ.get("WATCHDOG_USEC", "0"))
        mine = int(environ.get("WATCHDOG_PID", os.getpid())) == os.getpid()
    except ValueError:
        return None
    return microseconds / 1e6 if mine and microseconds > 0 else None
