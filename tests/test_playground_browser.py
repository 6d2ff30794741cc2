"""The live page in a real browser, loaded from disk: a person types, and fixed weights run what was typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from browsing import Watched, needs_browser, overlaps, until
from inspected import HOSTILE

from compile.playground import Playground, machine_link, playground, playground_models
from compile.transformer.engines import sparse_engine
from rasp import TuringMachine, make_simulable
from rasp.formats.json import to_json
from rasp.gallery import entry, gallery, machine
from rasp.machines.tape import sep
from rasp.programs.problems import Product, Sum, prompt_tokens
from rasp.programs.universal import Size, universal_prompt

pytestmark = needs_browser

SIZE, N = Size(16, 10), 3
LARGEST_PAGE = 3_000_000
CASES = 150  # machines and problems on which the page is compared with Python

# A run without the views, as fast as it goes; what is typed goes through the form.
RUN = """async (fragment) => {
  const p = playground, seen = { tokens: [], answers: [], milliseconds: 0, ended: "" };
  p.setup.fill(new URLSearchParams(fragment));
  const job = p.setup.read();
  await p.engine.ask(p.question(job));
  while (!seen.ended) {
    const reply = await p.engine.ask({ kind: "more", count: 1e9, milliseconds: 500 });
    seen.tokens.push(...reply.tokens);
    seen.answers.push(...reply.answers);
    seen.milliseconds += reply.milliseconds;
    seen.ended = reply.ended;
  }
  return { ...seen, given: job.prompt.length };
}"""


@cache
def models() -> list[Any]:
    return playground_models()


@cache
def engine(model: int) -> Any:
    """Python's sparse engine of a model, which is made once."""
    return sparse_engine(models()[model], "sparse", 1, 0)


@cache
def page_data() -> dict[str, Any]:
    return playground(models()).data


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Playground(page_data()).save(tmp_path_factory.mktemp("pages") / "playground.html")


def opened(watched: Watched, live: Path, **values: Any) -> Any:
    page = watched.open(live, f"#{urlencode(values)}" if values else "")
    settled(page)
    return page


def settled(page: Any) -> None:
    until(page, "Boolean(playground.refused || (playground.live && !playground.busy && !playground.playing))")


def run(page: Any) -> dict[str, Any]:
    """Press Run and wait for the end."""
    page.select_option("#speed", "0")
    page.click("#play")
    until(page, "playground.live.ended !== '' || playground.live.wrongAt >= 0")
    settled(page)
    return page.evaluate("(({ all, answers, ended, wrongAt }) => ({ all, answers, ended, wrongAt }))(playground.live)")


def typed(page: Any, rules: str | None = None, **fields: str) -> None:
    for name, text in {**({} if rules is None else {"rules": rules}), **fields}.items():
        before = page.evaluate("playground.generation")
        if page.input_value(f"#{name}") == text:
            continue
        page.fill(f"#{name}", text)
        until(page, f"playground.generation > {before}")
        settled(page)


# --- the page against Python ------------------------------------------------------------------------------------------


def cases(count: int) -> Iterator[tuple[int, dict[str, Any], list[int]]]:
    """Which model, what is typed, and the prompt that Python makes of it: machines, tagged or not, sums, products."""
    rng = np.random.default_rng(0)
    for i in range(count):
        kind = i % 5
        if kind == 3:
            left, right = (str(rng.integers(1, 10**5)) for _ in range(2))
            yield 1, {"task": "addition", "problem": f"{left}+{right}"}, prompt_tokens(Sum(left, right)).tolist()
        elif kind == 4:
            left, factor = str(rng.integers(1, 10**5)), str(rng.integers(0, 10))
            typed = {"task": "multiplication1", "problem": f"{left}*{factor}"}
            yield 2, typed, prompt_tokens(Product(left, factor)).tolist()
        else:
            yield 0, *machine_case(rng, i, tags=kind == 0)


def machine_case(rng: np.random.Generator, seed: int, tags: bool) -> tuple[dict[str, Any], list[int]]:
    m = TuringMachine.random(symbols=int(rng.integers(1, 5)), states=int(rng.integers(1, 5)), seed=seed)
    cells = [str(name) for name in rng.choice(m.symbols, rng.integers(1, 7))]
    head, state = int(rng.integers(len(cells))), str(rng.choice(m.states))
    values = {"task": "machine", "machine": to_json(m), "steps": int(rng.integers(2, 9)), "room": 0, "tags": int(tags)}
    values["tape"] = m.format_tape(m.encode(cells, head, state))
    if not tags:
        return values, universal_prompt(m, m.encode(cells, head, state), *SIZE)
    tagged = make_simulable(m, len(cells), N)
    return values, universal_prompt(tagged.machine, tagged.encode(cells, head, state, origin=0), *SIZE)


