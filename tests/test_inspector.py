"""The inspector's data and pages, without a browser: what is packed comes back, stays small, and is only ever text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_days.running import run
from inspected import HOSTILE, compiled, hostile_machine, random_model

from compile import attention_figure, compile_machine, compile_program, inspect
from compile.inspector.index import Card, index_page
from compile.inspector.packing import LEVELS, Pattern, pack, pack_patterns, unpack, unpack_patterns
from compile.inspector.page import embed, render
from rasp import TuringMachine, shift_right


def unpacked(part: dict[str, Any], tokens: int) -> list[np.ndarray]:
    windows = [head["window"] for layer in part["heads"] for head in layer]
    return unpack_patterns(part["attention"], windows, tokens, part["start"])


def patterns(model: Any, tokens: np.ndarray) -> list[np.ndarray]:
    _, cache = model.run_with_cache(tokens)
    layers = [cache[f"blocks.{i}.attn.hook_pattern"][0, :, model.prepended :] for i in range(model.config.layers)]
    return [head.numpy() for layer in layers for head in layer]


# --- packing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_arrays_come_back_as_they_were(dtype: str) -> None:
    array = np.random.default_rng(0).integers(0, 200, 1000).astype(dtype)
    assert (unpack(pack(array), dtype) == array).all()
    assert unpack(pack(array[:0]), dtype).size == 0


@pytest.mark.parametrize("window", [None, 1, 3, 50])
def test_patterns_come_back_within_half_a_level_of_the_largest_weight(window: int | None) -> None:
    rng, tokens, start = np.random.default_rng(1), 20, 4
    visible = Pattern(np.zeros((tokens, start + tokens)), window).visible
    weights = np.where(visible, rng.random(visible.shape) ** 6, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    found = unpack_patterns(pack_patterns([Pattern(weights, window)], 10**6), [window], tokens, start)[0]
    assert (np.abs(found - weights).max(axis=1) <= weights.max(axis=1) * 0.51 / 255).all()


def test_a_thousand_equal_weights_are_not_rounded_away() -> None:
    weights = np.tril(np.ones((1024, 1024))) / np.arange(1, 1025)[:, None]
    packed = pack_patterns([Pattern(weights, None)], 10**6)
    assert np.abs(unpack_patterns(packed, [None], 1024, 0)[0] - weights).max() < 1e-6
    assert len(str(packed["weights"])) < 5_000


def test_what_does_not_fit_is_kept_more_coarsely() -> None:
    weights = np.tril(np.random.default_rng(0).random((100, 100)))
    fine, coarse = (pack_patterns([Pattern(weights, None)], most) for most in (10**6, 4_000))
    assert fine["levels"] == 255 and coarse["levels"] == LEVELS[-1]
    assert len(str(coarse["weights"])) < 0.6 * len(str(fine["weights"]))


# --- what a page knows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["lean", "hard_alibi"])
def test_page_holds_what_the_model_does(backend: str) -> None:
    model, trace = compiled("increment", backend)
    data = inspect(model, trace).data
    part = data["models"][0]
    for found, expected in zip(unpacked(part, len(trace)), patterns(model, trace), strict=True):
        assert np.abs(found - expected).max() < 0.003
    best = unpack(part["attention"]["best"], "uint16").reshape(-1, len(trace))
    assert (best == np.array([p.argmax(axis=1) for p in patterns(model, trace)])).all()
    assert part["predictions"] == model.predict(trace).tolist()
    facts = model.config.annotations.heads
    assert [[head["label"] for head in layer] for layer in part["heads"]] == [[f.label for f in row] for row in facts]
    assert data["given"] == data["rows"][1] and data["tokens"] == trace.tolist()
    assert part["predictions"][data["given"] - 1 : -1] == data["truth"][data["given"] - 1 : -1]


@pytest.mark.parametrize("backend", ["lean", "hard_alibi", "tracr"])
def test_every_head_leads_to_its_operation(backend: str) -> None:
    part = inspect(*compiled("increment", backend)).data["models"][0]
    nodes = part["graph"]["nodes"]
    for head in (head for layer in part["heads"] for head in layer):
        kinds = {nodes[i]["op"] for i in head["nodes"]}
        wanted = {"count": "width", "sel_w": "width", "match": "kqv", "shift": "delay"}[head["label"][:5]]
        assert kinds == {wanted}, head["label"]
    match = part["heads"][-1][-1]
    assert match["nodes"] == [part["graph"]["output"]]


def test_registers_hold_the_tokens_they_are_named_after() -> None:
    model, trace = compiled()
    part = inspect(model, trace).data["models"][0]["registers"]
    index = unpack(part["index"], "uint16").reshape(len(part["stages"]), len(part["names"]), len(trace), 2)
    amount = unpack(part["amount"], "float32").reshape(index.shape)
    back = part["names"].index("shift_right(x, 2)")
    held = index[-1, back, 2:, 0]
    assert (held == trace[:-2]).all() and np.allclose(amount[-1, back, 2:, 0], 1, atol=1e-3)
    assert np.allclose(amount[0, back], 0)  # not there yet after the embedding
    assert part["tokens"][back] and not part["tokens"][part["names"].index("count % b")]


def test_two_models_and_a_learned_one_without_labels() -> None:
    model, trace = compiled()
    learned = random_model(2, 4, windows=(1, 2, None, None))
    data = inspect(model, trace, against=learned, names=["a", "b"]).data
    assert [part["title"] for part in data["models"]] == ["a", "b"]
    assert data["models"][1]["graph"] is None and data["models"][1]["registers"] is None
    for found, expected in zip(unpacked(data["models"][1], len(trace)), patterns(learned, trace), strict=True):
        assert np.abs(found - expected).max() < 0.003


def test_a_program_can_be_shown_with_its_graph() -> None:
    def program(x: Any) -> Any:
        return shift_right(x, 2)

    model = compile_program(program, range(4))
    data = inspect(model, [1, 2, 3, 1, 2], truth=[0, 0, 1, 2, 3], given=0).data
    assert data["models"][0]["predictions"] == data["truth"]
    assert data["models"][0]["heads"][0][0]["nodes"]


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    [
        ([], {}, "give one row"),
        ([[1, 2]], {}, "give one row"),
        ([0.5], {}, "give one row"),
        ([1] * 5000, {}, "at most"),
        ([1, 2], {"truth": [1]}, "truth has 1"),
        ([99], {}, "token 99"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(tokens: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        inspect(random_model(1, 1), tokens, **options)


# --- size -------------------------------------------------------------------------------------------------------------


def test_512_tokens_4_layers_16_heads_stay_below_10_mb() -> None:
    """With attention that has no pattern at all, every head seeing all tokens, and every row different."""
    tokens = np.random.default_rng(0).integers(0, 24, 512)
    model = random_model(encoding="learned", max_positions=512, spread=0.1)
    page = inspect(model, tokens).html
    assert 5_000_000 < len(page.encode()) < 10_000_000


def test_a_compiled_run_is_small() -> None:
    assert len(inspect(*compiled()).html) < 150_000


# --- safety -----------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """All tags of a page, and the text of its scripts, as a browser's parser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def tags_of(page: str) -> list[str]:
    parser = Tags()
    parser.feed(page)
    return parser.tags


