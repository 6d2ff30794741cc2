"""The paper's program: one value in every interpreter and by the printed definitions, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import uncompiled

import rasp.programs.turing
from rasp import (
    InvalidTape,
    TuringMachine,
    generate,
    hash_n_gram,
    hash_n_gram_iter,
    next_tape,
    next_token_turing,
    next_tokens,
    simplify,
    trace,
)
from rasp.engines.dispatch import ENGINES
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.engines.turing import predict, tables_of, turing_graph, turing_kernel
from rasp.errors import EngineError
from rasp.machines.machine import bos, empt, eos, sep
from rasp.programs.turing import check_packing, check_tokens, key_fits, step_bound

SIZES = [(1, 1), (2, 2), (3, 5), (12, 16)]
PACKINGS = ("paper", "unbounded")


# --- the printed definitions, position by position --------------------------------------------------------------------


def cell(x: list[int], c: int, machine: TuringMachine) -> tuple[bool, int, bool]:
    """Of tape position c: is it the head, what stands there next, does the head go right (before it moves)?"""
    left, here, right = (x[i] if 0 <= i < len(x) else 0 for i in (c - 1, c, c + 1))
    is_head = here in machine.state_tokens
    after = machine.next_state(here, left) if is_head else here
    if right in machine.state_tokens:
        after = machine.next_symbol(right, here)
    return is_head, after, is_head and bool(machine.move(here, left))


def printed_next_tape(x: list[int], shift: int, machine: TuringMachine) -> list[int]:
    out = []
    for p in range(len(x)):
        seen = x[: p + 1]  # nothing later can matter
        (head, here, goes), (r_head, right, r_goes) = (cell(seen, p - shift + d, machine) for d in (0, 1))
        l_head, left, l_goes = cell(seen, p - shift - 1, machine) if p else (False, 0, False)
        value = here
        if (l_head and l_goes) or (head and not goes):
            value = left
        if (r_head and not r_goes) or (head and goes):
            value = right
        out.append(value)
    return out


def printed_keys(x: list[int], n: int, base: int, packing: str) -> list[int]:
    out = []
    for p in range(len(x)):
        digits = [x[p]]
        ended = x[p] == sep
        for back in range(1, n + 1):
            token = x[p - back] if p >= back else 0
            ended = ended or token == sep
            digits.append(0 if ended else token)
        gram = 0
        for digit in digits:
            gram = base * gram + digit
        count = x[: p + 1].count(sep)
        out.append(count + base**n * gram if packing == "paper" else gram + base ** (n + 1) * count)
    return out


def printed(x: list[int], machine: TuringMachine, n: int, packing: str) -> list[int]:
    late = printed_next_tape(x, 3, machine)
    keys = printed_keys(([empt, empt] + late[2:])[: len(x)], n, machine.base, packing)
    queries = printed_keys(x, n, machine.base, packing)
    values = printed_next_tape(x, 2, machine)
    return [
        max((v for k, v in zip(keys[: p + 1], values, strict=False) if k == q), default=0)
        for p, q in enumerate(queries)
    ]


# --- inputs -----------------------------------------------------------------------------------------------------------


def inputs(machine: TuringMachine, count: int, seed: int) -> Iterator[np.ndarray]:
    """True traces (of tapes with and without repeated grams), damaged ones, soup of all tokens, and edge cases."""
    rng = np.random.default_rng(seed)
    yield np.zeros(0, dtype=np.int64)
    yield np.array([bos])
    yield np.full(9, sep)
    while count > 3:
        count -= 1
        cells = rng.integers(machine.symbol_tokens.start, machine.symbol_tokens.stop, size=rng.integers(0, 7)).tolist()
        head = int(rng.integers(0, len(cells) + 1))
        state = int(rng.integers(machine.state_tokens.start, machine.state_tokens.stop))
        x = machine.trace([bos, *cells[:head], state, *cells[head:], eos], 6)
        x = x[: rng.integers(10, 46)]
        kind = count % 4
        if kind == 1:  # some tokens are wrong
            wrong = rng.random(len(x)) < 0.1
            x = np.where(wrong, rng.integers(0, machine.base, size=len(x)), x)
        elif kind == 2:  # a separator first, as some prompts have it
            x = np.concatenate([[sep], x])
        elif kind == 3:
            x = rng.integers(0, machine.base, size=len(x))
        yield x


def compare(
    machine: TuringMachine, n: int, packing: str, count: int, compiled: bool, program: Any = next_tokens
) -> list[str]:
    """Which interpreters differ from the reference, and where first; `program` is what graph and eager run."""
    raw = trace(lambda x: program(x, machine, n, packing))
    size = (len(machine.symbols), len(machine.states))
    shared, tables = turing_graph(*size, n, packing), tables_of(machine)
    running, kernel = Stream(shared, tables), turing_kernel(*size, n, packing) if compiled else uncompiled(shared)
    rewritten = simplify(raw)
    failures = []
    for x in inputs(machine, count, seed=n):
        running.reset()
        expected = predict(x, machine, n, packing, engine="reference")
        found = {
            "printed": printed(x.tolist(), machine, n, packing),
            "eager": program(x, machine, n, packing),
            "graph": rewritten.run(x),
            "stream": running.run(x),
            "jit": kernel.predict(x, tables=tables),
        }
        failures += [f"{way} on {x.tolist()}" for way, value in found.items() if list(value) != list(expected)]
    return failures


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("size", SIZES)
def test_every_interpreter_gives_the_printed_program(size: tuple[int, int], n: int, packing: str) -> None:
    """A thousand inputs in all; machine code for one size and two n (it takes seconds), its Python for the others."""
    machine = TuringMachine.random(*size, seed=10 * n + size[0])
    assert compare(machine, n, packing, count=32, compiled=size == (2, 2) and n in (1, 3)) == []


@pytest.mark.slow
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("size", SIZES)
def test_ten_thousand_inputs(size: tuple[int, int], n: int, packing: str) -> None:
    for seed in range(10):
        machine = TuringMachine.random(*size, seed=seed)
        assert compare(machine, n, packing, count=32, compiled=True) == []


def test_the_comparison_catches_a_mistake() -> None:
    """A program whose shift is off by one, or whose reduction is another, does not pass."""
    machine = TuringMachine.random(3, 2, seed=0)

    def late(x: Any, machine: TuringMachine, n: int, packing: str) -> Any:
        return rasp.shift_right(next_tokens(x, machine, n, packing), 1)

    def least(x: Any, machine: TuringMachine, n: int, packing: str) -> Any:
        keys = rasp.prefix_fill(next_tape(x, 3, machine), 2, empt)
        k, q = (hash_n_gram_iter(t, n, machine.base, packing) for t in (keys, x))
        return rasp.kqv(k, q, next_tape(x, 2, machine), rasp.equals, reduction="min")

    for wrong in (late, least):
        failures = compare(machine, 1, "paper", count=20, compiled=False, program=wrong)
        assert {failure.split()[0] for failure in failures} == {"eager", "graph"}


def test_one_graph_serves_every_machine_of_its_size() -> None:
    """The shared graph was traced on one machine; nothing of that machine may be left in it."""
    kernel = turing_kernel(2, 2)
    for seed in range(20):
        machine = TuringMachine.random(2, 2, seed=seed)
        own = Kernel(simplify(trace(lambda x, m=machine: next_tokens(x, m)))) if seed < 2 else kernel
        for x in inputs(machine, 12, seed):
            expected = predict(x, machine, engine="eager").tolist()
            assert kernel.predict(x, tables=tables_of(machine)).tolist() == expected
            assert own.predict(x, tables=tables_of(machine)).tolist() == expected


# --- the next token and generation ------------------------------------------------------------------------------------


def test_next_token_turing_is_the_last_of_next_tokens() -> None:
    machine = TuringMachine.random(12, 16, seed=3)
    x = machine.trace([bos, 5, 7, 20, 9, eos], 3)
    for length in (1, 5, 11, len(x)):
        token = next_token_turing(x[:length], machine)
        assert isinstance(token, int) and token == next_tokens(x, machine)[length - 1]
    other: dict[str, Any] = {"n": 2, "packing": "unbounded"}
    assert next_token_turing(x.tolist(), machine, **other) == next_tokens(x, machine, **other)[-1]


def grams_repeat(tape: np.ndarray, size: int) -> bool:
    grams = [tuple(tape[i : i + size]) for i in range(len(tape) - size + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("n", [1, 2])
def test_the_program_is_the_machine_where_no_gram_repeats(n: int, packing: str) -> None:
    """Within base**n steps: right through step t if and only if none of the tapes 1..t has a repeated (n+1)-gram."""
    kernel, steps = turing_kernel(2, 2, n, packing), 8
    rng, held = np.random.default_rng(n), 0
    for seed in range(60):
        machine = TuringMachine.random(2, 2, seed=seed)
        tape = [bos, *rng.integers(4, 6, size=4 * n - 1).tolist(), 6 + seed % 2, eos]
        x = machine.trace(tape, steps)
        rows = x.reshape(steps + 1, -1)
        first_repeat = next((t for t in range(1, steps + 1) if grams_repeat(rows[t, :-1], n + 1)), None)
        wrong = kernel.predict(x, tables=tables_of(machine))[:-1] != x[1:]
        wrong[: len(tape)] = False  # the prompt is given, not predicted
        first_wrong = (1 + int(wrong.argmax())) // rows.shape[1] if wrong.any() else None
        assert first_wrong == first_repeat
        held += first_repeat is None
    assert 0 < held < 60


@pytest.mark.parametrize("packing", PACKINGS)
def test_generate_in_every_engine(packing: str) -> None:
    machine = TuringMachine.random(2, 2, seed=1)
    prompt = [bos, 4, 6, 5, eos, sep]
    whole = machine.trace(prompt[:-1], 3)
    ways = [generate(prompt, machine, 12, n=2, packing=packing, engine=engine).tolist() for engine in ENGINES]
    assert all(way == whole[: len(way)].tolist() for way in ways) and len(ways[0]) == 18
    for engine in ENGINES:
        assert generate(prompt, machine, 0, engine=engine).tolist() == prompt
        assert generate(prompt[:-1], machine, 1, engine=engine).tolist() == prompt, "the separator may be left to it"


def test_generate_refuses() -> None:
    machine = TuringMachine.random(2, 2, seed=1)
    for engine in ENGINES:
        with pytest.raises(InvalidTape, match="the prompt is empty"):
            generate([], machine, 3, engine=engine)
        with pytest.raises(ValueError, match="count must not be negative, got -1"):
            generate([bos, 6, eos], machine, -1, engine=engine)
    with pytest.raises(EngineError, match="'fast' is not one of"):
        generate([bos, 6, eos], machine, 1, engine="fast")


# --- what is known of the printed program -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper_machines() -> list[TuringMachine]:
    return [TuringMachine.random(12, 16, seed=seed) for seed in range(60)]


def first_wrong_steps(machines: list[TuringMachine], tape: list[int], steps: int, packing: str) -> list[int | None]:
    rows = np.stack([machine.trace(tape, steps) for machine in machines])
    tables = [np.stack(parts) for parts in zip(*(tables_of(m) for m in machines), strict=True)]
    found = turing_kernel(12, 16, 1, packing).first_errors(rows, tables, len(tape))
    return [None if at < 0 else (1 + int(at)) // (len(tape) + 1) for at in found]


def test_one_symbol_is_right_for_32_steps_and_then_may_fail(paper_machines: list[TuringMachine]) -> None:
    """L <= n+1 symbols: no gram can repeat, so the first failure at n = 1 is at step 33 (168 tokens, this prompt)."""
    found = first_wrong_steps(paper_machines, [bos, 11, 16, eos], 64, "paper")
    failed = [step for step in found if step is not None]
    assert failed and min(failed) == 33
    assert 33 * 5 + 3 == 168, "tapes of four tokens and a separator; the wrong one is the third of tape 33, or later"
    assert 0.1 < len(failed) / len(found) < 0.5, "about a quarter of the machines"


def test_the_unbounded_packing_has_no_such_step(paper_machines: list[TuringMachine]) -> None:
    assert set(first_wrong_steps(paper_machines, [bos, 11, 16, eos], 200, "unbounded")) == {None}


def test_the_empty_tape_is_right_for_1024_steps(paper_machines: list[TuringMachine]) -> None:
    """No run at all is right past base**(2n) steps: the counts themselves run out."""
    found = first_wrong_steps(paper_machines[:8], [bos, 16, eos], 1100, "paper")
    assert all(step is not None and 33 <= step <= 1025 for step in found) and max(filter(None, found)) == 1025


# --- keys -------------------------------------------------------------------------------------------------------------


def test_the_base_follows_the_vocabulary() -> None:
    small, paper = TuringMachine.random(2, 3, seed=0), TuringMachine.random(12, 16, seed=0)
    assert (small.base, paper.base) == (9, 32) and step_bound(small, 2) == 81
    x = np.array([bos, 4, 6, eos, sep, bos, 5])
    for base in (9, 32):
        for n in (1, 2, 3):
            for packing in PACKINGS:
                expected = printed_keys(x.tolist(), n, base, packing)
                assert hash_n_gram_iter(x, n, base, packing).tolist() == expected
    assert hash_n_gram(x, 1).tolist() == [32, 129, 196, 70, 0, 32, 161], "32 is the paper's"


def test_next_tape_is_the_machines_step() -> None:
    machine = TuringMachine.random(3, 2, seed=4)
    for tape in ([bos, 4, 7, 5, 6, eos], [bos, 7, 4, eos], [bos, 4, 4, 8, eos], [bos, 8, eos], [bos, 4, eos, 7]):
        x = np.array([*tape, sep, bos])
        assert next_tape(x, 2, machine)[2:].tolist() == machine.step(tape)
        assert next_tape(x, 3, machine)[1:].tolist() == next_tape(x, 2, machine)[:-1].tolist()
    with pytest.raises(ValueError, match="shift 1 is too small"):
        next_tape(np.array([bos]), 1, machine)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_that_do_not_fit_are_refused(engine: str) -> None:
    paper = TuringMachine.random(12, 16, seed=0)
    x = [bos, 4, 16, eos]
    with pytest.raises(OverflowError, match="n = 6 does not fit.*the largest n that fits is 5"):
        predict(x, paper, n=6, engine=engine)
    with pytest.raises(OverflowError, match="the largest n that fits is 1[01]"):
        predict(x, paper, n=12, packing="unbounded", engine=engine)
    with pytest.raises(OverflowError, match="n = 6 does not fit"):
        generate(x, paper, 5, n=6, engine=engine)


def test_long_inputs_shrink_what_fits() -> None:
    check_packing(10, 32, "unbounded", 100)
    with pytest.raises(OverflowError, match="n = 11 does not fit: with 32 token ids and 100 tokens"):
        check_packing(11, 32, "unbounded", 100)
    with pytest.raises(OverflowError, match="the largest n that fits is 7"):
        check_packing(10, 32, "unbounded", 10**6)
    with pytest.raises(OverflowError, match="no n fits"):
        check_packing(1, 2**22, "paper", 10)
    assert key_fits(5, 32, "paper", 10**9) and not key_fits(6, 32, "paper")
    with pytest.raises(OverflowError, match=r"n = 100000000 does not fit: with 32 token ids the .* that fits is 5"):
        check_packing(10**8, 32, "paper")  # at once, without such powers


def test_fitting_keys_are_exact() -> None:
    """At the largest n that fits, no key wraps: numpy's keys are those of exact numbers."""
    x = [sep, *[31] * 12, sep, 1, 30, 31]
    for n, packing in ((5, "paper"), (10, "unbounded")):
        check_packing(n, 32, packing, len(x))
        assert hash_n_gram_iter(np.array(x), n, 32, packing).tolist() == printed_keys(x, n, 32, packing)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "1", None])
