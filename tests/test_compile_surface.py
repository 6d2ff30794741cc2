"""The compiler's surface: types, the registry of backends and their options, facts saved with models, names."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from compiled_machines import SMALL
from compiled_programs import PROGRAMS

import compile
from compile import CompileError, Transformer, compile_machine, compile_program
from compile.backends import BACKENDS
from compile.transformer.annotations import ProgramGraph
from rasp import cumsum, shift_right

ROOT = Path(compile.__file__).parent

# --- types ------------------------------------------------------------------------------------------------------------


def annotations_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Every annotation of a function, or of a class: its fields and what its public methods take and return."""
    if not inspect.isclass(value):
        yield from get_type_hints(inspect.unwrap(value), vars(inspect.getmodule(value)), NAMES).items()
        return
    hints = get_type_hints(value, localns=NAMES)
    yield from ((name, hints[name]) for name in vars(value).get("__annotations__", ()))
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function) and not name.startswith("_"):
            function = inspect.unwrap(function)
            hints = get_type_hints(function, vars(inspect.getmodule(value)), NAMES)
            yield from ((f"{name}({argument})", hint) for argument, hint in hints.items())


class Anything:
    """In place of what is imported for type checkers only."""


NAMES = {"Figure": Anything, "SparseEngine": Anything, "Prompts": Anything, "Transformer": Transformer}


def mentions_any(hint: Any) -> bool:
    return hint is Any or any(mentions_any(part) for part in get_args(hint))


@pytest.mark.parametrize("name", compile.__all__)
def test_no_public_signature_says_any(name: str) -> None:
    found = [where for where, hint in annotations_of(getattr(compile, name)) if mentions_any(hint)]
    assert found == []


def test_an_any_is_noticed() -> None:
    def wrong(x: int) -> list[Any]: ...

    class Wrong:
        field: dict[str, Any]

        def method(self, **options: Any) -> None: ...

    assert [where for where, hint in annotations_of(wrong) if mentions_any(hint)] == ["return"]
    assert [where for where, hint in annotations_of(Wrong) if mentions_any(hint)] == ["field", "method(options)"]


def test_compilers_return_transformers() -> None:
    for name in ("compile_program", "compile_machine", "compile_task", "compile_universal"):
        assert get_type_hints(getattr(compile, name))["return"] is Transformer


# --- backends and options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unknown_option_is_refused_by_name(backend: str) -> None:
    with pytest.raises(CompileError, match=f"backend '{backend}' has no option 'colour'; it has .*check"):
        compile_machine(SMALL, backend=backend, colour="red")


@pytest.mark.parametrize(
    ("backend", "options", "sentence"),
    [
        ("hard_alibi", {"max_seq_len": 9}, "'hard_alibi' has no option 'max_seq_len'; it has counts, positions"),
        ("hard_alibi", {"activations": "gelu"}, "did you mean 'activation'"),
        ("lean", {"counts": 9}, "'lean' has no option 'counts'; it has dtype, activation, paper_shape, check"),
        ("tracr", {"dtype": "float64"}, "'tracr' has no option 'dtype'; it has counts, positions, trim, check"),
        ("tracr", {"max_seq_len": 9, "positions": 9}, "are the same option"),
        ("hard_alibi", {"check": "yes"}, "check is 'yes'; give True or False"),
        ("lean", {"paper_shape": 1}, "paper_shape is 1"),
    ],
)
def test_options_are_refused_in_a_sentence(backend: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CompileError, match=sentence):
        compile_machine(SMALL, backend=backend, **options)


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=list(BACKENDS))
def test_options_are_frozen_dataclasses(backend: Any) -> None:
    options = backend.options()
    assert dataclasses.is_dataclass(options) and options.check is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.check = False


def test_lean_is_for_machines() -> None:
    with pytest.raises(CompileError, match="backend 'lean' compiles Turing machines; use compile_machine"):
        compile_program(lambda x: x, range(3), backend="lean")


# --- facts ------------------------------------------------------------------------------------------------------------

OPERATION = {"shift": "delay", "count": "width", "match": "kqv", "mean": "kqv"}


def checked_facts(model: Transformer) -> ProgramGraph:
    """Every head, MLP and register says what it is for, and points at operations of that kind."""
    known = model.config.annotations
    assert known.program is not None
    operations = known.program.operations
    for fact in (fact for layer in known.heads for fact in layer):
        assert fact.label and (fact.nodes or fact.role in ("overflow", "unused"))
        kinds = {operations[i].kind for i in fact.nodes}
        assert kinds <= {OPERATION.get(fact.role, ""), *(("kqv", "full") if fact.role == "count" else ())}, fact
    assert all(
        fact.role == "compute" and fact.label
        for fact, s in zip(known.mlps, model.config.shapes, strict=True)
        if s.d_mlp
    )
    assert all(register.role for register in known.registers)
    return known.program


@pytest.mark.parametrize("name", ["mode", "mean_of_larger", "induct", "first_true", "parity", "swap_neighbours"])
def test_programs_carry_their_facts(name: str) -> None:
    program = PROGRAMS[name]
    checked_facts(compile_program(program.run, program.vocabulary, check=False, **program.options))


@pytest.mark.parametrize("backend", ["hard_alibi", "lean"])
def test_facts_and_graph_are_saved_with_the_model(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a loaded model shows the program without compiling anything."""
    model = compile_machine(SMALL, backend=backend, steps=6, check=False)
    program = checked_facts(model)
    heads = [fact for layer in model.config.annotations.heads for fact in layer]
    assert [fact.nodes for fact in heads if fact.role == "match"] == [(program.output,)]
    model.save_pretrained(tmp_path)
    monkeypatch.setattr("rasp.tracing.trace", None)
    loaded = Transformer.from_pretrained(tmp_path)
    assert loaded.config.annotations == model.config.annotations
    page = compile.inspect(loaded, [1, 4, 6, 2, 0]).data["models"][0]
    assert len(page["graph"]["nodes"]) == len(program.operations) and page["heads"][-1][-1]["nodes"] == [program.output]


def test_roles_are_what_heads_do() -> None:
    model = compile_program(lambda x: shift_right(x, 2), range(4))
    assert {row.role for row in model.summary()} == {"shift"}
    registers = model.config.annotations.registers
    assert [register.role for register in registers] == ["start", "tokens", "value"]


# --- names ------------------------------------------------------------------------------------------------------------


def test_one_name_one_meaning() -> None:
    names = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_comparison_is_named_without_the_bookkeeping_of_truth_values() -> None:
    labels = [row.label for row in compile_program(lambda x: cumsum(x == 0), range(3), counts=4, check=False).summary()]
    assert labels[0] == "count x == 0"
