# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

MISSING = shutil.which("openssl") is None

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost")
_AUTHORITY = """\
[ca]
default_ca = here
[here]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = policy
[policy]
commonName = supplied
"""


def certificate(folder: Path, name: str = "server", *more: str) -> tuple[str, str]:
    """A certificate for localhost, signed by itself, and its key."""
    pair = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    _openssl(
        "req",
        "-x509",
        *_NEW_KEY,
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-days",
        "365",
        *more,
        "-out",
        pair[0],
        "-keyout",
        pair[1],
    )
    return pair


def dated(folder: Path, first: int, last: int) -> tuple[str, str]:
    """One that is good from the beginning of one year to that of another, and its key."""
    pair, request, config = (
        (str(folder / "dated.pem"), str(folder / "dated.key")),
        folder / "request",
        folder / "config",
    )
    _openssl("req", "-new", *_NEW_KEY, "-out", str(request), "-keyout", pair[1])
    config.write_text(_AUTHORITY.format(folder=folder))
    (folder / "index").touch()
    (folder / "serial").write_text("01\n")
    dates = [f"{year}0101000000Z" for year in (first, last)]
    _openssl(
        "ca",
        "-batch",
        "-selfsign",
        "-config",
        str(config),
        "-in",
        str(request),
        "-keyfile",
        pair[1],
        "-startdate",
        dates[0],
        "-enddate",
        dates[1],
        "-out",
        pair[0],
    )
    return pair


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
