"""The comparison, on simulators whose answers are known: right ones, wrong ones, and deliberately damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from wrong_programs import colliding_hash, longer_memory, smallest_match

from compile import compile_machine
from compile.transformer import Transformer, TransformerConfig
from compile.transformer.cache import Cache
from experiments.comparison import (
    KINDS,
    PLACES,
    Comparison,
    Cost,
    Disagreement,
    LearnedSimulator,
    ProgramSimulator,
    Simulator,
    TrueMachine,
    compare,
    cost,
    describe,
    first_failure,
    flops_per_token,
    fresh_tapes,
    repetitive_tapes,
    steps_needed,
    with_ratios,
)
from experiments.comparison.cost import cache_bytes
from experiments.comparison.simulators import IntArray
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.evaluate import accuracy
from experiments.evaluation.shipped import FOLDER
from experiments.training.presets import preset
from proofs_check import first_wrong_step
from rasp import TuringMachine
from rasp.machines.tape import eos, sep

NS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def machine() -> TuringMachine:
    return TuringMachine.random(symbols=3, states=2, seed=1)


@pytest.fixture(scope="module")
def tapes(machine: TuringMachine) -> IntArray:
    return fresh_tapes(machine, 9, 40)


@pytest.fixture(scope="module")
def lean(machine: TuringMachine, tapes: IntArray) -> Transformer:
    return compiled(machine, tapes, "lean", 2)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(FOLDER / "tm-0")


@pytest.fixture(scope="module")
def damaged(checkpoint: Checkpoint) -> LearnedSimulator:
    """Every head of the last layer slightly off, and the symbol a3 never said."""
    model = deepcopy(checkpoint.model)
    torch.manual_seed(0)
    with torch.no_grad():
        weight = model.blocks[-1].attn.qkv.weight
        weight += 0.5 * weight.std() * torch.randn_like(weight)
        model.unembed.weight[checkpoint.model.config.token_names.index("a3")] = 0
    return LearnedSimulator(model, checkpoint.context)


@pytest.fixture(scope="module")
def learned(checkpoint: Checkpoint, damaged: LearnedSimulator) -> Comparison:
    """The intact checkpoint and the damaged one."""
    machine = own_machine(checkpoint)
    given = np.concatenate((fresh_tapes(machine, 12, 24), repetitive_tapes(machine, 12, 20)))
    return compare({"intact": LearnedSimulator.of(checkpoint), "damaged": damaged}, machine, given, steps=3)


def own_machine(checkpoint: Checkpoint) -> TuringMachine:
    return checkpoint.task.machine  # type: ignore[attr-defined,no-any-return]


def compiled(machine: TuringMachine, tapes: IntArray, backend: str, n: int) -> Transformer:
    return compile_machine(machine, backend=backend, n=n, steps=steps_needed(machine, tapes, n), check=False)


def only(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    return row


# --- programs and compiled models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backend", "ns"), [("hard_alibi", (1, 2)), ("lean", NS)])
def test_compiled_equals_program_at_every_token(
    machine: TuringMachine, tapes: IntArray, backend: str, ns: tuple[int, ...]
) -> None:
    for n in ns:
        pair: dict[str, Simulator] = {
            "model": compiled(machine, tapes, backend, n),
            "program": ProgramSimulator(machine, n),
        }
        found = compare(pair, machine, tapes, steps=3)
        model, program = found.trials
        assert (model.predicted == program.predicted).all() and (model.written == program.written).all()
        assert (model.alive == program.alive).all()
        followed = 40 + int(program.alive[:2].sum())  # tapes for which a next one was written
        assert found.checks.tapes == 2 * followed
        most = 26 * (40 + followed)  # every token of the traces, and of prompts and answers
        assert found.checks.tokens == most if backend == "hard_alibi" else 0.9 * most < found.checks.tokens <= most


def test_failures_are_where_the_theorem_says() -> None:
    machine = TuringMachine.random(symbols=15, states=5, seed=3)
    given = repetitive_tapes(machine, 14, 40)
    found = compare({str(n): ProgramSimulator(machine, n) for n in NS}, machine, given)
    for n, trial in zip(NS, found.trials, strict=True):
        named = [first_wrong_step(machine, tape, 1, n) for tape in given]
        assert [wrong is None for wrong in named] == trial.right.tolist()
        failures = iter(trial.failures(machine))
        for wrong in filter(None, named):
            failure = next(failures)
            assert (failure.at, failure.written[failure.at]) == (wrong.asked.position + 1, wrong.predicted)
        rows = [row for row in found.difficulty() if row["simulator"] == str(n) and row["n"] == n]
        assert {row["group"]: row["accuracy"] for row in rows} == {"unique": 1.0, "repeated": 0.0}
    assert found.checks.to_dict() == {
        "compiled_equals_program": {"tokens": 0, "mismatches": 0},
        "criterion": {"tapes": 160, "mismatches": 0},
    }


@dataclass(frozen=True)
class Mutant(ProgramSimulator):
    """A program with a mistake that claims to be the paper's."""

    program: Callable[..., Any] = smallest_match

    def predict(self, tokens: IntArray) -> IntArray:
        return np.array([self.program(row, self.machine, self.n, self.packing) for row in tokens])

    def generate(self, prompts: IntArray, count: int) -> IntArray:
        text = prompts
        for _ in range(count):
            text = np.concatenate((text, self.predict(text)[:, -1:]), axis=1)
        return text


