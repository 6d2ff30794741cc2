"""Models whose insides are known for certain: programs and machines compiled, each with its circuit and test vectors.

programs and catalogue (what there is) -> building (a folder per model) -> loading (`load_zoo`) -> scoring (how well a
method that looks for circuits finds these).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from experiments.zoo.loading import ZooModel, load_zoo
    from experiments.zoo.scoring import METHODS, score

__all__ = ["METHODS", "ZooModel", "load_zoo", "score"]

__getattr__, __dir__ = lazy_names(
    "experiments.zoo",
    {
        **dict.fromkeys(("ZooModel", "load_zoo"), "experiments.zoo.loading"),
        **dict.fromkeys(("METHODS", "score"), "experiments.zoo.scoring"),
    },
)
