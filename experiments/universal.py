"""A machine run by the universal transformer: its table and tape are the prompt, one set of weights does the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from experiments.writers import Writer
from rasp import TuringMachine
from rasp.programs.universal import Size, machine_tokens, universal_prompt

if TYPE_CHECKING:
    from compile import Transformer


def universal_writer(machine: TuringMachine, model: Transformer) -> Writer:
    """Continues a tape of this machine with a model made by `compile_universal`, in the machine's own tokens."""
    size = Size(*model.config.note("universal", list))

    def write(prompt: np.ndarray, count: int) -> Iterable[int]:
        given = universal_prompt(machine, prompt[:-1].tolist(), size.symbols, size.states)
        names = [machine_tokens(machine, [token], size)[0] for token in range(len(size.vocabulary))]
        return model.stream(given, count).translated(names.__getitem__)

    return write


def universal_model(machine: TuringMachine, n: int, steps: int) -> Transformer:
    """The weights that run every machine with as many symbols and states as this one."""
    from compile import compile_universal

    return compile_universal(len(machine.symbols), len(machine.states), n, max(steps, 1), check=False)
