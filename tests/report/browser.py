"""A real headless Chromium that looks at a page: what it shows, says on its console, asks the network for."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import JavascriptException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

# Without these it asks for its maker's servers at every start.
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--window-size=1400,1000",
)  # fmt: skip


def browser_skip_reason() -> str:
    """Why no page can be looked at here; empty where it can."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(missing)} (Debian: chromium, chromium-driver)" if missing else ""


@contextmanager
def browser() -> Iterator[WebDriver]:
    """A browser with an empty profile; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ncclcheck-chromium-") as profile:
        options = Options()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(60)
        try:
            yield driver
        finally:
            driver.quit()


def open_page(driver: WebDriver, file: Path, *, dark: bool = False) -> int:
    """The page is open in that colour scheme; returns after how many milliseconds it could be used."""
    wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    complaints(driver)
    requests(driver)
    driver.get(file.as_uri())
    # `get` may return before the page's own script has ended, on a busy machine.
    ready = WebDriverWait(driver, 60, ignored_exceptions=[JavascriptException]).until(
        lambda here: here.execute_script("return document.documentElement.dataset.ready")
    )
    return int(ready)


def complaints(driver: WebDriver) -> list[str]:
    """What the console said since this was asked last."""
    return [f"{entry['level']}: {entry['message']}" for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]


def requests(driver: WebDriver) -> list[str]:
    """What was asked for since this was asked last, but for the file itself and data that is in it."""
    sent = []
    for entry in driver.get_log("performance"):  # type: ignore[no-untyped-call]
        message: dict[str, Any] = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            sent.append(message["params"]["request"]["url"])
    return [url for url in sent if not url.startswith(("file://", "data:", "blob:", "chrome://"))]


def screenshot(driver: WebDriver) -> bytes:
    """What is in the window, as PNG."""
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"])


def printed(driver: WebDriver) -> bytes:
    """The page as it comes out of a printer: a PDF."""
    return base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
