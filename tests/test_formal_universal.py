"""The universal program is the one that Coq proves things about, and Coq sees when it is not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofs_check.formal import universal as formal
from rasp import TuringMachine
from rasp.core import aggr_max, select, tok_map
from rasp.library import equals, mask, shift_right
from rasp.programs import universal
from rasp.programs.copying import is_token

PROOF = Path(formal.__file__).parent
MODEL = ("Rasp", "Machine", "Program", "Graph", "UniversalBuild")  # all that the traced graphs need
SMALL = ((1, 1, 1), (2, 3, 2))
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None, reason="coqc is not installed (Debian: apt-get install coq)"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coq")
    for name in MODEL:
        shutil.copy(PROOF / f"{name}.v", folder)
        said = compiled(folder, name)
        assert said == "", said
    return folder


def compiled(folder: Path, name: str) -> str:
    """What coqc has against a file; nothing if it is right."""
    ran = subprocess.run(["coqc", "-q", f"{name}.v"], cwd=folder, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else ran.stderr or "coqc failed"


def check_traced(folder: Path, name: str, of: Callable[[str], Callable[..., Any]]) -> str:
    (folder / f"{name}.v").write_text(formal.traced_file(of, SMALL))
    return compiled(folder, name)


@needs_coq
def test_the_program_traces_to_the_graph_that_coq_proves_right(model: Path) -> None:
    assert check_traced(model, "AsItIs", formal.printed) == ""


def only_right_rules(x: Any, cells: Any, size: universal.Size) -> universal.Rule:
    """Reads rules that go right, and none that go left."""
    return _look_up(x, cells, size, is_token(x, size.directions[1]), 3)


def by_next_state(x: Any, cells: Any, size: universal.Size) -> universal.Rule:
    """Looks for the rule whose next state is what stands under the head."""
    return _look_up(x, cells, size, is_token(x, *size.directions), 2)


def _look_up(x: Any, cells: Any, size: universal.Size, is_rule: Any, place: int) -> universal.Rule:
    rule_state, rule_symbol = mask(shift_right(x, 4), is_rule, 0), shift_right(x, place)
    found = select(rule_state, cells, equals) & select(rule_symbol, shift_right(cells, 1), equals)
    values = (shift_right(x, 2), shift_right(x, 1), is_token(x, size.directions[1]))
    return universal.Rule(tok_map(cells, size.is_state), *(aggr_max(found, v) for v in values))


@needs_coq
@pytest.mark.parametrize("wrong", [only_right_rules, by_next_state])
def test_coq_names_the_function_that_moved(
    model: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., universal.Rule]
) -> None:
    monkeypatch.setattr(universal, "look_up", wrong)
    said = check_traced(model, f"Wrong_{wrong.__name__}", formal.printed)
    assert "Error" in said
    line = int(said.split("line ")[1].split(",")[0])
    before = (model / f"Wrong_{wrong.__name__}.v").read_text().splitlines()[:line]
    lemmas = [text.split()[1] for text in before if text.startswith("Lemma")]
    assert lemmas[-1] == "traced_look_up_1_1"


@needs_coq
def test_a_program_with_a_longer_gram_is_seen(model: Path) -> None:
    def longer(name: str) -> Callable[..., Any]:
        program = formal.printed(name)
        if name != "next_tokens_universal":
            return program
        return lambda x, symbols, states, n: program(x, symbols=symbols, states=states, n=n + 1)

    assert check_traced(model, "LongerGram", longer) != ""


def test_texts_for_coq_hold_what_the_program_predicts() -> None:
    text = formal.texts_file(count=2)
    assert text.count("Theorem universal_texts_") == len(formal.TEXTS_OF)
    assert text.count("(0x") == 2 * len(formal.TEXTS_OF)


def test_the_tables_of_a_machine_are_zero_where_they_do_not_apply() -> None:
    """`universal_is_next_tokens` asks for this: the universal program finds nothing there."""
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    readable = {1, 2, *machine.symbol_tokens}
    for q in machine.state_tokens:
        for a in set(range(machine.base)) - readable:
            assert (machine.next_state(q, a), machine.next_symbol(q, a), machine.move(q, a)) == (0, 0, 0)