@pytest.mark.parametrize("program", [smallest_match, colliding_hash, longer_memory])
def test_a_mutated_program_is_found_out(machine: TuringMachine, tapes: IntArray, program: Callable[..., Any]) -> None:
    with pytest.raises(Disagreement, match="mutant .* where the theorem says that program n = 1"):
        compare({"mutant": Mutant(machine, 1, program=program)}, machine, tapes[:8])


def test_a_damaged_compiled_model_is_found_out(machine: TuringMachine, tapes: IntArray, lean: Transformer) -> None:
    model = deepcopy(lean)
    with torch.no_grad():
        model.blocks[0].mlp.down.weight *= 0.5
    with pytest.raises(Disagreement, match="broken is not program n = 2"):
        compare({"broken": model}, machine, tapes)


def test_enough_steps_are_compiled_for_programs_that_lose_their_place(machine: TuringMachine) -> None:
    given = repetitive_tapes(machine, 40, 30)
    assert steps_needed(machine, given, 1) > 1
    model = compiled(machine, given, "hard_alibi", 1)
    assert compare({"model": model}, machine, given).checks.tapes == 30


# --- simulators -------------------------------------------------------------------------------------------------------


def test_the_true_machine_is_never_wrong(machine: TuringMachine, tapes: IntArray) -> None:
    found = compare({"machine": TrueMachine(machine)}, machine, tapes, steps=4)
    assert {row["accuracy"] for row in found.accuracy() + found.difficulty()} == {1.0}
    assert found.anatomy()[0]["wrong"] == 0
    trace = machine.trace(tapes[0], 3)
    for given in (13, 20, 26, 30):
        assert TrueMachine(machine).generate(trace[None, :given], len(trace) - given).tolist() == [trace.tolist()]
    assert TrueMachine(machine).predict(trace[None])[0, 12:-1].tolist() == trace[13:].tolist()


def test_kinds_are_told(machine: TuringMachine, lean: Transformer, checkpoint: Checkpoint) -> None:
    kinds: list[Any] = [
        TrueMachine(machine),
        ProgramSimulator(machine, 3),
        lean,
        checkpoint.model,
        LearnedSimulator.of(checkpoint),
        Mute(),
    ]
    told = [describe("x", simulator) for simulator in kinds]
    assert [d.kind for d in told] == ["machine", "program", "compiled", "learned", "learned", "own"]
    assert [(d.n, d.backend) for d in told[1:3]] == [(3, None), (2, "lean")]


def test_a_learned_model_is_as_evaluate_has_it(checkpoint: Checkpoint) -> None:
    machine = own_machine(checkpoint)
    for length, context in ((20, 256), (20, 40)):  # the whole sample, and a window that forgets half of it
        learned = LearnedSimulator(checkpoint.model, context)
        found = compare({"x": learned}, machine, fresh_tapes(machine, length, 16, seed=5)).accuracy(20)
        theirs = accuracy(checkpoint.model, checkpoint.task, length, 16, seed=5, context=context)
        row = only(found, measure="tape")
        assert (row["accuracy"], row["low"], row["times"]) == (theirs.accuracy, theirs.low, 1.0)


def test_predictions_slide_as_generation_does() -> None:
    model = preset("tm-tiny").make_model()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8)  # sure enough of itself to say different things
    learned = LearnedSimulator(model, 24)
    text = np.array(learned.generate(np.array([[1, 4, 7, 5, 2, 0], [1, 7, 4, 4, 2, 0]]), 90))
    assert learned.predict(text)[:, 5:-1].tolist() == text[:, 6:].tolist()
    assert (model.predict(text) != learned.predict(text)).any()


class Mute:
    """A user's own model: it stops at once."""

    def predict(self, tokens: IntArray) -> IntArray:
        return np.full_like(tokens, sep)

    def generate(self, prompts: IntArray, count: int) -> IntArray:
        return np.pad(prompts, ((0, 0), (0, count)), constant_values=sep)