def compare(page: Any, count: int) -> tuple[int, float]:
    """Every token of so many runs; how many there were, and the seconds the page took."""
    tokens, seconds = 0, 0.0
    for model, values, prompt in cases(count):
        found = page.evaluate(RUN, urlencode(values))
        assert found["tokens"][: len(prompt)] == prompt and found["given"] == len(prompt), values
        said = engine(model).predict(found["tokens"])
        assert found["answers"] == said.tolist(), values
        assert found["tokens"][len(prompt) :] == said[len(prompt) - 1 : -1].tolist(), values
        tokens, seconds = tokens + len(said), seconds + found["milliseconds"] / 1000
    return tokens, seconds


def test_says_what_python_says_at_every_token(watched: Watched, live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens, seconds = compare(opened(watched, live), CASES)
    with capsys.disabled():
        print(f"\nthe page's forward pass: {tokens:,} tokens, {tokens / seconds:,.0f} per second")
    assert tokens > 100 * CASES


@pytest.mark.slow
def test_the_whole_gallery_runs(watched: Watched, live: Path) -> None:
    """Each of its machines, tagged and with room, as far as its halt or as the weights count."""
    page = opened(watched, live)
    for name in gallery():
        found, known = page.evaluate(RUN, f"machine={name}"), entry(name)
        assert found["ended"] == ("halted" if known.state and (known.steps or 0) <= 250 else "steps"), name
        assert found["answers"] == engine(0).predict(found["tokens"]).tolist(), name


def test_other_weights_say_other_things(watched: Watched, tmp_path: Path) -> None:
    """The page computes with the weights it holds: after one of them is changed, Python's answers are not its own."""
    data = json.loads(json.dumps(page_data()))
    outputs = data["models"][0]["outputs"]
    outputs[4], outputs[5] = outputs[5], outputs[4]
    page = opened(watched, Playground(data).save(tmp_path / "wrong.html"))
    with pytest.raises(AssertionError):
        compare(page, 5)


def test_page_is_small_and_asks_for_nothing(live: Path) -> None:
    text = live.read_text()
    assert live.stat().st_size < LARGEST_PAGE
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text


# --- what a person does -----------------------------------------------------------------------------------------------


def test_typed_machine_runs_to_its_halt(watched: Watched, live: Path) -> None:
    page = opened(watched, live)
    typed(page, "go 1 -> x R go\ngo _ -> _ L home\nhome x -> x L home\nhome _ -> _ R done", tape="111")
    assert "4 of 10 states" in page.inner_text("#message")  # what has no rule leads to one more, `stuck`
    found = run(page)
    assert found["ended"] == "halted" and found["wrongAt"] < 0
    verdict = page.inner_text("#verdict")
    assert "Halted" in verdict and "done" in verdict and "3 cells that are not blank" in verdict
    written, true = (strip.get_attribute("aria-label") for strip in page.locator(".strip").all())
    assert written == true
    said = models()[0].predict(found["all"])
    assert found["answers"] == said.tolist()


def test_bbchallenge_text_and_the_gallery(watched: Watched, live: Path) -> None:
    page = opened(watched, live)
    page.check("#tags")
    page.check("#room")
    typed(page, "1RB1LB_1LA1RZ", tape="", steps="50")
    assert run(page)["ended"] == "halted" and "after 6 steps with 4 cells" in page.inner_text("#verdict")
    page.select_option("#gallery", "palindrome")
    settled(page)
    assert page.input_value("#tape") == entry("palindrome").tape
    assert run(page)["ended"] == "halted"
    assert "in accept after 36 steps" in page.inner_text("#verdict").replace("\u2068", "").replace("\u2069", "")


def test_tape_is_edited_and_the_run_goes_on(watched: Watched, live: Path) -> None:
    page = opened(watched, live, machine="unary-add")
    for _ in range(3):
        page.click("#line")
        settled(page)
    assert page.input_value("#edited") == "111[find:+]11_"
    page.fill("#edited", "1111[find:+]1_")
    page.click("#go-on")
    settled(page)
    found = run(page)
    assert found["ended"] == "halted" and found["wrongAt"] < 0
    assert page.locator(".strip").first.get_attribute("aria-label").startswith("bos 1.")
    assert "5 cells that are not blank" in page.inner_text("#verdict")


def test_sums_and_products_are_typed(watched: Watched, live: Path) -> None:
    page = opened(watched, live)
    page.check("[value=addition]")
    settled(page)
    typed(page, problem="987+2045")
    assert run(page)["ended"] == "halted" and "987+2045 = 3032" in page.inner_text("#verdict")
    page.check("[value=multiplication1]")
    settled(page)
    typed(page, problem="704*6")
    assert run(page)["ended"] == "halted" and "704*6 = 4224" in page.inner_text("#verdict")


def test_divergence_is_explained(watched: Watched, live: Path) -> None:
    """Without tags a row of equal cells repeats a gram, and the page names it."""
    page = opened(watched, live, machine="unary-add", tape="11111111+1", steps=60, tags=0)
    found = run(page)
    assert found["wrongAt"] > 0
    verdict = page.inner_text("#verdict").replace("\u2068", "").replace("\u2069", "")
    assert "4-gram 1 1 1 1 twice" in verdict and "Tags" in verdict
    assert found["answers"] == models()[0].predict(found["all"]).tolist()
    page.check("#tags")
    until(page, "playground.live.job.coding.machine.tags !== null")
    settled(page)
    assert run(page)["ended"] == "halted"


def test_head_switched_off_changes_what_is_said(watched: Watched, live: Path) -> None:
    from compile.interventions import heads_off

    page = opened(watched, live, machine="bb3", layer=3, head=1)
    page.click(".off-button")
    settled(page)
    assert "off" in page.get_attribute('[data-head="3.1"]', "class").split()
    assert "head 3.1 is off" in page.inner_text(".changes") and "may change" in page.inner_text(".changes")
    found = run(page)
    assert found["wrongAt"] > 0 and "was changed" in page.inner_text("#verdict")
    assert "✓ as predicted" in page.inner_text(".seen-change")
    logits = models()[0].run_with_hooks(found["all"], heads_off(models()[0], [(3, 1)]))
    said = models()[0].output_tokens[logits[0].argmax(dim=-1)].tolist()
    assert found["answers"] == said
    page.locator(".changes li button").click()
    settled(page)
    assert not page.locator(".tile.off").count() and page.evaluate("playground.live.wrongAt") < 0


def test_register_is_swapped_between_two_runs(watched: Watched, live: Path) -> None:
    from compile.interventions import patch

    page = opened(watched, live, machine="bb3", tags=0)
    given = page.evaluate("playground.live.given")
    position = given - 6
    page.evaluate(f"playground.go({position})")
    text = page.input_value(".swap input")
    assert text == "0[A:0]000"
    page.fill(".swap input", "0[B:0]000")
    page.locator(".swap select").select_option(label="next_symbol")
    tokens = page.evaluate("playground.live.all")
    page.click(".swap-button")
    settled(page)
    m = machine("bb3")
    other = universal_prompt(m, m.parse_tape("0[B:0]000"), *SIZE)
    wanted = patch(models()[0], tokens, other, "next_symbol", position)
    assert page.evaluate("playground.live.answers") == wanted.after.tolist() == wanted.predicted.tolist()
    assert page.evaluate("playground.live.untouched") == wanted.before.tolist()


def test_share_link_holds_machine_and_tape(watched: Watched, live: Path) -> None:
    page = opened(watched, live)
    typed(page, "go 1 -> x R go\ngo _ -> _ L done", tape="1[go:1]1")
    page.click("#share")
    link = page.input_value(".link-box input")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready=true]")
    settled(page)
    assert page.input_value("#tape") == "1[go:1]1" and "go 1 -> x R go" in page.input_value("#rules")
    assert run(page)["ended"] == "halted"


