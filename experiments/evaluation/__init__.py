"""How often trained models are right: fresh problems of any length, figures, and the checkpoints that are shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
    from experiments.evaluation.evaluate import accuracy
    from experiments.evaluation.requests import EvaluationRequest, FigureRequest, run_evaluation, run_figure

__all__ = [
    "Checkpoint",
    "EvaluationRequest",
    "FigureRequest",
    "accuracy",
    "load_checkpoint",
    "run_evaluation",
    "run_figure",
]

__getattr__, __dir__ = lazy_names(
    "experiments.evaluation",
    {
        **dict.fromkeys(("Checkpoint", "load_checkpoint"), "experiments.evaluation.checkpoints"),
        "accuracy": "experiments.evaluation.evaluate",
        **dict.fromkeys(
            ("EvaluationRequest", "FigureRequest", "run_evaluation", "run_figure"), "experiments.evaluation.requests"
        ),
    },
)
