"""The site: links lead somewhere, notebooks and pages become HTML, and every module's reference can be written."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("markdown2")


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_listed(builder: ModuleType) -> None:
    assert set(builder.PAGES) == {path.stem for path in (ROOT / "docs").glob("*.md")}


def test_links_lead_to_the_site(builder: ModuleType) -> None:
    text = (
        "[a](docs/compiler.md#stages) [b](https://example.org/x.md) ![c](experiments/report/accuracy.png) [d](LICENSE)"
    )
    found = builder.from_markdown(text)
    assert 'href="compiler.html#stages"' in found and 'href="https://example.org/x.md"' in found
    assert 'src="files/experiments/report/accuracy.png"' in found and 'href="files/LICENSE"' in found
    assert 'href="theorem.html"' in builder.from_markdown("[e](../docs/theorem.md)", ROOT / "notebooks")


def test_a_broken_link_is_noticed(builder: ModuleType, tmp_path: Path) -> None:
    builder.write(tmp_path / "index.html", "start", '<a href="nowhere.html">x</a>')
    assert "index.html -> nowhere.html" in builder.broken_links(tmp_path)


def test_a_notebook_as_a_page(builder: ModuleType) -> None:
    (path,) = (ROOT / "notebooks").glob("1-*.ipynb")
    found = builder.from_notebook(path, execute=False)
    assert "<h1" in found and "first_wrong_step" in found and builder.title_of(path.stem) == "1. The theorem"
    image = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}
    assert "data:image/png;base64,AAAA" in builder.from_output(image)
    assert builder.from_output({"output_type": "stream", "name": "stderr", "text": "a warning"}) == ""
    assert "1 &lt; 2" in builder.from_output({"output_type": "stream", "name": "stdout", "text": "1 < 2"})


def test_a_demo_that_fails_is_left_out(builder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not builder.demo(tmp_path / "page.html", ["inspect", "compiled", "no-such-machine"])
    assert "left out" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_site(builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pdoc")
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    builder.build(tmp_path / "site", quick=True)
    for page in ("index", "compiler", "circuits", "2-a-program-inside-out", "playground", "inspector"):
        assert (tmp_path / "site" / f"{page}.html").stat().st_size > 2_000
    assert "load_zoo" in (tmp_path / "site" / "reference" / "experiments" / "zoo.html").read_text()