def test_links_from_python_lead_there(watched: Watched, live: Path) -> None:
    m = TuringMachine.random(symbols=3, states=3, seed=5)
    link = machine_link(m, "a1 [q1:a2] a3", 4, tags=False, room=False, page=live.name)
    page = opened(watched, live)
    page.goto(live.parent.as_uri() + "/" + link)
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    settled(page)
    prompt = universal_prompt(m, m.parse_tape("a1 [q1:a2] a3"), *SIZE)
    assert page.evaluate("playground.live.all") == prompt
    assert machine_link(machine("bb4"), page="x.html") == "x.html#task=machine&machine=bb4&tape=&room=1&tags=1"


# --- what goes wrong --------------------------------------------------------------------------------------------------


REFUSED = [
    ({"rules": "q0 1 0 R"}, "is no rule"),
    ({"rules": "q0 1 -> 0 X q1"}, "write L or R"),
    ({"rules": "1RB1LB_1LA"}, "State B has 1 rules"),
    ({"rules": "{"}, "not JSON"),
    ({"rules": '{"symbols": ["0"], "states": ["q"], "transitions": {"q": {"0": [1]}}}'}, "expected [write"),
    ({"rules": ""}, "no machine"),
    ({"rules": "\n".join(f"q{i} 0 -> 0 R q{i + 1}" for i in range(12))}, "at most 16 symbols and 10 states"),
    ({"rules": "\n".join(f"q a{i} -> a{i + 1} R q" for i in range(20))}, "at most 16 symbols and 10 states"),
    ({"tape": "10[1"}, "one pair of brackets"),
    ({"tape": "102"}, "There is no symbol"),
    ({"tape": "0" * 10_001}, "at most 10,000"),
    ({"steps": "251"}, "1 to 250"),
    ({"tape": "[Z:1]"}, "nothing to run"),
]