def test_bad_n(n: Any) -> None:
    machine = TuringMachine.random(1, 1, seed=0)
    with pytest.raises(ValueError, match="n must be a whole number from 1 on"):
        next_tokens([bos], machine, n=n)


def test_bad_packing_engine_and_tokens() -> None:
    machine = TuringMachine.random(1, 1, seed=0)
    with pytest.raises(ValueError, match="'dense' is not one of paper, unbounded"):
        next_tokens([bos], machine, packing="dense")
    with pytest.raises(EngineError, match="'numpy' is not one of"):
        predict([bos], machine, engine="numpy")
    with pytest.raises(InvalidTape, match="token 6 at position 1 is none of this machine's 0..5"):
        next_tokens([bos, 6], machine)
    with pytest.raises(InvalidTape, match="token -1 at position 0"):
        predict([-1], machine)
    for wrong in ([[1, 2]], [1.0], ["a"], np.array(3), [True]):
        with pytest.raises(InvalidTape, match="flat sequence of whole numbers"):
            check_tokens(wrong, machine.base)
    with pytest.raises(InvalidTape, match="flat sequence of whole numbers"):
        check_tokens([[1], [2, 3]], machine.base)
    with pytest.raises(InvalidTape, match="x is empty"):
        next_token_turing([], machine)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_tokens_no_predictions(engine: str) -> None:
    machine = TuringMachine.random(1, 1, seed=0)
    assert predict([], machine, engine=engine).tolist() == []
