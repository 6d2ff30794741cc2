"""Drawings: every format opens as what it is, every node is in it, nothing overlaps, bad paths are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp import TuringMachine, induct, next_tokens, simplify, trace
from rasp.draw import KINDS, draw_graph, kind_of, lines_of, to_dot
from rasp.graph import Graph
from rasp.layout import layered

MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml", ".dot": b"digraph"}


@pytest.fixture(scope="module")
def program() -> Graph:
    machine = TuringMachine.random(symbols=3, states=2, seed=0)
    return simplify(trace(lambda x: next_tokens(x, machine)))


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".dot", ".SVG"])
def test_formats(program: Graph, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"program{suffix}"
    program.draw(str(path))
    assert path.read_bytes().startswith(MAGIC[suffix.lower()])


def test_the_drawing_is_the_same_every_time(program: Graph, tmp_path: Path) -> None:
    texts = []
    for name in ("a.dot", "b.dot"):
        draw_graph(program, tmp_path / name)
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


def test_dot_has_every_node_and_edge(program: Graph) -> None:
    text = to_dot(program)
    assert len(re.findall(r"^  n\d+ \[", text, re.M)) == len(program)
    edges = {(int(a), int(b)) for a, b in re.findall(r"^  n(\d+) -> n(\d+);", text, re.M)}
    assert edges == {(j, i) for i, node in enumerate(program.nodes) for j in node.inputs}
    assert 'label="next token' in text and "penwidth=3" in text


def test_every_kind_of_operation_has_its_colour() -> None:
    raw = trace(lambda x, y: induct(x, y, 1), 2)
    assert {kind_of(node.op) for node in (*raw.nodes, *simplify(raw).nodes)} <= set(KINDS)
    assert len({fill for _, fill, _ in KINDS.values()}) == len(KINDS)
    assert lines_of(raw, 0) == ["x0"]


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    from rasp import named

    graph = trace(lambda x: named(x + 1, 'price in $ "net" \\'))
    graph.draw(str(tmp_path / "a.svg"))
    assert r"price in $ \"net\" \\" in to_dot(graph)


def test_tiny_programs(tmp_path: Path) -> None:
    trace(lambda x: x).draw(str(tmp_path / "identity.png"))
    simplify(trace(lambda x: x * 0)).draw(str(tmp_path / "constant.png"))


def test_bad_paths_are_refused(program: Graph, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"program.gif': the name must end in one of .svg, .png, .pdf, .dot"):
        program.draw("program.gif")
    for name in ("nowhere/program.svg", "nowhere/program.dot"):
        with pytest.raises(ValueError, match="cannot write .*No such file or directory"):
            program.draw(str(tmp_path / name))


def test_without_matplotlib(program: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match="needs matplotlib"):
        program.draw(str(tmp_path / "a.png"))
    program.draw(str(tmp_path / "a.dot"))


@st.composite
def dags(draw: Any) -> list[list[int]]:
    size = draw(st.integers(1, 25))
    return [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(size)]


@settings(max_examples=60)
@given(dags(), st.data())
def test_boxes_never_overlap_and_edges_go_down(inputs: list[list[int]], data: st.DataObject) -> None:
    widths = [data.draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in inputs]
    layout = layered(inputs, widths, height=float)
    for layer in layout.layers:
        for a, b in zip(layer, layer[1:], strict=False):
            assert layout.places[b][0] - layout.places[a][0] >= (widths[a] + widths[b]) / 2
    for (j, i), route in layout.routes.items():
        assert route[0] == layout.places[j] and route[-1] == layout.places[i]
        assert all(b[1] == a[1] + 1 for a, b in zip(route, route[1:], strict=False))
