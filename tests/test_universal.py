"""The universal program: the rules in the prompt are the machine."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from proofs_check.universal import exhaustive_agreement, sampled_agreement
from rasp import TuringMachine, full, next_tokens, run, where
from rasp.gallery import gallery, machine
from rasp.machines.tape import empt
from rasp.programs.universal import (
    Size,
    check_universal_prompt,
    machine_tokens,
    next_token_universal,
    next_tokens_universal,
    universal_prompt,
    universal_tokens,
)
from rasp.programs.vocabulary import InvalidProblem


def random_tape(m: TuringMachine, rng: np.random.Generator, most: int = 7) -> list[int]:
    cells = [str(name) for name in rng.choice(m.symbols, rng.integers(1, most))]
    return m.encode(cells, int(rng.integers(-1, len(cells) + 1)), str(rng.choice(m.states)))


def table_of(m: TuringMachine, size: Size) -> list[int]:
    """The rules and the separator after them."""
    prompt = universal_prompt(m, m.encode([m.blank]), *size)
    return prompt[: prompt.index(0) + 1]


def predictions(m: TuringMachine, text: Any, size: Size, n: int) -> list[int]:
    """What the universal program says on each token of a text of the machine's tokens."""
    table = table_of(m, size)
    x = np.array([*table, *universal_tokens(m, text, size)])
    return machine_tokens(m, next_tokens_universal(x, *size, n)[len(table) :], size)


@pytest.mark.parametrize(("symbols", "states"), [(1, 1), (2, 2), (5, 4), (15, 5)])
@pytest.mark.parametrize("n", [1, 3])
def test_equals_the_machines_own_program_on_every_text(symbols: int, states: int, n: int) -> None:
    rng = np.random.default_rng(symbols + n)
    for seed in range(6):
        m = TuringMachine.random(symbols=symbols, states=states, seed=seed)
        trace = m.trace(random_tape(m, rng), 5)
        cut = trace[: int(rng.integers(1, len(trace)))]
        soup = rng.choice([t for t in range(m.base) if t != empt], 50)
        for text in (trace, cut, soup):
            size = Size(symbols + int(rng.integers(3)), states + int(rng.integers(3)))
            assert predictions(m, text, size, n) == next_tokens(text, m, n, "unbounded").tolist()


def test_rules_may_stand_in_any_order() -> None:
    rng = np.random.default_rng(0)
    m = TuringMachine.random(symbols=3, states=3, seed=1)
    trace = m.trace(random_tape(m, rng), 4)
    table = np.array(table_of(m, Size(3, 3))[:-1]).reshape(-1, 5)
    shuffled = [*rng.permutation(table).ravel().tolist(), 0]
    assert shuffled[:-1] != table.ravel().tolist()
    out = next_tokens_universal(np.array([*shuffled, *trace]), 3, 3, 1)[len(shuffled) :]
    assert out.tolist() == next_tokens(trace, m, 1, "unbounded").tolist()


@pytest.mark.parametrize("name", gallery())
def test_every_gallery_machine_runs_on_it(name: str) -> None:
    m = machine(name)
    size = Size(5, 10)
    tape = m.with_room(m.encode([m.blank] * 3), 6)
    trace = m.trace(tape, 6)
    assert predictions(m, trace, size, 2) == next_tokens(trace, m, 2, "unbounded").tolist()


def test_the_token_after_a_prompt() -> None:
    m = machine("bb3")
    tape = m.with_room(m.encode([m.blank]), 5)
    trace = m.trace(tape, 1).tolist()
    prompt = universal_prompt(m, tape)
    for token in trace[len(tape) + 1 :]:
        assert next_token_universal(prompt, len(m.symbols), len(m.states), 3) == token
        prompt.append(token)


def test_many_machines_and_all_small_ones() -> None:
    found = sampled_agreement(15, 5, machines=1000)
    assert found.holds and found.predictions == 1000 * 60
    found = exhaustive_agreement(2, 1, length=2, n=1)
    assert found.holds and found.runs == found.machines * (1 * 2 + 2 * 3 + 4 * 4)


