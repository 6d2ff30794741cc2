"""The inspector's pages in a real browser, loaded from disk: what a person does, and what is then on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import Watched, contrast, needs_browser, overlaps, until
from inspected import HOSTILE, compiled, hostile_machine, random_model

from compile import compile_machine, inspect
from compile.inspector.index import Card, index_page
from rasp import TuringMachine

HOVER_MS = 50
pytestmark = needs_browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def increment(folder: Path) -> Path:
    model, trace = compiled("increment", "hard_alibi")
    return inspect(model, trace, title="increment").save(folder / "increment.html")


def patterns(model: Any, tokens: np.ndarray) -> list[np.ndarray]:
    _, cache = model.run_with_cache(tokens)
    return [
        cache[f"blocks.{layer}.attn.hook_pattern"][0, :, model.prepended :].numpy()
        for layer in range(model.config.layers)
    ]


def marked(page: Any) -> str:
    """The cell that the tape view marks as the one most attended to."""
    return page.evaluate(
        "(() => { const c = document.querySelector('.cell.most'); "
        "return c.classList.contains('start') ? 'start' : c.dataset.position; })()"
    )


def readout(page: Any) -> str:
    return page.inner_text("#readout")


def test_every_head_has_its_label_and_window(watched: Watched, increment: Path) -> None:
    page = watched.open(increment)
    model, _ = compiled("increment", "hard_alibi")
    for layer, shape in enumerate(model.config.shapes):
        for head, window in enumerate(shape.windows):
            tile = page.locator(f'[data-head="{layer}.{head}"]')
            assert tile.locator(".tile-label").text_content() == model.config.annotations.heads[layer][head].label
            assert tile.locator(".window").text_content() == ("all" if window is None else f"w {window}")
    assert "72 of 72 tokens right" in page.inner_text("#summary") and "increment" in page.inner_text("h1")


def test_click_enlarges_a_head_and_marks_what_it_attends_to_most(watched: Watched, increment: Path) -> None:
    page = watched.open(increment)
    model, trace = compiled("increment", "hard_alibi")
    weights = patterns(model, trace)
    for layer, shape in enumerate(model.config.shapes):
        for head in range(shape.heads):
            page.click(f'[data-head="{layer}.{head}"]')
            assert page.inner_text(".head-title").startswith(f"Layer {layer}, head {head} · ")
            assert page.inner_text(".head-label") == model.config.annotations.heads[layer][head].label
            for position in (0, 9, 40, len(trace) - 1):
                page.evaluate(f"inspector.go({position})")
                best = int(weights[layer][head, position].argmax()) - model.prepended
                assert marked(page) == ("start" if best < 0 else str(best))


def test_cells_of_the_large_map_have_the_colour_of_their_weight(watched: Watched, increment: Path) -> None:
    """The pixels themselves: dark exactly where the matching head looks, white elsewhere."""
    page = watched.open(increment, "#layer=3&head=0&pos=20")
    model, trace = compiled("increment", "hard_alibi")
    weights = patterns(model, trace)[3][0]
    reds = np.array(
        page.evaluate("""() => {
      const m = inspector.panes[0].matrix, { width, height } = m.canvas;
      const pixels = m.canvas.getContext("2d").getImageData(0, 0, width, height).data;
      const red = (b) => pixels[4 * (Math.floor(b.y + b.h / 2) * width + Math.floor(b.x + b.w / 2))];
      const row = (i) => Array.from({ length: m.columns }, (_, j) => red(m.cellBox(i, j)));
      return Array.from({ length: m.rows }, (_, i) => row(i));
    }""")
    )
    assert reds.shape == weights.shape
    assert (reds[weights == weights.max(axis=1, keepdims=True)] < 40).all()
    assert (reds[weights < 0.002] > 200).all()  # white, or a thin line between tapes


def test_large_map_tells_the_weight_under_the_pointer(watched: Watched, increment: Path) -> None:
    page = watched.open(increment, "#layer=0&head=1&pos=20")
    model, trace = compiled("increment", "hard_alibi")
    page.locator(".overlay").scroll_into_view_if_needed()
    box = page.locator(".overlay").bounding_box()
    for row, column in ((30, 30 + model.prepended), (30, 29 + model.prepended), (30, 12), (12, 40)):
        at = page.evaluate(f"inspector.panes[0].matrix.cellBox({row}, {column})")
        page.mouse.move(box["x"] + at["x"] + at["w"] / 2, box["y"] + at["y"] + at["h"] / 2)
        weight = patterns(model, trace)[0][1, row, column]
        said = page.inner_text(".hover")
        assert said.startswith(f"from {row} ") and f"{weight:.2f}" in said
    assert "in its future" in said
    page.mouse.click(box["x"] + at["x"] + at["w"] / 2, box["y"] + at["y"] + at["h"] / 2)
    assert readout(page).startswith("position 12 ")


def test_keys_buttons_and_playing_step_through_generation(watched: Watched, increment: Path) -> None:
    page = watched.open(increment, "#layer=3&head=0&pos=20")
    model, trace = compiled("increment", "hard_alibi")
    names = model.config.token_names
    for key, position in (
        ("ArrowRight", 21),
        ("ArrowRight", 22),
        ("ArrowLeft", 21),
        ("ArrowDown", 30),
        ("ArrowUp", 21),
        ("End", len(trace) - 1),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert readout(page).startswith(f"position {position} of")
        assert page.get_attribute(".cell.now", "data-position") == str(position)
    page.click("#forward")
    assert readout(page).startswith("position 1 of") and page.url.endswith("pos=1")
    page.evaluate("inspector.go(20)")
    verdict = page.inner_text(".verdict")
    assert names[trace[21]] in verdict and "✓" in verdict
    assert page.text_content(".cell.next") == names[trace[21]]
    page.select_option("#speed", "60")
    page.locator("#title").click()
    page.keyboard.press("Space")
    until(page, "inspector.position > 24")
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press("Space")
    stopped = page.evaluate("inspector.position")
    page.wait_for_timeout(120)
    assert page.evaluate("inspector.position") == stopped and page.inner_text("#play") == "Play"


def test_deep_links_lead_there_and_bad_ones_do_no_harm(watched: Watched, increment: Path) -> None:
    page = watched.open(increment, "#layer=2&head=2&pos=57")
    assert page.inner_text(".head-title").startswith("Layer 2, head 2")
    assert readout(page).startswith("position 57 of")
    page.evaluate("location.hash = '#layer=0&head=4&pos=33'")
    until(page, "inspector.position === 33")
    assert page.get_attribute(".tile.chosen", "data-head") == "0.4"
    page.evaluate("location.hash = '#layer=99&head=x&pos=1e9'")
    until(page, "inspector.position === 80")
    assert page.get_attribute(".tile.chosen", "data-head") == "0.4"


def test_registers_and_the_operation_behind_a_head(watched: Watched, increment: Path) -> None:
    page = watched.open(increment, "#layer=3&head=0&pos=30")
    model, trace = compiled("increment", "hard_alibi")
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in page.inner_text(".registers tbody").splitlines()}
    names = model.config.token_names
    assert rows["x"] == [names[trace[30]], "embedding"]
    assert rows["shift_right(x, 3)"] == [names[trace[27]], "layer 0 attention"]
    assert rows["next 2-gram"] == [names[trace[31]], "layer 3 attention"]
    assert page.locator(".node.on").count() == 1 and "next 2-gram" in page.text_content(".node.on")
    page.click('[data-head="0.5"]')
    assert page.locator(".node.on.width").count() >= 1
    page.locator(".node.kqv").dispatch_event("click")
    assert page.get_attribute(".tile.chosen", "data-head") == "3.0"


def test_themes_differ_are_kept_and_are_legible(watched: Watched, increment: Path) -> None:
    page = watched.open(increment)
    seen = []
    for _ in range(2):
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert contrast(ink, seen[-1]) > 7
        page.click("#theme")
    assert seen[0] != seen[1]
    page.keyboard.press("t")
    kept = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert page.evaluate("document.documentElement.dataset.theme") == kept == "dark"


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_nothing_overlaps_or_sticks_out(watched: Watched, increment: Path, width: int) -> None:
    page = watched.open(increment)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(150)
    assert overlaps(page) == []
    assert page.locator("canvas.matrix").first.bounding_box()["width"] > min(width, 700) * 0.75


def test_two_models_move_together(watched: Watched, folder: Path) -> None:
    machine = TuringMachine.random(symbols=12, states=5, seed=0)
    trace = machine.trace(machine.encode(machine.symbols[:8], 3), 4)
    learned = random_model(2, 4, windows=(1, 2, None, None))
    model = compile_machine(machine, backend="lean", steps=5, check=False)
    path = inspect(model, trace, against=learned, names=["compiled", "learned"]).save(folder / "two.html")
    page = watched.open(path, "#layer=1&head=0&layer2=0&head2=3&pos=25")
    titles = page.locator(".head-title").all_inner_texts()
    assert titles[0].startswith("Layer 1, head 0") and titles[1].startswith("Layer 0, head 3")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("inspector.panes.map((p) => p.matrix.position)") == [26, 26]
    best = page.evaluate("inspector.panes.map((p) => p.head.best[26])")
    assert best == [int(patterns(model, trace)[1][0, 26].argmax()), int(patterns(learned, trace)[0][3, 26].argmax())]
    page.check("#link")
    page.locator('[data-head="0.1"]').first.click()
    assert all(title.startswith("Layer 0, head 1") for title in page.locator(".head-title").all_inner_texts())
    assert overlaps(page) == []
    page.set_viewport_size({"width": 400, "height": 900})
    page.wait_for_timeout(150)
    assert overlaps(page) == []


def test_a_thousand_tokens_open_and_answer_at_once(watched: Watched, folder: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 24, 1024)
    path = inspect(random_model(4, 8), tokens, given=1).save(folder / "long.html")
    page = watched.open(path)
    page.locator(".overlay").scroll_into_view_if_needed()
    box = page.locator(".overlay").bounding_box()
    for i in range(60):
        page.mouse.move(box["x"] + 90 + 5 * i, box["y"] + 90 + 7 * i)
    times = page.evaluate("inspector.timings.hover")
    assert len(times) >= 30
    assert np.median(times) < HOVER_MS and np.quantile(times, 0.9) < HOVER_MS, sorted(times)[-8:]
    page.keyboard.press("ArrowRight")
    page.locator(".focus .buttons button", has_text="tokens").click()
    assert page.evaluate("inspector.panes[0].matrix.cellBox(0, 0).w") > 8


def test_hostile_names_are_shown_as_text(watched: Watched, folder: Path) -> None:
    machine = hostile_machine()
    model = compile_machine(machine, backend="lean", steps=3, check=False)
    trace = machine.trace(machine.encode(machine.symbols, 2), 3)
    path = inspect(model, trace, names=[HOSTILE[0]]).save(folder / "hostile.html")
    page = watched.open(path, "#layer=0&head=1&pos=8")
    assert page.locator("img, iframe").count() == 0 and page.locator("script").count() == 2
    assert page.evaluate("document.title").startswith(HOSTILE[1])
    shown = page.locator(".cell bdi").all_text_contents()
    assert shown == [machine.vocabulary[t] for t in trace]
    for position in range(len(trace)):
        page.evaluate(f"inspector.go({position})")
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        assert overlaps(page) == []


def test_gallery_leads_to_its_pages(watched: Watched, increment: Path) -> None:
    card = Card("increment", "adds one", "halts", increment.name, 90_000, [[0, 1, 2], [1, 2, 0]])
    index = increment.parent / "index.html"
    index.write_text(index_page([card, card]), encoding="utf-8")
    watched.page.goto(index.as_uri())
    assert overlaps(watched.page) == []
    watched.page.click(".card >> nth=0")
    watched.page.wait_for_selector("html[data-ready=true]")
    assert watched.page.inner_text("h1") == "increment"


def test_notebook_frame_draws_itself(watched: Watched, folder: Path) -> None:
    """Sandboxed, so without storage and without an address of its own."""
    page = folder / "notebook.html"
    page.write_text(f"<!doctype html>{inspect(*compiled())._repr_html_()}", encoding="utf-8")
    watched.page.goto(page.as_uri())
    frame = watched.page.frame_locator("iframe")
    frame.locator("html[data-ready=true]").wait_for(state="attached")
    frame.locator('[data-head="0.2"]').click()
    frame.locator("#theme").click()
    assert frame.locator(".head-title").inner_text().startswith("Layer 0, head 2")
