# SPDX-License-Identifier: Apache-2.0
"""The page at `/`: a microphone or a recording, live text, latencies, the devices' load (docs/clients.md).

Everything that it needs comes from here; it works without internet, and asks nobody but the server that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from websockets.http11 import Request, Response

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    **{
        f"/page/{name}": (name, "text/javascript; charset=utf-8")
        for name in ("main.js", "audio.js", "capture.js", "load.js", "speech.js", "strip.js")
    },
}

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}

HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""What every part of the page is sent with."""


def routes() -> Mapping[str, Callable[[Request], Response]]:
    """What answers requests for the page, by path; its files are read once."""
    return {path: _answer(name, kind) for path, (name, kind) in _FILES.items()}


def _answer(name: str, kind: str) -> Callable[[Request], Response]:
    from gharial.serve.server import respond

    body = files(__name__).joinpath(name).read_bytes()

    def answer(_request: Request) -> Response:
        response = respond(200, body, kind)
        for header, value in HEADERS.items():
            response.headers[header] = value
        return response

    return answer