def test_an_own_model_takes_ten_lines(machine: TuringMachine, tapes: IntArray) -> None:
    found = compare({"mute": Mute()}, machine, [*tapes.tolist(), machine.encode(["a1"] * 3)])
    assert found.simulators()[0]["kind"] == "own"
    assert [row["length"] for row in found.accuracy()] == [3, 3, 9, 9]
    assert only(found.accuracy(), measure="token", length=9)["accuracy"] == pytest.approx(1 / 13)
    row = only(found.anatomy())
    assert (row["wrong"], row["tapes"], row["kinds"]["early stop"]) == (41, 41, 41)


def test_wrong_questions_are_refused(machine: TuringMachine, tapes: IntArray, lean: Transformer) -> None:
    class Short(Mute):
        def generate(self, prompts: IntArray, count: int) -> Any:
            return [row[:i] for i, row in enumerate(prompts)]

    class Forgetful(Mute):
        def generate(self, prompts: IntArray, count: int) -> IntArray:
            return np.zeros((len(prompts), 2 * count), dtype=np.int64)

    class Flat(Mute):
        def predict(self, tokens: IntArray) -> IntArray:
            return tokens[0]

    with pytest.raises(ValueError, match="0 tapes"):
        compare({"mute": Mute()}, machine, [])
    with pytest.raises(ValueError, match="one state token"):
        compare({"mute": Mute()}, machine, [[1, 4, 2]])
    with pytest.raises(ValueError, match="short.generate returns 40 rows"):
        compare({"short": Short()}, machine, tapes)
    with pytest.raises(ValueError, match="other prompts"):
        compare({"forgetful": Forgetful()}, machine, tapes)
    with pytest.raises(ValueError, match="flat.predict returns 26 rows"):
        compare({"flat": Flat()}, machine, tapes)
    other = TuringMachine.random(symbols=3, states=2, seed=2)
    for simulator in (lean, ProgramSimulator(machine), TrueMachine(machine)):
        with pytest.raises(ValueError, match="another machine"):
            compare({"lean": simulator}, other, tapes)
    with pytest.raises(ValueError, match="different machines"):
        compare({"mute": Mute()}, machine, tapes) + compare({"mute": Mute()}, other, tapes)


def test_comparisons_add_up(machine: TuringMachine, tapes: IntArray) -> None:
    program: dict[str, Simulator] = {"program": ProgramSimulator(machine)}
    whole = compare(program, machine, tapes, steps=2)
    parts = compare(program, machine, tapes[:15], steps=2) + compare(program, machine, tapes[15:], steps=2)
    assert parts.to_dict(trained=6) == whole.to_dict(trained=6)
    both = whole + compare({"mute": Mute()}, machine, tapes)
    assert [row["name"] for row in both.simulators()] == ["program", "mute"]


# --- how a damaged checkpoint shows -----------------------------------------------------------------------------------


def test_damage_shows_in_accuracy(learned: Comparison) -> None:
    rows = learned.accuracy(20)
    assert [(r["measure"], r["step"]) for r in rows[:5]] == [
        ("token", 1),
        ("tape", 1),
        ("rollout", 1),
        ("rollout", 2),
        ("rollout", 3),
    ]
    for measure, step in (("token", 1), ("tape", 1), ("rollout", 3)):
        intact, damaged = (only(rows, simulator=s, measure=measure, step=step) for s in ("intact", "damaged"))
        assert damaged["high"] < intact["low"], measure
    assert only(rows, simulator="intact", measure="token")["examples"] == 44 * 16


def test_damage_shows_in_difficulty(learned: Comparison) -> None:
    rows = learned.difficulty()
    for n in NS:
        intact, damaged = (only(rows, simulator=s, n=n, group="unique") for s in ("intact", "damaged"))
        assert damaged["accuracy"] < intact["accuracy"] - 0.3
        assert (intact["gram"], intact["length"]) == (n + 1, 12)
        repeated = only(rows, simulator="intact", n=n, group="repeated")
        assert repeated["examples"] + intact["examples"] == 44


def test_damage_shows_in_anatomy(learned: Comparison) -> None:
    intact, damaged = learned.anatomy(shown=2)
    assert damaged["wrong"] > intact["wrong"] + 10 and damaged["tapes"] == 44
    for row in (intact, damaged):
        assert sum(row["places"].values()) == sum(row["kinds"].values()) == row["wrong"]
        assert (set(row["places"]), set(row["kinds"])) == (set(PLACES), set(KINDS))
    assert all(
        row["expected"][: row["at"]] == row["written"][: row["at"]] and row["expected"] != row["written"]
        for row in damaged["examples"]
    )
    assert learned.anatomy(length=99)[0]["tapes"] == 0


