"""A headless Chromium that the tests drive, with nothing that it could ask the network for."""

import shutil
from pathlib import Path

import pytest

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-sync --disable-background-networking --disable-component-update
--hide-scrollbars""".split()


def open_browser(profile):
    """Return a started browser, or skip the test if Chromium is not installed."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not (Path(CHROMIUM).exists() and Path(DRIVER).exists()):
        pytest.skip("there is no Chromium: make test-packages installs it (Debian)")
    from selenium.webdriver.chrome.service import Service

    shutil.rmtree(profile, ignore_errors=True)
    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = selenium.Chrome(service=Service(DRIVER), options=options)
    light = [{"name": "prefers-color-scheme", "value": "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
    return browser


def resize(browser, width, height):
    """Set the page's viewport; a browser window would be at least 500 px wide."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def visit(browser, path, fragment=""):
    """Open a page from disk and wait until its explorer is ready and its charts are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")  # a changed fragment does not reload the page
    browser.get(f"{Path(path).as_uri()}{fragment}")
    WebDriverWait(browser, 60).until(
        lambda b: b.execute_script("return document.documentElement.dataset.ready")
    )
    # Charts are drawn when the browser lays the page out, at the latest in its next frame.
    wait_for_frames(browser)


def wait_for_frames(browser):
    """Wait until the browser has drawn two frames."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
