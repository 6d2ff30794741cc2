"""Heads switched off and registers swapped: what happens is what the circuit says must happen."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from compile import compile_machine, compile_universal, patch, reach, switch_off
from compile.errors import CompileError
from compile.interventions import InterventionOutcome, find_register, heads_off
from compile.plan import plan_of, run_plan
from rasp import TuringMachine
from rasp.programs.universal import universal_prompt


@cache
def universal() -> Any:
    return compile_universal(3, 2, n=1, steps=8, check=False)


@cache
def text(seed: int) -> np.ndarray:
    """A prompt of a random machine and its first steps, all of one length."""
    m = TuringMachine.random(symbols=3, states=2, seed=seed)
    rng = np.random.default_rng(seed)
    tape = m.encode([str(s) for s in rng.choice(m.symbols, 4)], int(rng.integers(4)), str(rng.choice(m.states)))
    return np.array([*universal_prompt(m, tape), *m.trace(tape, 3)[len(tape) + 1 :]])


def final_registers(model: Any, tokens: np.ndarray, hooks: Any) -> np.ndarray:
    kept: list[torch.Tensor] = []
    last = f"blocks.{model.config.layers - 1}.hook_resid_post"
    with torch.no_grad():
        model.run_with_hooks(tokens, {**hooks, last: lambda x: kept.append(x.clone()) or x})
    return kept[0][0].numpy()


def differing(model: Any, tokens: np.ndarray, hooks: Any) -> set[str]:
    """The registers that hold something else anywhere."""
    gap = np.abs(final_registers(model, tokens, hooks) - final_registers(model, tokens, {})).max(axis=0)
    return {r.name for r in model.config.annotations.registers if (gap[r.start : r.stop] > 0.01).any()}


def test_the_circuit_is_the_program() -> None:
    plan = plan_of(universal())
    for seed in range(3):
        assert run_plan(plan, text(seed))[plan.graph.output].tolist() == universal().predict(text(seed)).tolist()


@pytest.mark.parametrize("head", [(0, 0), (0, 5), (3, 1), (4, 0), (7, 0)])
def test_only_what_is_computed_from_a_head_can_change(head: tuple[int, int]) -> None:
    model = universal()
    allowed = reach(model, heads=[head])
    found = differing(model, text(1), heads_off(model, [head]))
    assert found and found <= allowed.registers and allowed.answer
    assert len(switch_off(model, text(1), [head]).changed)
    assert len(allowed.registers) < len(model.config.annotations.registers)


def test_a_head_far_from_the_input_reaches_less() -> None:
    model = universal()
    last, first = reach(model, heads=[(7, 0)]), reach(model, heads=[(0, 5)])
    assert last.registers < first.registers
    assert not differing(model, text(2), heads_off(model, [(0, 5)])) <= last.registers  # a wrong prediction is seen


@pytest.mark.parametrize("seed", range(3))
def test_swapped_registers_give_what_the_circuit_predicts(seed: int) -> None:
    model, rng = universal(), np.random.default_rng(seed)
    tokens, other = text(seed), text(seed + 10)
    names = [r.name for r in model.config.annotations.registers]
    predicted = 0
    table = int(np.flatnonzero(tokens == 0)[0])
    for name in [n for n in names if names.count(n) == 1][seed::4]:
        at, taken = (int(p) for p in rng.integers(table, len(tokens) - 1, size=2))
        outcome = patch(model, tokens, other, name, at, taken)
        if outcome.predicted is not None:
            assert outcome.as_predicted, (name, at, taken)
            predicted += 1
        elif name != "overflow":
            assert find_register(model, name).role in ("share", "start")
    assert predicted >= 8


def test_a_swapped_answer_is_another_answer() -> None:
    """What the last head brings is the answer, so the other run's answer comes out, and nothing else changes."""
    model, tokens, other = universal(), text(4), text(5)
    right, theirs = model.predict(tokens), model.predict(other)
    at = int(np.flatnonzero(right[-9:] != theirs[-9:])[0]) + len(right) - 9
    outcome = patch(model, tokens, other, "next 2-gram", at)
    assert outcome.changed.tolist() == [at] and outcome.after[at] == theirs[at] and outcome.as_predicted
    assert not InterventionOutcome(outcome.before, outcome.after, outcome.before).as_predicted


def test_next_symbol_of_another_run_is_written() -> None:
    """Interchange in the middle: the symbol that the rule writes is taken from another machine's run."""
    model, changed = universal(), 0
    for seed in range(20, 26):
        tokens, other = text(seed), text(seed + 1)
        heads = [i for i in range(len(tokens) - 9) if tokens[i] in (7, 8) and i > int(np.flatnonzero(tokens == 0)[0])]
        source = [i for i in range(len(other)) if other[i] in (7, 8) and i > int(np.flatnonzero(other == 0)[0])]
        outcome = patch(model, tokens, other, "next_symbol", heads[0], source[0])
        assert outcome.as_predicted
        changed += len(outcome.changed) > 0
    assert changed >= 2


def test_machines_have_circuits_too() -> None:
    m = TuringMachine.random(symbols=2, states=2, seed=3)
    model = compile_machine(m, n=1, steps=4, check=False)
    trace = m.trace(m.encode(list(m.symbols), 0), 3)
    plan = plan_of(model)
    assert run_plan(plan, trace)[plan.graph.output].tolist() == model.predict(trace).tolist()


def test_what_is_wrong_is_said() -> None:
    model = universal()
    with pytest.raises(ValueError, match=r"no head 3\.9"):
        heads_off(model, [(3, 9)])
    with pytest.raises(ValueError, match="no register is called 'nothing'"):
        patch(model, text(0), text(1), "nothing", 3)
    with pytest.raises(ValueError, match="position 999"):
        patch(model, text(0), text(1), "line", 999)
    lean = compile_machine(TuringMachine.random(symbols=2, states=2, seed=3), backend="lean", steps=4, check=False)
    with pytest.raises(CompileError, match="hard_alibi"):
        plan_of(lean)