# --- anatomy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "said", "place", "kind"),
    [
        (3, "a2", "near head", "wrong transition"),
        (9, "a1", "copy", "other"),
        (9, "eos", "copy", "early stop"),
        (9, "sep", "copy", "early stop"),
        (10, "a3", "end marker", "ran on"),
        (10, "sep", "end marker", "early stop"),
        (11, "eos", "end marker", "ran on"),
        (0, "a1", "end marker", "other"),
    ],
)
def test_the_first_wrong_token_decides(at: int, said: str, place: str, kind: str) -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    tape = machine.encode(["a1", "a2", "a3", "a1", "a2", "a1", "a3", "a3"], head=2, state="q0")
    expected = [*machine.step(tape), sep]
    assert " ".join(machine.vocabulary[t] for t in expected) == "bos a1 a2 q1 a1 a1 a2 a1 a3 a3 eos sep"
    written = list(expected)
    written[at:] = [machine.vocabulary.index(said)] * (len(written) - at)
    failure = first_failure(machine, tape, expected, written)
    assert failure is not None and (failure.at, failure.place, failure.kind) == (at, place, kind)
    assert first_failure(machine, tape, expected, expected) is None


def test_a_lost_place_is_found_again(machine: TuringMachine) -> None:
    tape = machine.encode(["a1", "a2", "a3", "a1", "a2", "a1", "a3", "a3", "a3"], head=8)
    expected = [*machine.step(tape), sep]
    written = [*expected[:3], *expected[6:], *expected[:3]]  # a1 a2 is followed by a3, and later by a1
    failure = first_failure(machine, tape, expected, written)
    assert failure is not None
    assert (failure.at, failure.place, failure.kind, failure.elsewhere) == (3, "copy", "lost place", 6)
    assert failure.to_dict()["written"] == written


def test_a_tape_goes_on_after_eos_when_its_head_stands_there(machine: TuringMachine) -> None:
    tape = next(t for t in fresh_tapes(machine, 3, 500).tolist() if machine.step(t)[-2] == eos)
    expected = [*machine.step(tape), sep]
    failure = first_failure(machine, tape, expected, [*expected[:-2], sep, sep])
    assert failure is not None and (failure.place, failure.kind) == ("near head", "early stop")


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [(), (1, 3, None, None), (2, 2, 2, 2)])
def test_flops_are_those_that_torch_counts(windows: tuple[int | None, ...]) -> None:
    config = TransformerConfig(vocabulary=9, layers=2, d_model=16, heads=4, windows=windows, prepend=8, d_mlp=(40, 0))
    model = Transformer(config)
    memory, seen = Cache(model, 1), 11
    with torch.no_grad():
        memory.reserve(seen + 1)
        text = model.with_prepended(torch.zeros(1, seen - 1, dtype=torch.long))
        memory.encode(text, torch.tensor([0]), torch.tensor([text.shape[1]]))
        with FlopCounterMode(display=False) as counter:
            memory.extend(torch.tensor([1]))
    assert flops_per_token(model, seen) == counter.get_total_flops()
    kept = sum(2 * g.keys[:, :, : g.slots].numel() for g in memory.groups())
    assert cache_bytes(model, seen) == 4 * kept


def test_costs_are_counted_and_compared(
    machine: TuringMachine, tapes: IntArray, lean: Transformer, checkpoint: Checkpoint
) -> None:
    found = cost("lean", lean, tapes, seconds_to_make=1.5)
    assert (found.parameters, found.nonzero) == (lean.parameter_count(), lean.nonzero_count())
    assert found.nonzero is not None and found.nonzero < 0.1 * lean.parameter_count()
    assert found.bytes == 4 * lean.parameter_count() and found.tokens_per_second > 0
    assert found.flops_per_token == flops_per_token(lean, 25) and (found.length, found.rows) == (9, 40)
    program = cost("program", ProgramSimulator(machine), tapes)
    assert program.parameters is program.bytes is program.flops_per_token is None
    narrow = cost("learned", LearnedSimulator(checkpoint.model, 8), tapes)
    assert narrow.flops_per_token == flops_per_token(checkpoint.model, 8)
    lean_row, program_row, learned_row = with_ratios([found, program, narrow], "learned")
    assert learned_row["ratio"]["parameters"] == 1.0 and learned_row["ratio"]["seconds_to_make"] is None
    assert lean_row["ratio"]["nonzero"] == pytest.approx(found.nonzero / checkpoint.model.nonzero_count())
    assert program_row["ratio"]["parameters"] is None and program_row["ratio"]["tokens_per_second"] > 1
    with pytest.raises(ValueError, match="'nobody' is none of lean"):
        with_ratios([found], "nobody")


def test_a_damaged_checkpoint_has_fewer_weights(
    checkpoint: Checkpoint, damaged: LearnedSimulator, tapes: IntArray
) -> None:
    intact, broken = (cost("", s, tapes[:2]) for s in (LearnedSimulator.of(checkpoint), damaged))
    assert isinstance(intact, Cost) and intact.parameters == broken.parameters
    assert intact.nonzero is not None and broken.nonzero == intact.nonzero - 128
