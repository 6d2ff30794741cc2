"""What is claimed of whole runs, on tapes of a given length: right if and only if no gram repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import z3

from proofs_check.symbolic.checking import Lemma, Query, ask
from proofs_check.symbolic.keys import BASE
from proofs_check.symbolic.program import Program
from proofs_check.symbolic.sequences import Terms
from proofs_check.symbolic.terms import every, same
from proofs_check.symbolic.unknown import UnknownMachine, UnknownTape, possible_ways, repeated_gram
from rasp.machines.machine import sep


def correct_iff_no_repeat(
    n: int, lengths: Sequence[int], steps: int, packing: str = "paper"
) -> Callable[[Program], Iterator[Query]]:
    def build(program: Program) -> Iterator[Query]:
        for symbols in lengths:
            for head in range(1, symbols + 3):
                for ways in possible_ways(symbols, head, steps):
                    yield run_query(program, n, symbols, head, ways, packing)

    return build


def run_query(program: Program, n: int, symbols: int, head: int, ways: Sequence[bool], packing: str = "paper") -> Query:
    """All runs from a tape of so many symbols whose head starts there and goes these ways."""
    machine = UnknownMachine(BASE)
    tapes = UnknownTape.any(machine, symbols, head).run(machine, ways)
    trace = [token for tape in tapes for token in (*tape.tokens, sep)]
    out = program.call("next_tokens", Terms(trace[:-1]), machine, n, packing)
    first = symbols + 2  # the prompt's last token: after it comes the separator, then the first tape
    correct = every([same(out[i], trace[i + 1]) for i in range(first, len(trace) - 1)])
    repeat = z3.Or(*(repeated_gram(tape.tokens, n + 1) for tape in tapes[1:]))
    name = f"L={symbols} head={head} {''.join('LR'[way] for way in ways)}"
    return ask(machine, name, correct == repeat, watch={"trace": trace, "program": out.items[first:]})


def end_to_end(n: int, steps: int, lengths: Sequence[int], packing: str) -> Lemma:
    """The sharp theorem for tapes of these lengths (in cells) that are long enough to repeat a gram."""
    words = ("one step", "two steps", "three steps")[steps - 1]
    name = f"{words.replace(' ', '-')}{f'-{packing}' * (packing != 'paper')}-n{n}"
    cells = f"{min(lengths)} to {max(lengths)}" if len(lengths) > 1 else str(lengths[0])
    tapes = "the next tape repeats no" if steps == 1 else "none of the next tapes repeats a"
    claim = f"{words} {'is' if steps == 1 else 'are'} right if and only if {tapes} {n + 1}-gram"
    scope = f"packing {packing}, every machine with token ids < {BASE}, n = {n}, {cells} cells, {words}"
    return Lemma(name, claim, scope, correct_iff_no_repeat(n, lengths, steps, packing), "bounded")
