"""Models, traces and names that the tests of the inspector share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from compile import Transformer, TransformerConfig, compile_machine
from rasp import TuringMachine, make_simulable
from rasp.gallery import entry, machine

HOSTILE = (
    "<script>document.title='gone'</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"'`&amp;<b>${1}",
    "$x$ \\frac",
    "<!--",
    "]]>",
    "long" * 200,
    "\u05e9\u05dc\u05d5\u05dd",
    "🙂👍🏽",
    "\u0627\u0644\u0639",
)


@cache
def compiled(name: str = "increment", backend: str = "lean") -> tuple[Any, np.ndarray]:
    """A gallery machine over tagged cells, compiled, and its trace."""
    known = entry(name)
    tagged = make_simulable(machine(name), tape=list(known.tape), steps=known.steps or 20)
    trace = tagged.machine.trace(tagged.encode(list(known.tape)), known.steps or 20)
    options = {"max_seq_len": len(trace)} if backend == "tracr" else {}
    return compile_machine(tagged.machine, backend=backend, steps=known.steps or 20, check=False, **options), trace


def random_model(layers: int = 4, heads: int = 16, spread: float = 1.0, **options: Any) -> Transformer:
    """Attention without any pattern in it; at a spread of 0.1 it is the hardest to keep small."""
    import torch

    torch.manual_seed(0)
    config = TransformerConfig(vocabulary=24, layers=layers, d_model=64, heads=heads, d_head=8, **options)
    model = Transformer(config)
    model.reset_parameters(spread)
    return model


def hostile_machine() -> TuringMachine:
    """Two states and as many symbols as there are bad names, which it copies from left to right."""
    names = [name for name in HOSTILE if name.isprintable()]
    symbols, states = names[1:], [names[0], "q"]
    rules = {
        (q, a): (b, "R", states[1 - i])
        for i, q in enumerate(states)
        for a, b in zip(symbols, symbols[1:] + symbols[:1], strict=True)
    }
    return TuringMachine(states=states, symbols=symbols, transitions=rules, name=HOSTILE[1])