def test_a_wrong_universal_program_is_named_with_a_machine_and_a_text() -> None:
    def deaf(x: Any, symbols: int, states: int, n: int) -> Any:
        right = next_tokens_universal(x, symbols, states, n)
        return where(x == 5, full(x, 4), right)

    found = exhaustive_agreement(2, 1, length=1, program=deaf)
    assert not found.holds and found.first is not None
    m, text = found.first
    expected = next_tokens(text, m, 1, "unbounded").tolist()
    assert predictions(m, text, Size(2, 1), 1) == expected and text[-1] == 5 and expected[-1] != 4


@pytest.mark.slow
def test_a_million_machines_and_every_machine_of_two_states() -> None:
    assert sampled_agreement(15, 5, machines=1_000_000).holds
    assert exhaustive_agreement(2, 2, length=3, steps=4).holds


@pytest.mark.parametrize("engine", ["reference", "graph", "stream", "jit"])
def test_engines_agree_on_soup(engine: str) -> None:
    rng = np.random.default_rng(3)
    m = TuringMachine.random(symbols=2, states=2, seed=0)
    whole = [*table_of(m, Size(2, 2)), *m.trace(m.encode(["a1", "a2"]), 1)]
    for x in (rng.integers(10, size=60), np.array(whole)):
        program = lambda s: next_tokens_universal(s, 2, 2, 2)  # noqa: E731
        assert run(program, x, engine=engine).tolist() == run(program, x, engine="eager").tolist()


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_every_machine_of_two_states_and_two_symbols_has_its_own_prompt() -> None:
    m = TuringMachine.random(symbols=2, states=2, seed=0)
    rules = list(product(m.symbols, "LR", m.states))
    seen = set()
    for choice in product(rules, repeat=2):
        transitions = {**m.transitions, **dict(zip(product(m.states[:1], m.symbols), choice, strict=True))}
        other = TuringMachine(states=m.states, symbols=m.symbols, transitions=transitions)
        prompt = universal_prompt(other, other.encode(["a1"]))
        check_universal_prompt(prompt, 2, 2)
        seen.add(tuple(prompt))
    assert len(seen) == len(rules) ** 2


def changed(prompt: list[int], where: slice, tokens: list[int]) -> list[int]:
    return [*prompt[: where.start], *tokens, *prompt[where.stop :]]


def test_prompts_that_are_none_are_refused() -> None:
    m = TuringMachine.random(symbols=2, states=2, seed=0)
    good = universal_prompt(m, m.encode(["a1", "a2"]))
    check_universal_prompt(good, 2, 2)
    end = good.index(0)
    for bad, why in [
        (changed(good, slice(0, 5), []), "state q0 has no rule for bos"),
        (changed(good, slice(0, 5), good[5:10]), "state q0 has two rules for eos"),
        (changed(good, slice(0, 1), []), "the table has 39 tokens"),
        (changed(good, slice(0, 5), [1, 1, 1, 1, 1]), "`bos bos bos bos bos` at position 0 is no rule"),
        (good[:end], "no separator"),
        (good[: end + 1], "followed by no tape"),
        ([*good[:-1], 9], "the tape holds R"),
        ([*good[:-1], 10], "token 10 at position"),
    ]:
        with pytest.raises(InvalidProblem, match=why):
            check_universal_prompt(bad, 2, 2)
    with pytest.raises(InvalidProblem, match="has 2 symbols and 2 states: a universal program for 1 symbols"):
        universal_prompt(m, m.encode(["a1"]), symbols=1)
    with pytest.raises(InvalidProblem, match="the text is empty"):
        next_token_universal([], 2, 2)
    with pytest.raises(InvalidProblem, match="n must be a whole number"):
        next_tokens_universal(good, 2, 2, 0)
    with pytest.raises(InvalidProblem, match="at least one state"):
        next_tokens_universal(good, 2, 0)
