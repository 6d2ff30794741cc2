"""The fuzzer on what is written: nothing differs, and whatever is made wrong for it is found."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.cases import Shares
from fuzz.changes import changed_bytes, sentence_faults
from fuzz.compare import Figures
from fuzz.decoded import Compiled, compare_compiled, decoded_case, draw_compiled, written_by
from fuzz.house import PARTS, compare_part
from fuzz.machine_files import FORMATS, Format, compare_files, draw_machine, read_changed, through_format
from fuzz.saved import compare_saved, draw_config
from fuzz.session import Session
from fuzz.texts import BrokenContract, TextMismatch, compare_text, text_case
from fuzz.ways import Runner
from fuzz.written import KINDS, Text, Written, draw_text, draw_written, solution, task, turing, universal

from compile import Transformer
from compile.errors import REFUSED, CapacityError
from compile.sparse import SparseEngine
from compile.transformer.encodings import ENCODINGS
from compile.transformer.files import InvalidModel
from rasp import TuringMachine
from rasp.gallery import machine as known
from rasp.machines.validation import InvalidMachine

PROGRAMS = {  # as other tests compile them: their machine code is kept
    "addition": task("addition", 1),
    "multiplication": task("multiplication", 1, 1),
    "sgd": task("sgd", 1),
    "universal": universal((2, 2), 2),
    "turing": turing("random:3x2:1", 2),
}
TURING = PROGRAMS["turing"]
LEAN = Compiled(
    turing("random:2x2:5", 1), 'compile_machine(load_machine("random:2x2:5"), "lean", check=False)', 64, 0, True
)


def texts_of(program: Written, count: int = 6, longest: int = 2000) -> list[Text]:
    rng = np.random.default_rng(7)
    return [draw_text(rng, program, longest) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_agree_on_texts(kind: str) -> None:
    figures = Figures()
    for text in texts_of(PROGRAMS[kind], 12):
        assert not compare_text(PROGRAMS[kind], text, figures)
    for way in ("reference", "eager", "graph", "stream", "jit"):
        assert figures.answered[f"{kind}, {way}"] > 0
    assert figures.counts[f"{kind}: contracts"] > 0 and figures.tokens[kind] > 1000


@pytest.mark.parametrize("number", [1, 6])
def test_models_agree_with_their_programs(number: int) -> None:
    figures = Figures()
    assert not compare_compiled(*decoded_case(0, number), figures)
    assert figures.tokens.total() > 100 and any(name.endswith("torch, loaded") for name in figures.answered)


def test_files_come_back() -> None:
    figures = Figures()
    assert not [fault for i in range(25) for fault in compare_files(0, i, figures)]
    assert not [fault for i in range(10) for fault in compare_saved(0, i, figures)]
    assert all(figures.answered[f"machines as {name}"] > 5 for name in FORMATS)
    assert all(figures.refusals[f"changed {suffix} files: refused"] > 20 for suffix in (".json", ".yaml", ".txt"))


@pytest.mark.slow
def test_a_fiftieth_of_the_house() -> None:
    session = Session(seed=2, shares=Shares(0, 0, 0, 0, texts=1, decoded=20, saved=4, files=2))
    mismatches = session.run(programs=80)
    assert not mismatches, mismatches[0].script()
    assert session.tokens > 150_000


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_every_kind_of_program_text_model_and_machine_is_drawn() -> None:
    rng = np.random.default_rng(0)
    programs = [draw_written(rng) for _ in range(200)]
    assert {p.kind for p in programs} == set(KINDS) and len({p.n for p in programs}) > 3
    texts = [draw_text(rng, p) for p in programs[:60]]
    assert any(t.start is None for t in texts) and any(t.first_wrong for t in texts)
    assert min(len(t.tokens) for t in texts) < 60 and max(len(t.tokens) for t in texts) > 5000
    assert all(t.tokens.min() >= 0 and t.tokens.max() < p.vocabulary for t, p in zip(texts, programs, strict=False))
    models = [draw_compiled(rng) for _ in range(60)]
    assert {m.program.kind for m in models} == set(KINDS) - {"sgd"} and {m.tapes_only for m in models} == {True, False}
    assert {draw_config(rng).encoding for _ in range(150)} == set(ENCODINGS)
    machines = [draw_machine(rng) for _ in range(60)]
    assert any(m.final for m in machines) and any(m.start != m.states[0] for m in machines)


def test_a_case_follows_from_its_number() -> None:
    for case in (text_case, decoded_case):
        assert repr(case(3, 7)) == repr(case(3, 7)) != repr(case(3, 8)) and repr(case(4, 7)) != repr(case(3, 7))


# --- wrong on purpose -------------------------------------------------------------------------------------------------


def wrong_after(token: int) -> Callable[[Written, str], Runner]:
    """Engines, of which jit says one more at every token after the first `token`."""
    right = Written.runner

    def runner(self: Written, way: str) -> Runner:
        if way != "jit":
            return right(self, way)
        return lambda x: right(self, "stream")(x) + (np.cumsum(x == token) > 0)

    return runner


def test_a_wrong_engine_is_caught_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    state = TURING.vocabulary - 1
    text = next(t for t in texts_of(TURING) if len(t.tokens) > 500 and (t.tokens == state).any())
    monkeypatch.setattr(Written, "runner", wrong_after(state))
    found = [m for m in compare_text(TURING, text, Figures()) if isinstance(m, TextMismatch)]
    assert [m.ways[1] for m in found] == ["jit"]
    small = found[0].smaller()
    assert small.tokens.tolist() == [state] and small.kind == "turing, jit against stream: values"
    monkeypatch.undo()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(small.script(), {})
    right, also_right = printed.getvalue().splitlines()
    assert right == also_right == f"[{small.expected.values[0]}]", "pasted, both are right"


def test_an_engine_that_refuses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Written.runner

    def runner(self: Written, way: str) -> Runner:
        return right(self, way) if way != "graph" else right(self, way).no_such_way  # type: ignore[attr-defined]

    monkeypatch.setattr(Written, "runner", lambda self, way: lambda x: runner(self, way)(x))
    text = solution(np.random.default_rng(0), TURING, 100)
    found = compare_text(TURING, text, Figures())
    assert [m.kind for m in found] == ["turing, graph against stream: AttributeError"]


@pytest.mark.parametrize("kind", ["addition", "turing"])
def test_a_broken_contract_is_caught(kind: str) -> None:
    text = solution(np.random.default_rng(1), PROGRAMS[kind], 300)
    assert text.start is not None
    wrong = replace(text, first_wrong=text.start + 3 if text.first_wrong is None else None)
    found = compare_text(PROGRAMS[kind], wrong, Figures())
    assert [type(m) for m in found] == [BrokenContract] and "by the contract" in found[0].script()


def test_a_model_with_a_wrong_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Compiled.model

    def wrong(self: Compiled) -> Transformer:
        model = right(self)
        with torch.no_grad():
            model.unembed.weight[[4, 5]] = model.unembed.weight[[5, 4]]
        return model

    texts = [solution(np.random.default_rng(i), LEAN.program, 200, 40) for i in range(3)]
    assert not compare_compiled(LEAN, texts, Figures())
    monkeypatch.setattr(Compiled, "model", wrong)
    found = compare_compiled(LEAN, texts, Figures())
    ways = ["sparse", "sparse, loaded", "torch", "torch, loaded", "sparse, writing"]
    assert [m.kind for m in found] == [f"turing compiled, {way}: values" for way in ways]
    assert 'model = compile_machine(load_machine("random:2x2:5"), "lean"' in found[0].script()


def test_a_model_that_refuses_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseEngine, "answers", lambda self, tokens: np.full(len(tokens), REFUSED))
    found = compare_compiled(LEAN, [solution(np.random.default_rng(0), LEAN.program, 100, 40)], Figures())
    assert {m.kind for m in found} >= {"turing compiled, sparse: refuses early"}


def test_a_model_that_stops_writing_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its program leaves the solution, it may come to more lines than it counts; otherwise it may not stop."""
    compiled = replace(LEAN, lines=8)
    text = next(t for t in (solution(np.random.default_rng(i), LEAN.program, 90, 5) for i in range(9)) if t.start)
    endless = text.tokens[: text.start].tolist() + [0] * 9

    def stops(*_: Any, **__: Any) -> Any:
        error = CapacityError("a count ran over")
        error.written = [np.array(written)]
        raise error

    monkeypatch.setattr(Transformer, "generate", stops)
    written = text.tokens[: text.start + 2].tolist()
    found = written_by(compiled, LEAN.model(), text, Figures())
    assert found is not None and found.kind == "turing compiled, sparse, writing: refuses early"
    written = endless
    found = written_by(compiled, LEAN.model(), text, Figures())
    assert found is None or "refuses" not in found.kind


