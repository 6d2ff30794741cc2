"""The playground: one HTML file in which compiled transformers run machines and problems that a person types.

weights (a model as nonzeros) -> page (HTML, CSS, JavaScript and all weights in one file); links (addresses into it).
"""

from compile.playground.links import PAGE, machine_link
from compile.playground.page import Playground, Sizes, playground, playground_models

__all__ = ["PAGE", "Playground", "Sizes", "machine_link", "playground", "playground_models"]
