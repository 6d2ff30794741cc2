"""Backend tracr: equal to the program at every position, refused where it cannot be, and the same in JAX and torch."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_programs import PROGRAMS, finite

from rasp import (
    equals,
    full,
    gt,
    index_select,
    indices,
    kqv,
    lasts,
    leq,
    mask,
    next_tokens,
    num_prev,
    sel_width,
    select,
    seq_map,
    shift_right,
    tok_map,
)
from rasp.engines.reference import Plain
from rasp.machines.machine import TuringMachine

pytest.importorskip("tracr", reason="tracr is not installed")
pytest.importorskip("torch", reason="torch is not installed")
import torch

from compile import CapacityError, CompileError, Transformer, compile_machine, compile_program
from compile.front.domains import Capacity
from compile.front.schedule import schedule
from compile.source import Built
from compile.tracr.assemble import assemble
from compile.tracr.backend import convert, views_of
from compile.tracr.craft import COMPILER_BOS, Directions, make_units
from compile.tracr.plan import TracrPlan, heads_of, make_plan
from compile.validate import validate

PAPER = TuringMachine.random(symbols=12, states=16, seed=0)
SMALL = TuringMachine.random(symbols=2, states=2, seed=3)
POSITIONS = 256
LENGTH = 24


compile_tracr = partial(compile_program, backend="tracr")


def tape_of(machine: TuringMachine, cells: int, rng: np.random.Generator) -> list[int]:
    symbols = [machine.symbols[i] for i in rng.integers(len(machine.symbols), size=cells)]
    return machine.encode(symbols, int(rng.integers(cells)), str(rng.choice(machine.states)))


def traces(machine: TuringMachine, seed: int, count: int, steps: int = 32, most: int = POSITIONS) -> list[np.ndarray]:
    """Traces of random tapes, the shortest first, cut to what the model was compiled for."""
    rng = np.random.default_rng(seed)
    lengths = sorted(rng.integers(1, 24, size=count))
    return [np.asarray(machine.trace(tape_of(machine, int(n), rng), steps))[:most] for n in lengths]


def repeats_a_pair(trace: np.ndarray) -> bool:
    tapes = np.split(trace, np.flatnonzero(trace == 0))
    return any(len(set(pairs)) < len(pairs) for t in tapes[1:] for pairs in [list(itertools.pairwise(t.tolist()))])


def assert_equal(model: Transformer, machine: TuringMachine, x: np.ndarray, n: int = 1) -> None:
    expected = next_tokens(x, machine, n, "unbounded")
    assert model.predict(x).tolist() == expected.tolist()


# --- the paper's machine ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper() -> Transformer:
    return compile_machine(PAPER, backend="tracr", n=1, steps=32, max_seq_len=POSITIONS)


def test_size_is_within_the_budget(paper: Transformer) -> None:
    built = paper.config.extra["tracr"]
    assert built["layers"] == paper.config.layers == 4  # budget: 16
    assert built["parameters"] < 25_000_000  # budget: 60 million
    assert paper.parameter_count() < 12_000_000 and paper.nonzero_count() < 25_000


def test_every_position_of_many_traces(paper: Transformer) -> None:
    inputs = traces(PAPER, seed=1, count=16)
    for x in inputs:
        assert_equal(paper, PAPER, x)
    repeating = [repeats_a_pair(x) for x in inputs]
    assert any(repeating) and not all(repeating)


def test_word_by_word_reference(paper: Transformer) -> None:
    x = traces(PAPER, seed=2, count=3)[1][:80]
    assert paper.predict(x).tolist() == list(next_tokens(Plain(x), PAPER, 1, "unbounded"))


def test_any_tokens_in_any_order(paper: Transformer) -> None:
    rng = np.random.default_rng(3)
    for length in (1, 2, 5, 34, 34, 34):  # too short for any count to run over
        assert_equal(paper, PAPER, rng.choice(PAPER.base, size=length))
        assert_equal(paper, PAPER, rng.choice(PAPER.base // 8, size=length))


def test_the_paper_packing_up_to_its_own_limit() -> None:
    model = compile_machine(SMALL, backend="tracr", steps=SMALL.base - 3, packing="paper", max_seq_len=48)
    for x in traces(SMALL, seed=4, count=6, steps=SMALL.base - 3, most=48):
        assert model.predict(x).tolist() == next_tokens(x, SMALL).tolist()


def test_generates_a_trace_of_256_tokens(paper: Transformer) -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        tape = tape_of(PAPER, 5, rng)
        trace = np.asarray(PAPER.trace(tape, 31))[:POSITIONS]
        if len(trace) == POSITIONS and not repeats_a_pair(trace):
            break
    prompt = [*tape, 0]
    assert paper.generate(prompt, POSITIONS - len(prompt)).tolist() == trace.tolist()


def test_heads_and_mlps_say_what_they_do(paper: Transformer) -> None:
    labels = [row.label for row in paper.summary()]
    assert "shift_right(x, 3)" in labels and "match next 2-gram" in labels
    assert all(labels)
    assert [len(layer) for layer in paper.config.annotations.heads] == [4, 2, 2, 1]


# --- refused ----------------------------------------------------------------------------------------------------------


def test_longer_inputs_are_refused(paper: Transformer) -> None:
    with pytest.raises(CapacityError, match="258 positions"):  # with the bos that is prepended
        paper.predict(np.ones(POSITIONS + 1, dtype=int))
    with pytest.raises(ValueError, match="258 positions"):
        paper.generate(np.ones(POSITIONS - 2, dtype=int), 4)


def test_counts_beyond_capacity_are_refused(paper: Transformer) -> None:
    assert len(paper.predict(np.zeros(34, dtype=int))) == 34
    with pytest.raises(CapacityError, match="count to 34"):
        paper.predict(np.zeros(35, dtype=int))


def test_tokens_the_program_does_not_know_are_refused() -> None:
    model = compile_tracr(lambda x: x, [0, 3, 5], max_seq_len=4)
    assert model.predict([5, 0, 3]).tolist() == [5, 0, 3]
    for stranger in (4, 6):
        with pytest.raises(ValueError, match="token"):
            model.predict([0, stranger])


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compile.tracr.backend.find_spec", lambda name: None if name == "tracr" else name)
    with pytest.raises(CompileError, match=r"needs tracr, not installed here: pip install"):
        compile_tracr(lambda x: x, range(4))


@pytest.mark.parametrize("length", [0, -3, 2.5, True])
def test_max_seq_len_must_be_a_number_of_tokens(length: Any) -> None:
    with pytest.raises(CompileError, match="max_seq_len"):
        compile_tracr(lambda x: x, range(4), max_seq_len=length)


def test_too_many_parameters_are_refused_with_the_operation() -> None:
    with pytest.raises(CompileError, match=r"kqv.* has 8001 values.*parameters"):
        compile_tracr(lambda x: lasts(x, x), range(4), max_seq_len=8000)


def test_too_large_a_map_is_refused_with_the_operation() -> None:
    def product(x: Any) -> Any:
        return seq_map(indices(x), index_select(indices(x), x), lambda a, b: 1000 * a + b)

    with pytest.raises(CompileError, match=r"1000 \* .*: a map with 22500 cases"):
        compile_tracr(product, range(150), max_seq_len=150)


def test_too_fine_a_mean_is_refused_with_the_operation() -> None:
    with pytest.raises(CompileError, match=r"kqv.*finer than float32"):
        compile_tracr(lambda x: kqv(x, x, 9 * indices(x), lambda k, q: k <= q), range(3), max_seq_len=100, check=False)


def test_too_many_values_to_tell_apart_are_refused_with_the_operation() -> None:
    with pytest.raises(CompileError, match=r"kqv.*: telling 3000 values apart takes scores beyond"):
        compile_tracr(lambda x: lasts(x, x), range(2), max_seq_len=3000)


# --- other programs ---------------------------------------------------------------------------------------------------

QUICK = ("mode", "induct", "mean_of_larger", "last_occurrence", "mixed_condition", "add_reversed", "identity")


def compiled(name: str) -> tuple[Transformer, Any]:
    program = PROGRAMS[name]
    options = {key: value for key, value in program.options.items() if key != "positions"}
    model = compile_program(program.run, program.vocabulary, backend="tracr", max_seq_len=LENGTH, **options)
    return model, program


def assert_runs(name: str) -> None:
    model, program = compiled(name)
    rng = np.random.default_rng(6)
    rows = [rng.choice(program.vocabulary, size=rng.integers(1, LENGTH + 1)) for _ in range(40)]
    few = [rng.choice(program.vocabulary[:3], size=LENGTH) for _ in range(10)]
    for x in (*rows, *few):
        assert model.predict(x).tolist() == list(program.run(Plain(x)))


@pytest.mark.parametrize("name", QUICK)
def test_program(name: str) -> None:
    assert_runs(name)


def test_a_choice_that_is_never_met() -> None:
    """A box of values that no token has (two sides read the same register) becomes no hidden unit."""

    def program(x: Any) -> Any:
        return seq_map(kqv(x, x, x, equals) % 2, mask(x, x // 4), max)

    model = compile_program(program, [0, 2, 5], backend="tracr", counts=2, max_seq_len=12)
    assert model.predict([0, 5, 2, 5, 0]).tolist() == list(program(Plain([0, 5, 2, 5, 0])))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in QUICK])
def test_further_program(name: str) -> None:
    assert_runs(name)


def random_program(seed: int) -> Any:
    """A few operations on each other's results, with defaults that are no value of what is moved."""

    def program(x: Any) -> Any:
        rng = np.random.default_rng(seed)
        made = [x, shift_right(x, int(rng.integers(1, 4)), default=int(rng.integers(4)))]
        for _ in range(int(rng.integers(2, 6))):
            a, b, c = (made[int(i)] for i in rng.integers(len(made), size=3))
            default, predicate = int(rng.integers(-1, 5)), (equals, leq, gt)[int(rng.integers(3))]
            choices = (
                lambda a=a, d=default: shift_right(a, 2, default=d),
                lambda a=a, b=b: seq_map(a, b, lambda p, q: (p * 2 + q) % 5),
                lambda a=a, b=b, p=predicate: sel_width(select(a, b, p)),
                lambda a=a, b=b, c=c, d=default, p=predicate: kqv(a, b, c, p, default=d, reduction="max"),
                lambda a=a, b=b, c=c, d=default, p=predicate: kqv(a, b, c, p, default=d, reduction="min"),
                lambda a=a, b=b, c=c, d=default, p=predicate: kqv(a, b, c, p, default=d),
                lambda a=a, x=x: seq_map(a, indices(x), lambda p, q: (p + q) % 3),
            )
            made.append(choices[int(rng.integers(len(choices)))]())
        return made[-1]

    return program


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    program, rng = random_program(seed), np.random.default_rng(seed)
    model = compile_tracr(program, range(4), max_seq_len=10, counts=10, check=False)
    for _ in range(40):
        x = rng.integers(4, size=int(rng.integers(1, 11)))
        assert model.predict(x).tolist() == program(x).tolist()