def test_weights_that_do_not_come_back_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Transformer.from_pretrained

    def rounded(folder: Any) -> Transformer:
        model = load(folder)
        with torch.no_grad():
            model.embed.weight.copy_(model.embed.weight.half())
        return model

    monkeypatch.setattr(Transformer, "from_pretrained", rounded)
    found = compare_saved(0, 1, Figures())
    assert {"saved and loaded: weights", "saved and loaded: answers"} <= {m.kind for m in found}


@pytest.mark.parametrize(
    ("raised", "said"),
    [(None, "it was loaded"), (KeyError("x"), "KeyError"), (InvalidModel("a\nb"), "a sentence that cannot be printed")],
)
def test_a_damaged_model_that_is_not_refused_is_caught(
    monkeypatch: pytest.MonkeyPatch, raised: Exception | None, said: str
) -> None:
    load, calls = Transformer.from_pretrained, []

    def careless(folder: Any) -> Transformer:
        calls.append(folder)
        if len(calls) == 1:
            return load(folder)
        if raised:
            raise raised
        return Transformer(draw_config(np.random.default_rng(0)))

    monkeypatch.setattr(Transformer, "from_pretrained", careless)
    kinds = {m.kind for m in compare_saved(0, 2, Figures())}
    assert kinds <= {f"damaged config.json: {said}", f"damaged model.safetensors: {said}"} and kinds


