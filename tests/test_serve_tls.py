# SPDX-License-Identifier: Apache-2.0
"""Certificates: good ones are served, and what is wrong with others is said before the server listens."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from certificates import MISSING, certificate, dated

from gharial.errors import BadInput
from gharial.serve.tls import Tls

pytestmark = pytest.mark.skipif(MISSING, reason="needs openssl to make certificates")


def test_a_good_pair(tmp_path: Path) -> None:
    said: list[str] = []
    cert, key = certificate(tmp_path)
    tls = Tls(cert, key, said.append)
    assert tls.ends - time.time() == pytest.approx(365 * 86400, abs=3600) and not said
    both = tmp_path / "both.pem"
    both.write_text(Path(cert).read_text() + Path(key).read_text())
    assert Tls(str(both)).ends == tls.ends
    tls.refresh()
    assert not said


def test_one_that_ends_soon_is_told_of_once(tmp_path: Path) -> None:
    said: list[str] = []
    tls = Tls(*certificate(tmp_path, "soon", "-days", "3"), said.append)
    tls.refresh()
    (sentence,) = said
    assert "ends on" in sentence


@pytest.mark.parametrize(("first", "last", "part"), [(2020, 2021, "has ended"), (2090, 2091, "is not good yet")])
def test_one_that_is_not_good_today(tmp_path: Path, first: int, last: int, part: str) -> None:
    pair = dated(tmp_path, first, last)
    with pytest.raises(BadInput, match=part) as raised:
        Tls(*pair)
    assert raised.value.where == pair[0] and "renew it" in str(raised.value)


def test_one_that_serves_for_nothing_here(tmp_path: Path) -> None:
    pair = certificate(tmp_path, "client", "-addext", "extendedKeyUsage=clientAuth")
    with pytest.raises(BadInput, match="is of no use to a server"):
        Tls(*pair)


def test_a_key_of_another(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path, "one")
    _, key = certificate(tmp_path, "two")
    with pytest.raises(BadInput, match="key of another certificate") as raised:
        Tls(cert, key)
    assert raised.value.where == key


def test_a_key_with_a_password(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    locked = tmp_path / "locked.key"
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(BadInput, match="needs a password"):
        Tls(cert, str(locked))


@pytest.mark.parametrize("content", [b"", b"no certificate", b"\xff\x00\x01", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_none(tmp_path: Path, content: bytes) -> None:
    cert, key = certificate(tmp_path)
    bad = tmp_path / "bad.pem"
    bad.write_bytes(content)
    for pair in ((str(bad), key), (cert, str(bad))):
        with pytest.raises(BadInput) as raised:
            Tls(*pair)
        assert raised.value.where == str(bad)
    with pytest.raises(BadInput, match="no such file"):
        Tls(cert, str(tmp_path / "none.key"))
    with pytest.raises(BadInput):
        Tls(key, cert)  # the wrong way round


def test_a_renewed_one_is_taken_while_it_runs(tmp_path: Path) -> None:
    said: list[str] = []
    cert, key = certificate(tmp_path)
    tls = Tls(cert, key, said.append)
    ends = tls.ends
    new = certificate(tmp_path, "new", "-days", "700")
    Path(new[0]).replace(cert)
    tls.refresh()  # half of it is there
    assert tls.ends == ends and "stays as it was" in said[-1]
    Path(new[1]).replace(key)
    tls.refresh()
    assert tls.ends > ends and "taken anew" in said[-1] and len(said) == 2
