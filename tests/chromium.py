# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by selenium; tests are skipped where there is none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 120.0  # a browser without a graphics card on a busy machine
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--window-size=1100,900",
)


def wanted() -> tuple[str, str]:
    """Paths of browser and driver; skips the test where one is missing."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    return browser, driver


@contextmanager
def chromium(microphone: Path | None = None, *flags: str) -> Iterator[Any]:
    """A browser with an empty profile; a WAV file is what its microphone hears, once."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    browser, driver = wanted()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        heard = [] if microphone is None else [f"--use-file-for-fake-audio-capture={microphone}%noloop"]
        for flag in (*FLAGS, f"--user-data-dir={profile}", *heard, *flags):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        page = webdriver.Chrome(options=options, service=Service(driver))
        try:
            page.set_page_load_timeout(PATIENCE_S)
            page.set_script_timeout(PATIENCE_S)
            yield page
        finally:
            page.quit()


def until(page: Any, what: Callable[[Any], Any]) -> Any:
    """Wait until something is true of a page; what it is."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, PATIENCE_S, poll_frequency=0.05).until(what)
