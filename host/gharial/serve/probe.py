# SPDX-License-Identifier: Apache-2.0
"""Asking the server of some settings, from the same machine, whether it takes streams."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request

from gharial.errors import GharialError
from gharial.serve.settings import Settings

WAIT_S = 5.0
"""A server that has not answered by then is not ready."""

_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_MOST = 4096  # bytes of an answer


def probe(settings: Settings) -> None:
    """Return if the server that runs with these settings is ready.

    The certificate is not looked at: it need not name this machine's own address.

    Raises:
        GharialError: nobody answers there in time, or it takes no streams; the message says why.
    """
    host = _ALL.get(settings.host, settings.host)
    scheme = "http" if settings.tls_certificate is None else "https"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}/ready"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        urllib.request.build_opener(*handlers).open(url, timeout=WAIT_S).close()
    except urllib.error.HTTPError as error:
        with error:
            raise GharialError(f"{url}: {_reason(error.read(_MOST)) or error}") from None
    except (OSError, http.client.HTTPException) as error:
        raise GharialError(f"{url}: no answer: {getattr(error, 'reason', error)}") from None


def _reason(body: bytes) -> str | None:
    try:
        return f"not ready: {json.loads(body)['reason']}"
    except (ValueError, KeyError, TypeError):
        return None
