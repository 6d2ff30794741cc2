"""results.json from a stranger: drawn as text only, or refused in a sentence that names what is wrong."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from comparison_results import made_up

from experiments.comparison import report
from experiments.comparison.findings import findings
from experiments.comparison.shape import check_results
from experiments.comparison.summary import as_markdown
from experiments.shapes import Misshapen
from rasp import TuringMachine
from rasp.formats.json import to_json

ROOT = Path(__file__).parents[2]
EVIL = '"\'><meta http-equiv=refresh content="0;url=http://evil.example"><img src=x onerror=alert(1)>$x^{'
KEPT = ("kind", "group", "measure", "verdict", "start", "backend")  # words that the page decides by
Path_ = tuple[Any, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of everything that is no list and no object."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield path
    for key, one in inside or ():
        yield from leaves(one, (*path, key))


def at(value: Any, path: Path_) -> Any:
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: Path_, new: Any) -> None:
    at(value, path[:-1])[path[-1]] = new


def task_results() -> dict[str, Any]:
    return json.loads((ROOT / "experiments/report/tasks/addition.json").read_text())


def hostile(results: dict[str, Any]) -> dict[str, Any]:
    """Every text in it, and every name of a count, is an attack; names stay different from one another."""
    evil_machine = to_json(
        TuringMachine(states=["q"], symbols=[EVIL], transitions={("q", EVIL): (EVIL, "R", "q")}, name=EVIL)
    )
    for path in list(leaves(results)):
        value, name = at(results, path), str(path[-1])
        if isinstance(value, str) and name not in KEPT:
            put(results, path, evil_machine if name == "machine" and path[0] == "machines" else f"{EVIL}{value}")
    for machine in results["machines"]:
        for page in machine["inspector"]:
            page["file"], page["live"] = "pages/x.html", f"playground.html#{EVIL}"
        for row in machine["anatomy"]:
            for key in ("places", "kinds"):
                row[key] = {f"{EVIL}{name}": count for name, count in row[key].items()}
    results["versions"] = {EVIL: EVIL}
    results["without"] = [EVIL]
    return results


class Elements(HTMLParser):
    """All tags of a page, with what decides what they do."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("results", [made_up(2, length=8), task_results()], ids=["machines", "task"])
def test_no_text_of_a_stranger_becomes_markup(results: dict[str, Any]) -> None:
    clean, evil = report.render(results), report.render(check_results(hostile(json.loads(json.dumps(results)))))
    assert evil.count("&lt;meta http-equiv") > 50
    known, found = ({tag for tag, _ in Elements(page).tags} for page in (clean, evil))
    assert found <= known | {"br"} and not found & {"img", "script", "iframe", "object", "base"}
    metas = [[attrs for tag, attrs in Elements(page).tags if tag == "meta"] for page in (clean, evil)]
    assert metas[0] == metas[1]
    for _, attrs in Elements(evil).tags:
        assert not any(name.startswith("on") for name in attrs)
        assert re.match(r"(#|pages/|playground\.html#|results\.json$)", attrs.get("href") or "#")


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "http://evil.example", "//evil.example/x.html", "../x.html"]
)
def test_links_lead_to_pages_beside_the_report(address: str) -> None:
    for key in ("file", "live"):
        results = made_up(1)
        results["machines"][0]["inspector"][0][key] = address
        with pytest.raises(Misshapen, match="beside the report"):
            check_results(results)


def test_html_is_only_made_of_templates() -> None:
    """An f-string with a tag in it would put values into a page that nobody has escaped."""
    for path in [*ROOT.glob("experiments/**/*.py"), *ROOT.glob("compile/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                words = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
                assert not re.search(r"<[a-z]+[ >]|</", words), (path.name, node.lineno, words)


# --- malformed --------------------------------------------------------------------------------------------------------

WRONG = [None, True, -1, 0, 10**14, 1e300, float("inf"), float("nan"), "", "x", "\ud800", "\x1b[2J", [], {}, [[]], [{}]]


def test_what_compare_writes_passes() -> None:
    for path in (ROOT / "experiments/report").rglob("*.json"):
        check_results(json.loads(path.read_text()))
    for results in (made_up(1), made_up(3, learned=0.0)):
        check_results(results)


def changed_once(results: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One field of some kind is left out or is something else; every kind of field is as likely."""
    results = json.loads(json.dumps(results))
    kinds: dict[Path_, list[Path_]] = {}
    for path in leaves(results):
        for depth in range(1, len(path) + 1):
            kind = tuple("*" if isinstance(key, int) else key for key in path[:depth])
            kinds.setdefault(kind, []).append(path[:depth])
    path = rng.choice(rng.choice(list(kinds.values())))
    if rng.random() < 0.3:
        del at(results, path[:-1])[path[-1]]
    else:
        put(results, path, rng.choice(WRONG))
    return results


@pytest.mark.parametrize("which", ["machines", "task"])
def test_what_is_malformed_is_refused_or_can_be_shown(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The curves are computed, but matplotlib, which takes seconds, does not draw them."""
    from experiments.comparison import drawing
    from experiments.comparison.sections import pieces

    def unseen(count: int, **_: Any) -> tuple[MagicMock, list[MagicMock]]:
        axes = MagicMock()
        axes.get_legend_handles_labels.return_value = ([], [])
        return MagicMock(), [axes] * count

    monkeypatch.setattr(drawing, "_panels", unseen)
    monkeypatch.setattr(pieces, "as_svg", lambda *_: "")
    show_malformed(made_up(1, length=8) if which == "machines" else task_results(), 120 if which == "machines" else 30)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["machines", "task"])
def test_what_is_malformed_is_refused_or_can_be_drawn(which: str) -> None:
    show_malformed(made_up(2, length=8) if which == "machines" else task_results(), 600)


def show_malformed(base: dict[str, Any], times: int) -> None:
    rng, refused = random.Random(0), 0
    for _ in range(times):
        results = changed_once(base, rng)
        try:
            check_results(results)
        except Misshapen as error:
            refused += 1
            assert len(str(error)) < 500 and "expected" in str(error)
        else:
            assert report.render(results) and as_markdown(results) and findings(results)
    assert times / 2 < refused < times


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("machines", 0, "accuracy"), None, "machines[0].accuracy is None"),
        (("checks",), {}, "checks.compiled_equals_program was expected and is missing"),
        (("machines", 0, "accuracy", 3, "low"), "x", "machines[0].accuracy[3].low is 'x'"),
        (("machines", 0, "simulators", 1, "kind"), "z", "one of 'machine'"),
        (("machines", 0, "accuracy", 0, "simulator"), "nobody", "one that is listed"),
        (("machines", 0, "machine"), "{}", "a machine"),
        (("machines", 0, "mechanism", "ablation"), [], "a row for each head"),
        (("machines",), [], "machines is []"),
        (("seed",), float("nan"), "seed"),
    ],
)
def test_what_is_wrong_is_named(path: Path_, value: Any, said: str) -> None:
    results = made_up(1)
    put(results, path, value)
    with pytest.raises(Misshapen, match=re.escape(said)):
        check_results(results)
