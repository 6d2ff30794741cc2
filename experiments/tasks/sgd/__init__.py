"""SGD on linear regression: the problems and their text, and the practice that it took to learn them."""

from experiments.tasks.sgd.task import Sgd

__all__ = ["Sgd"]
