# SPDX-License-Identifier: Apache-2.0
"""TLS: a certificate and its key, tried before the server listens, and taken anew when they change."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

from gharial.errors import BadInput, GharialError
from gharial.files import open_regular

SOON_S = 14 * 86400.0
"""A certificate that ends within this is told of."""

_CERTIFICATE = "a certificate in PEM, with those that it is signed by behind it"
_KEY = "a private key in PEM, without a password"
_EXPIRED, _NOT_YET = 10, 9  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED and _NOT_YET_VALID


class Tls:
    """A context for a server, and the end of its certificate.

    Args:
        certificate: file of the certificate and what it is signed by.
        key: file of its private key; None where that is in the same file.
        tell: called with a sentence about a certificate that ends soon, was taken anew, or could not be.

    Raises:
        BadInput: a file cannot be read, is none, does not match the other, or the certificate is not good today.
    """

    def __init__(
        self, certificate: str, key: str | None = None, tell: Callable[[str], object] = lambda sentence: None
    ) -> None:
        self._certificate, self._key, self._tell = certificate, key or certificate, tell
        self._state = self._look()
        self.context, self._ends = _tried(self._certificate, self._key)
        self._told = False
        self._warn()

    @property
    def ends(self) -> float:
        """When the certificate ends, in seconds since 1970."""
        return self._ends

    def refresh(self) -> None:
        """Take the files anew if they have changed; connections from now on have the new certificate."""
        state = self._look()
        if state != self._state:
            self._state = state
            try:
                _, self._ends = _tried(self._certificate, self._key)
                self.context.load_cert_chain(self._certificate, self._key)
            except (GharialError, OSError) as error:
                self._tell(f"the certificate stays as it was: {error}")
                return
            self._told = False
            self._tell(f"{self._certificate}: taken anew, good until {_day(self._ends)}")
        self._warn()

    def _warn(self) -> None:
        left = self._ends - time.time()
        if left < SOON_S and not self._told:
            self._told = True
            self._tell(f"{self._certificate}: the certificate ends on {_day(self._ends)}")

    def _look(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_changed(path) for path in (self._certificate, self._key))


def _changed(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _tried(certificate: str, key: str) -> tuple[ssl.SSLContext, float]:
    """A context with these files, and the certificate's end: both ends of a handshake are played to see it work."""
    for path, expected in ((certificate, _CERTIFICATE), (key, _KEY)):
        with open_regular(path, expected) as file:
            if b"-----BEGIN " not in file.read():
                raise BadInput("is not PEM", path, "no line that begins -----BEGIN", expected)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN  # the certificate itself is trusted
    try:
        client.load_verify_locations(certificate)
    except ssl.SSLError as error:
        raise BadInput("holds no certificate", certificate, _reason(error), _CERTIFICATE) from None
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        server.load_cert_chain(certificate, key, _no_password(key))
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            what = "is the key of another certificate"
            raise BadInput(what, key, _reason(error), f"the key of {certificate}", "name the pair") from None
        raise BadInput("holds no private key", key, _reason(error), _KEY) from None
    return server, _handshake(certificate, client, server)


def _no_password(key: str) -> Callable[[], str]:
    def refuse() -> str:
        raise BadInput("needs a password", key, "an encrypted key", _KEY, "openssl pkey -in KEY -out PLAIN")

    return refuse


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "unknown format").replace("_", " ").lower()


def _handshake(certificate: str, client: ssl.SSLContext, server: ssl.SSLContext) -> float:
    """The certificate's end, from a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_side=False)
    try:
        done = False
        while not done:
            done = True
            for end in (theirs, ours):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    done = False
    except ssl.SSLCertVerificationError as error:
        now = time.strftime("%Y-%m-%d", time.gmtime())
        what = {_EXPIRED: "has ended", _NOT_YET: "is not good yet"}.get(error.verify_code, "is of no use to a server")
        remedy = "renew it, or set the clock" if error.verify_code in (_EXPIRED, _NOT_YET) else "take another one"
        raise BadInput(
            what, certificate, error.verify_message, f"a server's certificate, good on {now}", remedy
        ) from None
    except ssl.SSLError as error:
        raise BadInput("is of no use to a server", certificate, _reason(error), _CERTIFICATE) from None
    found = theirs.getpeercert() or {}
    return float(ssl.cert_time_to_seconds(str(found["notAfter"])))
