# SPDX-License-Identifier: Apache-2.0
"""A server for tests with all that `gharial serve` gives it: keys, TLS, limits, pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from serving import Running, serving

from gharial.serve import Server, Settings
from gharial.serve.operation import Operation


@contextmanager
def operated(**settings: Any) -> Iterator[Running]:
    """A server with these settings, on a free port; it logs errors alone."""
    chosen = Settings(port=0, log_level="error", **settings)
    operation = Operation(chosen)
    server = Server(chosen, watcher=operation)
    operation.attach(server)
    try:
        with serving(server) as running:
            yield running
    finally:
        operation.close()
