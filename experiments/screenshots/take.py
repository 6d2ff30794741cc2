"""The pictures of the inspector in the README: `python experiments/screenshots/take.py` (needs chromium)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from compile import compile_machine
from experiments.inspections import inspect_scene, machine_scene
from rasp import make_simulable
from rasp.gallery import machine

HERE = Path(__file__).parent
WIDTH = 1280
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 1230}, color_scheme="light")
        take(page, write_page(Path(folder), "bb4", 24, "lean"), "#layer=1&head=0&pos=157", "inspector-light.png")
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="dark")
        path = write_page(Path(folder), "palindrome", 14, "hard_alibi")
        take(page, path, "#layer=3&head=0&pos=93", "inspector-dark.png", zoom=True)
        browser.close()


def write_page(folder: Path, name: str, steps: int, backend: str) -> Path:
    tape = {"palindrome": "abba"}.get(name, "")
    tagged = make_simulable(machine(name), tape=list(tape), steps=steps)
    scene = machine_scene(tagged.machine, tagged.encode(list(tape)), steps, name)
    model = compile_machine(tagged.machine, backend=backend, steps=steps, check=False)
    return inspect_scene(model, scene).save(folder / f"{name}.html")


def take(page: Any, path: Path, fragment: str, name: str, zoom: bool = False) -> None:
    page.goto(path.as_uri() + fragment)
    page.wait_for_selector("html[data-ready=true]")
    if zoom:
        page.locator(".focus .buttons button", has_text="tokens").click()
        page.evaluate("scrollTo(0, 420)")
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / name)


if __name__ == "__main__":
    main()
