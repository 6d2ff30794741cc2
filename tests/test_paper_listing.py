"""The program says what the paper's printed listing says: recorded answers of the listing, run word by word.

tests/data/paper_listing.json holds, for three random machines of the paper's size, texts (traces, tokens in no order,
cut traces) and what the listing's `next_token_turing` answers at every position of each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rasp import TuringMachine, next_tokens
from rasp.engines.turing import predict
from rasp.machines.simulate import machine_from_tables

RECORDED = json.loads((Path(__file__).parent / "data" / "paper_listing.json").read_text())
SYMBOLS, STATES, FIRST_STATE, BASE = 12, 16, 16, 32


def machine_of(tables: dict[str, dict[str, list[int]]]) -> TuringMachine:
    """`tables[name][symbol]` lists what the listing's tables say for every state."""
    arrays = {name: np.zeros((BASE, BASE), dtype=np.int64) for name in tables}
    for name, rows in tables.items():
        for symbol, values in rows.items():
            arrays[name][FIRST_STATE:, int(symbol)] = values
    return machine_from_tables(arrays["next_state"], arrays["next_symbol"], arrays["move"], SYMBOLS, STATES)


def test_thousands_of_positions_are_recorded() -> None:
    texts = [text for one in RECORDED for text in one["texts"]]
    answers = [answer for one in RECORDED for answer in one["answers"]]
    assert sum(map(len, texts)) > 5_000 and [len(t) for t in texts] == [len(a) for a in answers]
    assert len({token for answer in answers for token in answer}) == BASE - 1  # every token but empt is answered


@pytest.mark.parametrize("engine", ["eager", "graph", "stream"])
@pytest.mark.parametrize("one", RECORDED, ids=["machine 0", "machine 1", "machine 2"])
def test_the_program_answers_as_the_listing_does(one: dict[str, Any], engine: str) -> None:
    machine = machine_of(one["machine"])
    for text, answer in zip(one["texts"], one["answers"], strict=True):
        assert predict(text, machine, engine=engine).tolist() == answer


def test_another_n_or_machine_is_noticed() -> None:
    one, other = RECORDED[:2]

    def differences(machine: TuringMachine, n: int) -> int:
        pairs = zip(one["texts"], one["answers"], strict=True)
        return sum(next_tokens(np.array(text), machine, n).tolist() != answer for text, answer in pairs)

    assert differences(machine_of(one["machine"]), 2) > 3
    assert differences(machine_of(other["machine"]), 1) > 10