def hostile_page() -> str:
    machine = hostile_machine()
    model = compile_machine(machine, backend="lean", steps=3, check=False)
    trace = machine.trace(machine.encode(machine.symbols[:5], 2), 3)
    return inspect(model, trace).html


def test_hostile_names_add_no_tag_and_end_no_script() -> None:
    ordinary, hostile = inspect(*compiled()).html, hostile_page()
    assert tags_of(hostile) == tags_of(ordinary)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile, re.S)
    assert data is not None and "<" not in data[1]
    assert set(HOSTILE[1:]) <= set(json.loads(data[1])["names"])


def test_embedded_json_survives_what_html_would_read() -> None:
    value = ["</script>", "<!--", "&lt;", "\u2028", "\\u003c", "🙂"]
    assert json.loads(embed(value)) == value and not set("<>&") & set(embed(value))


def test_title_is_escaped_and_templates_do_not_read_data() -> None:
    data = inspect(*compiled()).data
    page = render({**data, "title": "</title><script>$data ${x}"})
    assert "</title><script>" not in page and "$data ${x}" in page


def test_page_asks_for_nothing_outside_itself() -> None:
    page = inspect(*compiled()).html
    addresses = re.findall(r"https?://[^\s\"'`]+", page)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
    assert "default-src 'none'" in page and "innerHTML" not in page and "insertAdjacentHTML" not in page


