"""One self-contained HTML file: no network, no libraries; names are only ever shown as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from compile.html_page import HtmlPage
from compile.inspector.collect import collect
from compile.machine import machine_of
from compile.markup import markup, shown
from compile.transformer.transformer import Prompts, Transformer
from rasp.machines.machine import TuringMachine, sep

SCRIPTS = ("data", "colour", "tape", "matrix", "arcs", "graph", "registers", "pane", "page")
STYLES = ("page",)
MOST_TOKENS = 4096
ROW = 32  # tokens in a line where nothing separates tapes


@dataclass(frozen=True)
class Inspection(HtmlPage):
    """A page: `html`, `save(path)`, and it shows itself in Jupyter."""

    data: dict[str, Any]

    @property
    def html(self) -> str:
        return render(self.data)

    def _repr_html_(self) -> str:
        """In a frame of its own that can reach neither the notebook nor the network."""
        return markup(
            '<iframe sandbox="allow-scripts" srcdoc="{}" '
            'style="width:100%;height:820px;border:1px solid #8888;border-radius:6px"></iframe>',
            self.html,
        )


def inspect(
    model: Transformer,
    tokens: Prompts,
    *,
    against: Transformer | None = None,
    truth: Sequence[int] | None = None,
    given: int | None = None,
    title: str = "",
    names: Sequence[str] = (),
) -> Inspection:
    """Everything a model does on `tokens`, to look at; with `against`, two models on the same tokens.

    `truth[i]` is what should follow token i (default: the next token), the first `given` tokens are the prompt, and
    `names` are titles of the models.
    """
    row = _checked(tokens)
    models = [model] if against is None else [model, against]
    if any(m.config.first_token < 0 for m in models):
        raise ValueError("a page shows tokens by their number from 0 on; this model has tokens below 0.")
    titles = [*names, *("model", "second model")[len(names) :]]
    parts = [collect(m, row, t, len(models)) for m, t in zip(models, titles, strict=False)]
    machine = _machine_of(models, row)
    expected = [*row[1:].tolist(), -1] if truth is None else [int(t) for t in truth]
    if len(expected) != len(row):
        raise ValueError(f"truth has {len(expected)} entries for {len(row)} tokens; give what follows each token.")
    return Inspection(
        {
            "title": title or (machine.name if machine else "") or "inspector",
            "tokens": row.tolist(),
            "truth": expected,
            "given": _given(row, machine) if given is None else given,
            "rows": _rows(row, machine),
            "names": max((list(m.config.token_names) for m in models), key=len) or [],
            "states": [t for t in set(row.tolist()) if machine and t in machine.state_tokens],
            "models": parts,
        }
    )


def _checked(tokens: Prompts) -> np.ndarray:
    row = np.asarray(tokens)
    if row.ndim != 1 or row.dtype.kind not in "iu" or not len(row):
        raise ValueError(f"tokens are {row.ndim}-dimensional {row.dtype} and {row.size} in all; give one row of ids.")
    if len(row) > MOST_TOKENS:
        raise ValueError(f"{len(row)} tokens are more than a page can show; give at most {MOST_TOKENS}.")
    return row.astype(np.int64)


def _machine_of(models: list[Transformer], row: np.ndarray) -> TuringMachine | None:
    """The machine whose tokens these are, if a model carries one and speaks its language."""
    for model in models:
        machine = machine_of(model)
        names = tuple(model.config.token_names[: machine.base]) if machine else ()
        if machine and names == machine.vocabulary and row.max() < machine.base:
            return machine
    return None


def _given(row: np.ndarray, machine: TuringMachine | None) -> int:
    ends = np.flatnonzero(row == sep)
    return int(ends[0]) + 1 if machine and len(ends) else 1


def _rows(row: np.ndarray, machine: TuringMachine | None) -> list[int]:
    """Where each line of the tape view begins: a tape and its separator, or so many tokens."""
    if machine is None:
        return list(range(0, len(row), ROW))
    return [0, *(i + 1 for i in np.flatnonzero(row == sep).tolist() if i + 1 < len(row))]


# --- text -------------------------------------------------------------------------------------------------------------


@cache
def static(name: str) -> str:
    return (files("compile.inspector") / "static" / name).read_text(encoding="utf-8")


def embed(data: Any) -> str:
    """JSON that can stand in a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def render(data: dict[str, Any]) -> str:
    scripts = "\n".join(static(f"{name}.js") for name in SCRIPTS)
    styles = "\n".join(static(f"{name}.css") for name in STYLES)
    title = shown(f"{data['title']} · inspector")
    return Template(static("page.html")).substitute(title=title, styles=styles, scripts=scripts, data=embed(data))
