"""The pictures of the inspector and the playground in the README: `python experiments/screenshots/take.py`.

It needs chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from compile import compile_machine
from compile.playground import playground
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
        live = playground().save(Path(folder) / "playground.html")
        page = browser.new_page(viewport={"width": WIDTH, "height": 1120}, color_scheme="light")
        take_live(
            page, live, "#task=machine&machine=palindrome&tape=abba&layer=3&head=1", "playground-light.png", WRITE
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 1120}, color_scheme="dark")
        take_live(page, live, "#machine=bb3&off=3.1&layer=3&head=1", "playground-dark.png", RUN)
        browser.close()


RUN = "playground.togglePlay()"
WRITE = """(async () => {
  for (let i = 0; i < 9; i++) await playground.oneLine();
  for (let i = 0; i < 5; i++) await playground.oneToken();
})()"""


def take_live(page: Any, path: Path, fragment: str, name: str, act: str) -> None:
    """The live page after it has been made to do something."""
    page.goto(path.as_uri() + fragment)
    page.wait_for_selector("html[data-ready=true]")
    while not page.evaluate("Boolean(playground.live)"):
        page.wait_for_timeout(50)
    page.select_option("#speed", "0")
    page.evaluate(act)
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / name)


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
