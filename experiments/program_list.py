"""The programs that come with this repository: what each writes, and what is promised of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rasp.programs.tasks import task_program

COPYING = "no copied part of a line repeats an (n+1)-gram"


@dataclass(frozen=True)
class ListedProgram:
    """`contract`: where it is right, exactly; `checked`: how that is known."""

    name: str
    writes: str
    contract: str
    checked: str
    compiled: str
    example: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def listed_programs() -> list[ListedProgram]:
    return [
        ListedProgram(
            "next_token_turing",
            "the trace of one Turing machine, tape after tape",
            "right through step t if and only if none of the tapes 1..t repeats an (n+1)-gram (t <= base**n with the "
            "paper's packing)",
            "proved in Coq: turing-programs prove --formal",
            "hard_alibi, lean, tracr",
            "turing-programs run bb4 --on rasp",
        ),
        ListedProgram(
            "universal",
            "the trace of the machine whose table stands in its prompt",
            "at every token what next_token_turing of that machine says (unbounded packing)",
            "proved in Coq: turing-programs prove --formal",
            "hard_alibi: one set of weights for every machine of a size",
            "turing-programs run bb4 --on universal",
        ),
        *(
            ListedProgram(
                name,
                writes,
                f"right if and only if {COPYING}; elsewhere the first wrong token is named beforehand",
                checked,
                compiled,
                f"turing-programs run {name} {_quoted(task_program(name).example)}",
            )
            for name, writes, checked, compiled in TASKS
        ),
    ]


TASKS = (
    (
        "addition",
        "a sum with the paper's compact scratchpad, numbers of any length",
        "sampled, and every sum of up to 3 x 3 digits: tests/test_task_programs.py; turing-programs exact addition",
        "hard_alibi",
    ),
    (
        "multiplication1",
        "a product with a factor of one digit (multiplication2 to 9: of so many)",
        "sampled, and every small product; turing-programs exact multiplication1",
        "hard_alibi",
    ),
    (
        "multiplication3",
        "a product with a factor of three digits, as in the paper",
        "sampled, and every small product; turing-programs exact multiplication3",
        "hard_alibi",
    ),
    (
        "sgd",
        "steps of stochastic gradient descent on linear regression, 200 levels per number",
        "sampled: tests/test_task_programs.py",
        "refused, with the size it would need: turing-programs compile sgd",
    ),
)


def _quoted(problem: str) -> str:
    return f"'{problem}'" if set(problem) & set(" *") else problem