@pytest.fixture(scope="module")
def small() -> Transformer:
    """Counts as far as its inputs are long: there is nothing it has to refuse."""
    return compile_machine(SMALL, backend="tracr", n=2, steps=38, max_seq_len=40)


def test_all_short_sequences_of_a_small_machine(small: Transformer) -> None:
    rows = np.array(list(itertools.product(range(SMALL.base), repeat=4)))
    found = small.predict(rows)
    for x, row in zip(rows[::29], found[::29], strict=True):
        assert row.tolist() == next_tokens(x, SMALL, 2, "unbounded").tolist()


def test_traces_of_a_small_machine_with_longer_grams(small: Transformer) -> None:
    for x in traces(SMALL, seed=7, count=12, steps=6, most=40):
        assert_equal(small, SMALL, x, n=2)


def test_long_soups_of_a_small_machine(small: Transformer) -> None:
    rng = np.random.default_rng(12)
    for tokens in (range(SMALL.base), (0, 1, 4, 6), (0, 6), (0,)):
        for _ in range(5):
            assert_equal(small, SMALL, rng.choice(tokens, size=40), n=2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_longer_grams_at_the_paper_size(n: int) -> None:
    model = compile_machine(PAPER, backend="tracr", n=n, steps=32, max_seq_len=POSITIONS)
    for x in traces(PAPER, seed=8, count=24):
        assert_equal(model, PAPER, x, n=n)


@pytest.mark.slow
def test_two_hundred_steps_in_a_thousand_positions() -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    model = compile_machine(machine, backend="tracr", steps=200, max_seq_len=1024)
    assert_equal(model, machine, np.asarray(machine.trace([1, 4, 7, 2], 200))[:1024])
    for x in traces(machine, seed=9, count=6, steps=200, most=1024):
        assert_equal(model, machine, x)


# --- the pieces -------------------------------------------------------------------------------------------------------


def plan_of(program: Any, tokens: int = 4, counts: int = 8, positions: int = 12) -> TracrPlan:
    return make_plan(schedule(finite(program, range(tokens), Capacity(counts, positions))))


def run_units(names: Directions, node: int, numbers: np.ndarray) -> np.ndarray:
    """What the MLP makes of a head's number, (numbers, values), in float32 as the model computes it."""
    place = {direction: k for k, direction in enumerate(names.register(node))}
    out = np.zeros((len(numbers), len(place)), dtype=np.float32)
    for unit in make_units(names, names.plan.times[node] // 2):
        reads = np.float32(unit.reads.get(names.number(node), 0)) * numbers.astype(np.float32)
        level = np.maximum(0, reads + np.float32(unit.reads.get(names.one, 0)))
        for direction in place.keys() & unit.writes.keys():
            out[:, place[direction]] += np.float32(unit.writes[direction]) * level
    return out


@pytest.mark.parametrize("most", [3, 34, 512])
def test_a_count_is_read_off_its_share(most: int) -> None:
    plan = plan_of(lambda x: num_prev(x, x), counts=most, positions=most)
    shown = run_units(Directions(plan), plan.graph.output, 1 / (1 + np.arange(most + 1)))
    assert np.abs(shown - np.eye(most + 1)).max() < 2e-3


def test_a_mean_is_cut_to_a_whole_number() -> None:
    plan = plan_of(lambda x: kqv(x, x, indices(x) - 5, lambda k, q: k <= q), positions=12)
    means = np.array(sorted({total / count for count in range(1, 13) for total in range(-5 * count, 6 * count + 1)}))
    shown = run_units(Directions(plan), plan.graph.output, means)
    values = np.array(plan.domain(plan.graph.output))
    assert values[shown.argmax(axis=1)].tolist() == means.astype(int).tolist()
    assert np.abs(shown.max(axis=1) - 1).max() < 0.01


def test_heads_that_can_wait_leave_the_fullest_layer() -> None:
    program = finite(lambda x: next_tokens(x, PAPER), range(PAPER.base), Capacity(31, POSITIONS))
    plan = make_plan(schedule(program))
    assert [len(heads_of(plan, layer)) for layer in range(plan.layers)] == [4, 2, 2, 1]
    for i in plan.times:  # moving heads must not have broken the order
        starts = plan.times[i] - plan.is_number(i)
        assert all(plan.times[j] < starts for j in plan.reads(i))


def test_what_bos_holds_does_not_match() -> None:
    """The default of the inner shift stands at bos, as a key that equals many queries; it must not be found there."""

    def seen_before(x: Any) -> Any:
        return kqv(shift_right(x, 1, default=3), x, full(x, 1), lambda k, q: k == q, default=0)

    model = compile_tracr(seen_before, range(4), max_seq_len=8)
    x = np.array([1, 1, 3, 2, 3, 2, 0, 0])
    assert model.predict(x).tolist() == seen_before(x).tolist() == [0, 1, 1, 0, 1, 1, 0, 1]


# --- the checker ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked() -> tuple[TracrPlan, Any]:
    plan = plan_of(lambda x: num_prev(x, shift_right(x, 1)), counts=12)
    return plan, assemble(plan)


INPUTS = [np.array([1, 1, 2, 1, 3, 1, 1]), np.array([0, 0, 0])]


def check_against_program(model: Transformer, plan: TracrPlan, inputs: list[np.ndarray]) -> None:
    validate(Built(model, views_of(model, plan)), plan.program, inputs, plan.positions)


def test_the_check_accepts_the_model(checked: tuple[TracrPlan, Any]) -> None:
    plan, assembled = checked
    check_against_program(convert(plan, assembled), plan, INPUTS)


def test_the_check_finds_damaged_weights_and_names_the_operation(checked: tuple[TracrPlan, Any]) -> None:
    plan, assembled = checked
    model = convert(plan, assembled)
    with torch.no_grad():
        model.blocks[0].attn.qkv.weight.mul_(0.001)  # the shift's attention thaws
    with pytest.raises(CompileError, match=r"first wrong operation: n\d+ = shift_right\(x, 1\)"):
        check_against_program(model, plan, INPUTS)


def test_the_check_finds_every_damaged_layer(checked: tuple[TracrPlan, Any]) -> None:
    plan, assembled = checked
    for layer, part in ((0, "attn.out"), (1, "attn.qkv"), (1, "attn.out"), (1, "mlp.up"), (1, "mlp.down")):
        model = convert(plan, assembled)
        with torch.no_grad():
            model.get_submodule(f"blocks.{layer}.{part}").weight.mul_(-1)
        with pytest.raises(CompileError, match="differs from the program|a count ran over"):
            check_against_program(model, plan, INPUTS)


def test_the_check_finds_another_program(checked: tuple[TracrPlan, Any]) -> None:
    plan, _ = checked
    other = plan_of(lambda x: num_prev(x, x), counts=12)
    model = convert(other, assemble(other))
    wrong = TracrPlan(plan.schedule)
    wrong.times = {i: t for i, t in plan.times.items() if plan.graph.nodes[i].op != "delay"}
    with pytest.raises(CompileError, match="differs from the program"):
        check_against_program(model, wrong, INPUTS)


# --- JAX and torch ----------------------------------------------------------------------------------------------------


def jax_answers(haiku: Any, x: np.ndarray) -> list[int]:
    return haiku.apply([COMPILER_BOS, *x.tolist()]).decoded[1:]


def test_torch_answers_as_jax_does_everywhere(paper: Transformer) -> None:
    x = traces(PAPER, seed=10, count=2)[1]
    x = np.pad(x, (0, POSITIONS - len(x)), constant_values=5)
    haiku: Any = paper.__dict__["haiku"]
    assert jax_answers(haiku, x) == paper.predict(x).tolist() == next_tokens(x, PAPER).tolist()


def test_torch_logits_are_those_of_jax(checked: tuple[TracrPlan, Any]) -> None:
    plan, assembled = checked
    x = np.array([1, 1, 2, 1, 3, 1, 1])
    stream = np.asarray(assembled.haiku.apply([COMPILER_BOS, *x.tolist()]).transformer_output)[0, 1:]
    for trim in (True, False):
        model = convert(plan, assembled, trim=trim)
        _, cache = model.run_with_cache(x)
        found = cache["ln_final.hook_normalized"][0, 1:].numpy()
        assert np.abs(found - stream).max() < 1e-5
        assert model.predict(x).tolist() == jax_answers(assembled.haiku, x)


def test_untrimmed_has_every_number_of_tracr(checked: tuple[TracrPlan, Any]) -> None:
    plan, assembled = checked
    model = convert(plan, assembled, trim=False)
    inside = sum(p.numel() for p in model.blocks.parameters())
    params = assembled.haiku.params
    assert inside == sum(int(w.size) for name, ws in params.items() if "transformer" in name for w in ws.values())
    assert model.parameter_count() > convert(plan, assembled).parameter_count()


def test_scores_make_up_for_the_key_size(checked: tuple[TracrPlan, Any]) -> None:
    """After tracr's division by sqrt(key_size) a match still stands COLDNESS above none."""
    _, assembled = checked
    x = [COMPILER_BOS, 1, 2, 3]
    scores = np.asarray(assembled.haiku.apply(x).attn_logits[0])[0, 0]
    assert scores[3, 2] - scores[3, 3] >= 100


def test_a_saved_model_loads_without_jax(small: Transformer, tmp_path: Path) -> None:
    x = traces(SMALL, seed=11, count=1, steps=6, most=40)[0]
    small.save_pretrained(tmp_path)
    code = (
        "import sys; from compile import Transformer; "
        f"m = Transformer.from_pretrained({str(tmp_path)!r}); print(m.predict({x.tolist()}).tolist()); "
        "assert not {'jax', 'tracr', 'haiku'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == str(small.predict(x).tolist())


def test_the_backend_is_imported_without_jax() -> None:
    code = (
        "import sys, compile, compile.tracr.backend, experiments.benchmarks.stock_tracr_compare; "
        "assert not {'jax', 'tracr', 'haiku'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


ROOT = Path(__file__).parent.parent


def test_a_map_of_the_token_alone_needs_no_layer_of_its_own() -> None:
    model = compile_tracr(lambda x: tok_map(x, lambda z: 3 - 2 * z), range(4), max_seq_len=4)
    assert model.predict([0, 1, 2, 3]).tolist() == [3, 1, -1, -3]
