"""The sparse engine says what torch says at every token, or says why it cannot; and a wrong one is noticed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiled_programs import PROGRAMS

from compile import CapacityError, Transformer, compile_machine, compile_program, compile_universal
from compile.sparse import NotSparse, SparseEngine
from compile.sparse import memory as memories
from compile.sparse.check import check_plan
from compile.sparse.plan import make_plan
from compile.transformer import files
from compile.transformer.files import InvalidModel, fill_nonzeros
from rasp import TuringMachine, equals, generate, kqv, leq, next_tokens, sep
from rasp.programs.universal import universal_prompt


def sparse(model: Transformer) -> SparseEngine:
    return SparseEngine(model.config.to_dict(), {name: p.numpy() for name, p in model.state_dict().items()})


@cache
def compiled(symbols: int, states: int, backend: str, n: int, steps: int = 40) -> tuple[TuringMachine, Transformer]:
    machine = TuringMachine.random(symbols=symbols, states=states, seed=symbols)
    return machine, compile_machine(machine, backend=backend, n=n, steps=steps, check=False)


def random_tape(machine: TuringMachine, cells: int, rng: np.random.Generator) -> list[int]:
    names = [machine.symbols[c] for c in rng.integers(len(machine.symbols), size=cells)]
    return list(machine.encode(names, int(rng.integers(cells)), str(rng.choice(machine.states))))


def answer(predict: Any, tokens: np.ndarray) -> list[int] | None:
    """None where the capacity is exceeded."""
    try:
        return predict(tokens).tolist()
    except CapacityError:
        return None


@pytest.mark.parametrize(
    ("symbols", "states", "backend", "n"),
    [(2, 2, "hard_alibi", 1), (3, 2, "lean", 1), (12, 16, "lean", 2), (4, 3, "hard_alibi", 3), (5, 4, "lean", 4)],
)
def test_it_says_what_torch_says_at_every_token(symbols: int, states: int, backend: str, n: int) -> None:
    machine, model = compiled(symbols, states, backend, n)
    engine, rng = sparse(model), np.random.default_rng(n)
    texts = [machine.trace(random_tape(machine, cells, rng), steps) for cells, steps in ((1, 40), (3, 20), (20, 6))]
    if backend == "hard_alibi":  # exact on every text, not only on tapes
        texts += [rng.integers(machine.base, size=size) for size in (1, 60, 200)]
    answers = [answer(engine.predict, text) for text in texts]
    assert answers == [answer(model.predict, text) for text in texts]
    assert sum(a is not None for a in answers) >= 3


MORE_THAN_EQUALITY = ("rank_below", "mean_of_larger", "smallest_since", "mixed_condition")  # refused when read


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_compilers_programs_are_looked_up_or_refused(name: str) -> None:
    program = PROGRAMS[name]
    model = compile_program(program.run, program.vocabulary, **{"check": False, **program.options})
    rng = np.random.default_rng(1)
    if name in MORE_THAN_EQUALITY:
        with pytest.raises(NotSparse, match="more than equality"):
            sparse(model)
        return
    engine = sparse(model)
    for size in (1, 5, 8):
        tokens = rng.choice(program.vocabulary, size=size)
        assert answer(engine.predict, tokens) == answer(model.predict, tokens)


def kqv_by_remainder(x: Any, reduction: str) -> Any:
    return kqv(x % 3, x % 3, x, equals, reduction=reduction)


def test_means_and_extremes_are_added_up() -> None:
    rng = np.random.default_rng(0)
    for reduction in ("mean", "max", "min"):
        model = compile_program(
            lambda x, r=reduction: kqv(x % 3, x % 3, x, lambda k, q: k == q, reduction=r),
            range(7),
            counts=40,
            check=False,
        )
        engine = sparse(model)
        for _ in range(5):
            tokens = rng.integers(7, size=int(rng.integers(1, 40)))
            assert engine.predict(tokens).tolist() == model.predict(tokens).tolist()


def test_more_than_equality_is_refused_by_name() -> None:
    model = compile_program(lambda x: kqv(x, x, x, leq, reduction="max"), range(5), counts=9, check=False)
    with pytest.raises(NotSparse, match="layer 0 head 0.*more than equality"):
        sparse(model)


def test_learned_models_are_refused_by_name() -> None:
    from experiments.evaluation.shipped import FOLDER

    with pytest.raises(NotSparse, match="norm"):
        sparse(Transformer.from_pretrained(FOLDER / "tm-0"))


def test_what_it_writes_is_what_the_program_writes() -> None:
    machine, model = compiled(12, 16, "lean", 2)
    engine, rng = sparse(model), np.random.default_rng(5)
    prompts = [[*random_tape(machine, 9, rng), sep] for _ in range(4)]
    expected = [generate(p, machine, 200, n=2, packing="unbounded").tolist() for p in prompts]
    assert [row.tolist() for row in engine.generate(prompts, 200)] == expected
    assert [row.tolist() for row in engine.generate(prompts, 200, workers=2)] == expected


def test_a_stop_token_is_kept_and_ends_the_text() -> None:
    machine, model = compiled(12, 16, "lean", 2)
    prompt = [*random_tape(machine, 5, np.random.default_rng(0)), sep]
    (row,) = sparse(model).generate([prompt], 100, stops=[sep])
    assert row[-1] == sep and len(row) == 2 * len(prompt)


def test_a_capacity_reached_keeps_what_was_written() -> None:
    machine, model = compiled(3, 2, "lean", 1, 4)
    prompt = [*machine.encode([machine.symbols[0]], 0), sep]
    written: list[int] = []
    with pytest.raises(CapacityError, match="count"):
        for piece in sparse(model).stream(prompt, 500):
            written += piece.tolist()
    assert written[: 4 * len(prompt)] == machine.trace(prompt[:-1], 4)[len(prompt) :].tolist()


def test_the_universal_transformer_runs_through_it() -> None:
    model = compile_universal(symbols=3, states=2, n=1, steps=12, check=False)
    engine = sparse(model)
    for seed in range(5):
        machine = TuringMachine.random(symbols=3, states=2, seed=seed)
        tape = random_tape(machine, 3, np.random.default_rng(seed))
        prompt = universal_prompt(machine, tape)
        text = np.concatenate((prompt, machine.trace(tape, 8)[len(tape) + 1 :]))
        assert engine.predict(text).tolist() == model.predict(text).tolist()
        start = len(prompt) - len(tape) - 1
        assert engine.predict(text)[start:].tolist() == next_tokens(text[start:], machine, 1, "unbounded").tolist()


def test_long_runs_grow_the_table_and_leave_out_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "SMALLEST_TABLE", 16)
    machine, model = compiled(12, 16, "lean", 2)
    engine = sparse(model)
    memory = engine.memory()
    text = machine.trace(random_tape(machine, 100, np.random.default_rng(1)), 38)
    found = engine.weights.outputs[memory.feed(text)]
    assert found.tolist() == next_tokens(text, machine, 2, "unbounded").tolist()
    assert memory.left_out < 1e-9
    assert len(memory.state.table_key) > 16


# --- asked through the model ------------------------------------------------------------------------------------------


def test_generate_and_predict_take_an_engine() -> None:
    machine, model = compiled(12, 16, "lean", 2)
    prompt = [*random_tape(machine, 9, np.random.default_rng(5)), sep]
    by_torch = model.generate(prompt, 40, engine="torch").tolist()
    assert model.generate(prompt, 40, engine="sparse").tolist() == by_torch
    assert model.generate([prompt, prompt], 300, workers=2)[1][: len(by_torch)].tolist() == by_torch
    assert model.predict(by_torch, engine="sparse").tolist() == model.predict(by_torch, engine="torch").tolist()
    with pytest.raises(ValueError, match="'quick'; choose one of auto, torch, sparse"):
        model.generate(prompt, 4, engine="quick")
    with pytest.raises(ValueError, match="leave out context"):
        model.generate(prompt, 4, engine="sparse", context=8)


def test_changed_weights_are_not_mistaken_for_the_old_ones() -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=3)
    model = compile_machine(machine, backend="lean", steps=40, check=False)
    text = machine.trace(random_tape(machine, 6, np.random.default_rng(0)), 12)
    before = model.predict(text, engine="sparse").tolist()
    weights = model.unembed.weight.detach().numpy()
    weights[[4, 5]] = weights[[5, 4]]  # the two first symbols change places
    assert model.predict(text, engine="sparse").tolist() == model.predict(text, engine="torch").tolist() != before


def test_torch_takes_over_with_a_warning_that_says_why() -> None:
    model = compile_program(lambda x: kqv(x, x, x, leq, reduction="max"), range(5), counts=9, check=False)
    prompt = [0, 3, 1, 2]
    with pytest.warns(UserWarning, match="through torch.*more than equality"):
        assert model.generate(prompt, 300)[:8].tolist() == model.generate(prompt, 4, engine="torch").tolist()
    with pytest.raises(NotSparse, match="more than equality"):
        model.generate(prompt, 300, engine="sparse")


@pytest.mark.parametrize("engine", ["torch", "sparse"])
def test_what_was_written_is_kept_with_the_error(engine: str) -> None:
    machine, model = compiled(3, 2, "lean", 1, 4)
    prompt = [*machine.encode([machine.symbols[0]], 0), sep]
    with pytest.raises(CapacityError) as caught:
        model.generate(prompt, 500, engine=engine)
    assert caught.value.written is not None
    assert caught.value.written[0][: 5 * len(prompt)].tolist() == machine.trace(prompt[:-1], 4).tolist()


# --- a wrong engine is noticed ----------------------------------------------------------------------------------------


def _wrong_index(engine: SparseEngine) -> None:
    layer = engine.weights.layers[1]
    rows = np.roll(layer.out.rows, 1)
    _exchange(engine, 1, out=replace(layer.out, rows=rows))


def _dropped_head(engine: SparseEngine) -> None:
    layer = engine.weights.layers[0]
    first = slice(layer.out.start[0], layer.out.start[layer.d_head])
    values = layer.out.values.copy()
    values[first] = 0
    _exchange(engine, 0, out=replace(layer.out, values=values))


def _doubled_nonzero(engine: SparseEngine) -> None:
    layer = engine.weights.layers[1]
    values = layer.project.values.copy()
    values[0] *= 2
    _exchange(engine, 1, project=replace(layer.project, values=values))


def _missing_staircase(engine: SparseEngine) -> None:
    _exchange(engine, 0, staircases=engine.weights.layers[0].staircases[:1])


def _exchange(engine: SparseEngine, layer: int, **parts: Any) -> None:
    layers = list(engine.weights.layers)
    layers[layer] = replace(layers[layer], **parts)
    engine.weights = replace(engine.weights, layers=tuple(layers))
    engine.plan = make_plan(engine.weights)


@pytest.mark.parametrize("spoil", [_wrong_index, _dropped_head, _doubled_nonzero, _missing_staircase])
def test_a_wrong_engine_differs_or_stops(spoil: Any) -> None:
    machine, model = compiled(3, 2, "lean", 1)
    engine = sparse(model)
    text = machine.trace(random_tape(machine, 6, np.random.default_rng(0)), 12)
    assert engine.predict(text).tolist() == model.predict(text).tolist()
    spoil(engine)
    try:
        found = answer(engine.predict, text)
    except NotSparse:
        return
    assert found != model.predict(text).tolist()


MATRICES = [(0, "project"), (0, "out"), (0, "up"), (0, "down"), (1, "project"), (1, "out")]


@pytest.mark.parametrize(("layer", "name"), MATRICES)
def test_any_nonzero_that_is_not_the_models_is_seen_when_it_is_read(layer: int, name: str) -> None:
    """Whether or not a text would show it: each one doubled, and each one in a wrong row."""
    _, model = compiled(3, 2, "lean", 1)
    arrays = {key: p.numpy() for key, p in model.state_dict().items()}
    engine = sparse(model)
    check_plan(engine.plan, engine.weights, arrays)
    columns = getattr(engine.weights.layers[layer], name)
    stage = 4 * layer + ("project", "out", "up", "down").index(name)
    first = int(engine.plan.start[engine.plan.column[stage]])
    entries = range(first, first + len(columns.values))
    rows = len(np.unique(columns.rows)) + 1
    for at in entries if len(entries) < 100 else entries[:: len(entries) // 100]:
        values, places = engine.plan.values.copy(), engine.plan.rows.copy()
        values[at] *= 2
        places[at] = (places[at] + 1) % rows if places[at] + 1 < rows else places[at] - 1
        for wrong in (engine.plan._replace(values=values), engine.plan._replace(rows=places)):
            with pytest.raises(NotSparse, match=f"blocks.{layer}.*laid out wrongly"):
                check_plan(wrong, engine.weights, arrays)


def test_a_dropped_head_is_seen_when_the_model_is_read() -> None:
    _, model = compiled(3, 2, "lean", 1)
    engine, arrays = sparse(model), {key: p.numpy() for key, p in model.state_dict().items()}
    _dropped_head(engine)
    with pytest.raises(NotSparse, match="blocks.0.attn.out was laid out wrongly"):
        check_plan(engine.plan, engine.weights, arrays)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_saved_model_is_small_and_runs_without_torch(tmp_path: Path) -> None:
    machine, model = compiled(12, 16, "lean", 2)
    model.save_pretrained(tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1_000_000 < 4 * model.parameter_count()
    text = machine.trace(random_tape(machine, 8, np.random.default_rng(0)), 9)
    again = Transformer.from_pretrained(tmp_path)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))
    code = (
        "import sys\nfor name in ('torch', 'jax', 'huggingface_hub'): sys.modules[name] = None\n"
        "from compile.sparse import SparseEngine\n"
        f"print(SparseEngine.load({str(tmp_path)!r}).predict({text.tolist()}).tolist())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(model.predict(text).tolist())


def test_dense_files_are_read_by_both_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, model = compiled(3, 2, "lean", 1)
    monkeypatch.setattr(files, "MOST_NONZERO", -1)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size > 4 * model.parameter_count()
    text = machine.trace(random_tape(machine, 6, np.random.default_rng(0)), 9)
    expected = model.predict(text).tolist()
    assert SparseEngine.load(tmp_path).predict(text).tolist() == expected
    assert Transformer.from_pretrained(tmp_path).predict(text, engine="sparse").tolist() == expected


def test_nonzeros_out_of_place_are_refused() -> None:
    places, values = np.array([1, 5], dtype=np.int32), np.ones(2, dtype=np.float32)
    assert fill_nonzeros(places, values, (2, 3), "w").tolist() == [[0, 1, 0], [0, 0, 1]]
    for wrong in ([5, 1], [1, 6], [-1, 2], [1, 1], [1]):
        with pytest.raises(InvalidModel, match="nonzeros of w do not fit its 6"):
            fill_nonzeros(np.array(wrong, dtype=np.int32), values, (2, 3), "w")
