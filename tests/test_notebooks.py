"""The notebooks run from top to bottom, and show figures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def executed(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What every cell shows; a cell that fails raises."""
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), before))))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3").execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem.startswith("1") else pytest.mark.slow) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = executed(path, monkeypatch)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error"]


def test_notebooks_are_kept_without_outputs() -> None:
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert cells and all(not cell.outputs and cell.execution_count is None for cell in cells), path.name


def test_a_cell_that_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(notebook, tmp_path / "wrong.ipynb")
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        executed(tmp_path / "wrong.ipynb", monkeypatch)