def test_jupyter_gets_a_sandboxed_frame() -> None:
    shown = inspect(*compiled())._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert tags_of(shown) == ["iframe"]


def test_index_escapes_its_cards() -> None:
    page = index_page([Card(HOSTILE[1], HOSTILE[2], HOSTILE[0], "a b'\".html", 1000, [[0, 1, 2]])])
    assert "onerror" in page and "<img" not in page and "<script>document" not in page and "a%20b%27%22.html" in page


# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
def test_figures_are_written(tmp_path: Path, suffix: str) -> None:
    model, trace = compiled()
    path = tmp_path / f"heads{suffix}"
    figure = attention_figure(model, trace, path=path)
    assert path.stat().st_size > 5_000
    assert len(figure.axes) >= sum(shape.heads for shape in model.config.shapes)
    start = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}[suffix]
    assert path.read_bytes().startswith(start)


def test_figure_of_one_head_shows_its_pattern_and_tokens() -> None:
    model, trace = compiled()
    tokens = trace[:40]
    figure = attention_figure(model, tokens, heads=[(1, 0)])
    panel = figure.axes[0]
    shown = panel.images[0].get_array()
    assert np.allclose(shown, patterns(model, tokens)[-1])
    assert [label.get_text() for label in panel.get_yticklabels()] == [model.config.token_names[t] for t in tokens]
    assert "match next 2-gram" in panel.get_title()


def test_figures_survive_hostile_names(tmp_path: Path) -> None:
    machine = hostile_machine()
    model = compile_machine(machine, backend="lean", steps=2, check=False)
    trace = machine.trace(machine.encode(machine.symbols[:5], 2), 1)
    attention_figure(model, trace, heads=[(0, 0)], path=tmp_path / "figure.png")


def test_figures_refuse_unknown_heads_and_suffixes(tmp_path: Path) -> None:
    model, trace = compiled()
    with pytest.raises(ValueError, match="heads per layer"):
        attention_figure(model, trace, heads=[(7, 0)])
    with pytest.raises(ValueError, match="must end in"):
        attention_figure(model, trace, heads=[(0, 0)], path=tmp_path / "figure.doc")


# --- the command ------------------------------------------------------------------------------------------------------


def test_command_compiles_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = json.loads(run("inspect", "compiled", "palindrome", "abba", "--json").out)
    assert report["right"] == [report["predicted"]] and (tmp_path / "inspector.html").stat().st_size == report["bytes"]


def test_command_shows_a_saved_model_beside_a_compiled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = TuringMachine.random(symbols=4, states=3, seed=0)
    compile_machine(machine, steps=6, check=False).save_pretrained(tmp_path / "saved")
    monkeypatch.chdir(tmp_path)
    report = json.loads(run("inspect", "compiled", "random:4x3:0", "--against", "saved", "--steps", "4", "--json").out)
    assert len(report["right"]) == 2 and report["tokens"] == 60
    assert "wrote own.html" in run("inspect", "saved", "--steps", "3", "--free", "-o", "own.html").out


def test_command_refuses_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("inspect", "nosuch")
    assert done.refused and "neither" in done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "name a model"),
        (("compiled",), "which machine"),
        (("compiled", "bb2", "1["), "brackets"),
        (("compiled", "nosuch"), "nosuch"),
    ],
)
def test_command_says_what_is_wrong(arguments: tuple[str, ...], expected: str) -> None:
    done = run("inspect", *arguments)
    assert done.refused and expected in done.err


def test_gallery_has_a_page_for_every_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import experiments.inspections as inspections

    monkeypatch.setattr(inspections, "gallery", lambda: ("bb2", "increment", "bb5"))
    cards = inspections.write_gallery(tmp_path)
    index = (tmp_path / "index.html").read_text()
    for card in cards:
        assert f'href="{card.file}"' in index and (tmp_path / card.file).stat().st_size == card.size
    assert "the first" in cards[2].result and "the first" not in cards[0].result
    assert (tmp_path / "playground.html").is_file() and "playground.html#task=machine&amp;machine=bb2" in index