def test_what_cannot_be_run_is_a_sentence(watched: Watched, live: Path) -> None:
    page = opened(watched, live)
    good = {"rules": "1RB1LB_1LA1RZ", "tape": "", "steps": "20"}
    for fields, said in REFUSED:
        typed(page, **{name: text for name, text in good.items() if name not in fields})
        typed(page, **fields)
        assert said in page.inner_text("#message").replace("\u2068", "").replace("\u2069", "")
        assert page.is_disabled("#play") and "refused" in page.get_attribute("#message", "class")
    typed(page, **good)
    assert run(page)["ended"] == "halted"


def test_ten_thousand_cells_are_run(watched: Watched, live: Path) -> None:
    page = opened(watched, live, machine="increment", tape="10" * 5000, steps=1, room=0, tags=0)
    assert "10,000 cells" in page.inner_text("#message")
    page.click("#token")
    settled(page)
    assert page.evaluate("playground.live.all.length") == page.evaluate("playground.live.given") + 1
    assert "more" in page.inner_text(".strip >> nth=0")
    typed(page, "1RB1LB_1LA1RZ", tape="", steps="20")
    assert run(page)["ended"] == "halted"


def test_hostile_names_are_text(watched: Watched, live: Path) -> None:
    names = [name for name in HOSTILE if name.isprintable()]
    symbols, states = names[1:], [names[0], "q"]
    rules = {
        (q, a): (b, "R", states[1 - i])
        for i, q in enumerate(states)
        for a, b in zip(symbols, symbols[1:] + symbols[:1], strict=True)
    }
    m = TuringMachine(states=states, symbols=symbols, transitions=rules, name=HOSTILE[1])
    tape = m.format_tape(m.encode(symbols[:4], 1))
    page = opened(watched, live, machine=to_json(m), tape=tape, steps=3, room=0, tags=0)
    assert run(page)["ended"] == "steps"
    assert page.locator("img, iframe").count() == 0 and page.title() == "One fixed transformer runs your machine"
    shown = page.locator(".cell bdi").all_text_contents()
    names_shown = [*models()[0].config.token_names]
    names_shown[4 : 4 + len(symbols)], names_shown[20:22] = symbols, states
    assert shown == [names_shown[t] for t in page.evaluate("playground.live.all")]
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        assert overlaps(page) == []


def test_nothing_overlaps_or_sticks_out(watched: Watched, live: Path) -> None:
    page = opened(watched, live, machine="bb3")
    for width in (1280, 800, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.click("#line")
        settled(page)
        page.wait_for_timeout(150)
        assert overlaps(page) == []


def test_resizing_in_mid_run_loses_nothing(watched: Watched, live: Path) -> None:
    page = opened(watched, live, machine="bb3")
    page.select_option("#speed", "200")
    page.click("#play")
    for width in (500, 1280, 400, 900):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(100)
    page.select_option("#speed", "0")
    until(page, "playground.live.ended === 'halted'")
    settled(page)
    found = page.evaluate("playground.live.all")
    m = make_simulable(machine("bb3"), n=N, tape=[], steps=21)
    trace = m.machine.trace(m.encode([]), 21)
    assert len(found) - page.evaluate("playground.live.given") == len(trace) - (len(m.tags) + 4)
    assert page.evaluate("playground.live.wrongAt") < 0 and found[-1] == sep


def test_reduced_motion_and_dark_run_at_once(browser: Any, live: Path) -> None:
    context = browser.new_context(reduced_motion="reduce", color_scheme="dark")
    watched = Watched(context.new_page())
    page = opened(watched, live, machine="bb3")
    assert page.input_value("#speed") == "0" and page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("Space")
    until(page, "playground.live.ended === 'halted'")
    assert not watched.complaints
    context.close()


def test_keys(watched: Watched, live: Path) -> None:
    page = opened(watched, live, machine="bb3")
    given = page.evaluate("playground.live.given")
    page.locator("h1").click()
    page.keyboard.press("n")
    until(page, f"playground.live.all.length === {given + 1}")
    settled(page)
    page.keyboard.press("m")
    until(page, f"playground.live.all.length > {given + 2}")
    settled(page)
    page.keyboard.press("Home")
    assert page.inner_text("#readout").startswith("position 0 of")
    page.keyboard.press("x")
    settled(page)
    assert page.locator(".tile.off").count() == 1
    page.focus("#tape")
    page.keyboard.press("x")
    assert page.input_value("#tape") == "x" and page.locator(".tile.off").count() == 1
