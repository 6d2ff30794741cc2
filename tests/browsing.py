"""A real browser for the tests of pages: loaded from disk, and nothing may complain or leave the page."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
]


def _lacking() -> str:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed (pip install playwright)"
    return "" if CHROMIUM else "there is no chromium (apt-get install chromium)"


if _lacking():
    warnings.warn(f"PAGES ARE NOT TESTED IN A BROWSER: {_lacking()}", stacklevel=1)
needs_browser = pytest.mark.skipif(bool(_lacking()), reason=f"NOT TESTED IN A BROWSER: {_lacking()}")


class Watched:
    """A page that must neither complain nor ask for anything but the file itself."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(300_000)  # milliseconds: the machine may be busy
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Any:
        self.page.goto(path.as_uri() + fragment)
        self.page.wait_for_selector("html[data-ready=true]")
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=300_000)
        yield chromium
        chromium.close()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    seen = Watched(page)
    yield seen
    asked = [url for url in seen.requests if not url.startswith(("file://", "data:", "about:", "blob:"))]
    page.close()
    assert not seen.complaints and not asked, (seen.complaints, asked)


def until(page: Any, condition: str) -> None:
    """Playwright's own waiting evaluates text inside the page, which the page's policy forbids."""
    for _ in range(1200):  # a minute: the machine may be busy
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never came true: {condition}")


def overlaps(page: Any) -> list[str]:
    """Pairs of neighbours that cover each other, and what sticks out of the window, once the page has settled."""
    for _ in range(40):  # a busy machine takes its time to lay a page out again
        if not (found := _overlaps(page)):
            break
        page.wait_for_timeout(50)
    return found


def _overlaps(page: Any) -> list[str]:
    return page.evaluate("""() => {
      const found = [];
      for (const group of ["main .panel", ".tile", "nav > *", "header > *"]) {
        const all = [...document.querySelectorAll(group)].map((e) => e.getBoundingClientRect()).filter((b) => b.width);
        for (let i = 0; i < all.length; i++) for (let j = i + 1; j < all.length; j++) {
          const a = all[i], b = all[j], across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          if (across > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) found.push(group);
        }
        for (const b of all) if (b.right > innerWidth + 1 || b.left < -1) found.push(`${group} sticks out`);
      }
      if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
      return found;
    }""")


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(p) / 255 for p in colour[4:-1].split(",")]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
