"""The Turing Programs of the paper, each written once in RASP-L."""

from __future__ import annotations

from rasp.programs.addition import next_token_addition, next_tokens_addition
from rasp.programs.multiplication import next_token_multiplication, next_tokens_multiplication
from rasp.programs.sgd import next_token_sgd, next_tokens_sgd
from rasp.programs.tasks import TaskProgram, task_program
from rasp.programs.universal import next_token_universal, next_tokens_universal, universal_prompt
from rasp.programs.vocabulary import InvalidProblem

__all__ = [
    "InvalidProblem", "TaskProgram", "next_token_addition", "next_token_multiplication", "next_token_sgd",
    "next_token_universal", "next_tokens_addition", "next_tokens_multiplication", "next_tokens_sgd",
    "next_tokens_universal", "task_program", "universal_prompt",
]  # fmt: skip
