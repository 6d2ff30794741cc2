"""Simulators of one Turing machine side by side: the machine itself, programs, compiled and learned transformers.

`compare(simulators, machine, tapes)` asks each for the next tape of every tape and says how often, where and how it
went wrong. Anything with `predict` and `generate` can take part (see `Simulator`).
"""

from __future__ import annotations

from experiments.comparison.anatomy import KINDS, PLACES, Failure, anatomy, first_failure
from experiments.comparison.checks import Checks, Disagreement
from experiments.comparison.cost import Cost, cost, flops_per_token, with_ratios
from experiments.comparison.measure import Comparison, compare, fresh_tapes, repetitive_tapes
from experiments.comparison.simulators import (
    Description,
    LearnedSimulator,
    ProgramSimulator,
    Simulator,
    TrueMachine,
    describe,
    steps_needed,
)
from experiments.comparison.trials import Trial

__all__ = [
    "Checks",
    "Comparison",
    "Cost",
    "Description",
    "Disagreement",
    "Failure",
    "KINDS",
    "LearnedSimulator",
    "PLACES",
    "ProgramSimulator",
    "Simulator",
    "Trial",
    "TrueMachine",
    "anatomy",
    "compare",
    "cost",
    "describe",
    "first_failure",
    "flops_per_token",
    "fresh_tapes",
    "repetitive_tapes",
    "steps_needed",
    "with_ratios",
]
