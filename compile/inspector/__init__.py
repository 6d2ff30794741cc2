"""The inspector: one HTML file that shows what every head of a model does while it runs, and figures for papers.

collect (one pass over the tokens) -> pack (8-bit, deflated) -> page (HTML, CSS and JavaScript in one file).
"""

from compile.inspector.figure import attention_figure
from compile.inspector.page import Inspection, inspect

__all__ = ["Inspection", "attention_figure", "inspect"]