def test_a_format_that_changes_the_machine_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    bb3 = known("bb3")
    assert all(through_format(bb3, name, Figures()) is None for name in FORMATS)

    def mirrored(m: TuringMachine) -> TuringMachine:
        turned = {key: (write, "RL"[move == "R"], then) for key, (write, move, then) in m.transitions.items()}
        return m.replace(transitions=turned)

    for name, form in FORMATS.items():
        right = form.again
        monkeypatch.setitem(FORMATS, name, Format(lambda m, again=right: again(mirrored(m)), form.same))  # type: ignore[misc]
        found = through_format(bb3, name, Figures())
        assert found is not None and found.kind == f"machines as {name}: another machine" and "bb3" in found.script()


def test_a_file_that_is_refused_badly_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "machine.txt"
    path.write_text("1RB1LB_1LA1RZ")
    assert read_changed(path, Figures()) is None
    path.write_text("1RB1LB_1LA")
    assert read_changed(path, Figures()) is None, "refused in a sentence"

    def raises(error: Exception) -> Callable[[Any], TuringMachine]:
        def load(_: Any) -> TuringMachine:
            raise error

        return load

    for error, said in (
        (KeyError("x"), "KeyError"),
        (InvalidMachine("two\nlines"), "a sentence that cannot be printed"),
    ):
        monkeypatch.setattr("fuzz.machine_files.load_machine", raises(error))
        found = read_changed(path, Figures())
        assert found is not None and found.kind == f"changed .txt files: {said}"


def test_what_a_sentence_is() -> None:
    assert sentence_faults("the tape is empty: give one") == []
    assert [bool(sentence_faults(text)) for text in ("", "two\nlines", "x" * 800, "\x1b[31m")] == [True] * 4


def test_changes_change() -> None:
    rng = np.random.default_rng(0)
    whole = b'{"a": 1,\n"b": 2}\n'
    assert sum(changed_bytes(rng, whole) != whole for _ in range(100)) > 80
    assert isinstance(changed_bytes(rng, b""), bytes)


def test_an_error_of_a_part_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setitem(PARTS, "texts", broken)
    (found,) = compare_part("texts", 1, 2, Figures())
    assert found.kind == "texts: RuntimeError" and "seed 1, number 2" in found.script()


def test_a_session_counts_tokens_and_ends_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def thousand(seed: int, number: int, figures: Figures) -> list[Any]:
        figures.tokens["turing"] += 1000
        return [found] if number == 2 else []

    found = BrokenContract(TURING, Text(np.zeros(3, dtype=np.int64), 1, 2), None)
    monkeypatch.setitem(PARTS, "texts", thousand)
    session = Session(0, shares=Shares(0, 0, 0, texts=1, decoded=0, saved=0, files=0, level=0))
    assert session.run(tokens=3500) == [found]
    assert session.next == 4 and session.tokens > 4000 and "1 mismatches" in session.line()
    assert "tokens of turing: 4,000" in session.table() and "MISMATCHES, turing: contract: 1" in session.table()
