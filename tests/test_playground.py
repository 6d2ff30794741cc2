"""The live page as a file: what is in it, links into it, and the command that writes it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from inspected import HOSTILE, random_model

from compile.inspector.index import Card, index_page
from compile.inspector.packing import unpack
from compile.playground import Playground, Sizes, machine_link, playground, playground_models
from compile.playground.weights import model_data
from compile.sparse.weights import NotSparse
from rasp import TuringMachine
from rasp.formats.json import from_json
from rasp.gallery import gallery, machine

SMALL = Sizes(symbols=3, states=2, n=1, steps=6)


@cache
def small_model() -> Any:
    return playground_models(SMALL, tasks=())[0]


def test_weights_in_the_page_are_exact() -> None:
    model = small_model()
    data = json.loads(json.dumps(model_data(model, "universal")))
    distances, values = unpack(data["distances"], "int32"), unpack(data["values"], "float32")
    at = 0
    for name, shape, count in data["tensors"]:
        dense = np.zeros(int(np.prod(shape)), dtype=np.float32)
        dense[np.cumsum(distances[at : at + count])] = values[at : at + count]
        assert (dense.reshape(shape) == model.state_dict()[name].numpy()).all(), name
        at += count
    assert at == len(values) == model.nonzero_count()


def test_page_is_one_file_of_text() -> None:
    page = playground([small_model()]).html
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) == {
        "http://www.w3.org/2000/svg"
    }  # the name of SVG, which nobody fetches
    assert "default-src 'none'" in page and "innerHTML" not in page and "insertAdjacentHTML" not in page
    assert page.count("</script>") == 3


def test_names_cannot_end_the_script() -> None:
    data = playground([small_model()]).data
    page = Playground({**data, "gallery": [{**data["gallery"][0], "name": HOSTILE[1]}]}).html
    assert page.count("</script>") == 3 and "<img src=x" not in page


def test_only_compiled_weights_are_taken() -> None:
    with pytest.raises(NotSparse, match="compiled Hard-ALiBi weights"):
        model_data(random_model(1, 2), "learned")


@pytest.mark.parametrize("name", gallery())
def test_gallery_links_name_the_machine(name: str) -> None:
    assert machine_link(machine(name), "10") == f"playground.html#task=machine&machine={name}&tape=10&room=1&tags=1"


def test_links_hold_any_machine() -> None:
    m = TuringMachine(
        states=["q"], symbols=list(HOSTILE[:3]), transitions={("q", a): (a, "R", "q") for a in HOSTILE[:3]}
    )
    link = machine_link(m, "x&y#z", 7, tags=False, page="p.html")
    values = parse_qs(urlsplit(link).fragment)
    assert from_json(values["machine"][0]) == m and values["tape"] == ["x&y#z"] and values["steps"] == ["7"]
    assert values["tags"] == ["0"] and not set("<>\"' ") & set(link)
    renamed = machine("bb3").replace(name="bb2")
    assert from_json(parse_qs(urlsplit(machine_link(renamed)).fragment)["machine"][0]) == renamed


def test_index_leads_to_the_live_page() -> None:
    card = Card("bb3", "beaver", "halts", "bb3.html", 1000, [[0, 1]], machine_link(machine("bb3")))
    page = index_page([card])
    assert 'href="playground.html#task=machine&amp;machine=bb3&amp;tape=&amp;room=1&amp;tags=1">run it live' in page
    assert "run it live" not in index_page([Card("bb3", "beaver", "halts", "bb3.html", 1000, [[0, 1]])])


def test_comparison_leads_to_the_live_page() -> None:
    from experiments.comparison.pages import live_link
    from experiments.comparison.sections.about import inspector

    m = TuringMachine.random(symbols=15, states=5, seed=0)
    link = live_link(m, m.encode(list(m.symbols[:5]), 2))
    values = parse_qs(urlsplit(link).fragment)
    assert from_json(values["machine"][0]) == m and values["tape"] == ["a1 a2 [q0:a3] a4 a5"]
    large = TuringMachine.random(symbols=12, states=16, seed=0)
    assert live_link(large, large.encode(["a1"])) == ""
    page = {"file": "pages/a.html", "length": 5, "title": "both are right"}
    results: Any = {"machines": [{"name": "m", "inspector": [{**page, "live": link}, page]}]}
    assert inspector(results).count("run it live") == 1


def test_command_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import compile.playground as package
    from experiments.cli.playground import playground as run

    monkeypatch.setattr(package, "playground_models", lambda sizes, tell: [small_model()])
    run(tmp_path / "live.html", json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == (tmp_path / "live.html").stat().st_size
    with pytest.raises(ValueError, match="ending in .html"):
        run(tmp_path / "live.txt")
