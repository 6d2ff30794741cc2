"""One text through a written program in every way that is quick enough for its length; and against the contract."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .compare import Figures, Outcome, outcome
from .ways import REFERENCE, Array
from .written import EAGER_TOKENS, REFERENCE_TOKENS, Text, Written, draw_text, draw_written

QUICK, MEDIUM = ("stream", "jit"), ("eager", "graph")
SECONDS = 20.0  # of processor time at most, to make a difference small


def ways_for(tokens: int) -> tuple[str, ...]:
    """The first one is what the others are compared with: the definition, where it is quick enough."""
    if tokens <= REFERENCE_TOKENS:
        return (REFERENCE, *MEDIUM, *QUICK)
    return (*QUICK, *MEDIUM) if tokens <= EAGER_TOKENS else QUICK


@dataclass(frozen=True)
class TextMismatch:
    """Two ways that differ on a text."""

    program: Written
    tokens: Array
    ways: tuple[str, str]
    expected: Outcome
    found: Outcome

    @property
    def kind(self) -> str:
        what = (self.found.error or self.expected.error).split(" in ")[0] or "values"
        return f"{self.program.kind}, {self.ways[1]} against {self.ways[0]}: {what}"

    def script(self) -> str:
        """A program one can paste."""
        lines = [f"print({self.program.spelled(way)})" for way in self.ways]
        answers = zip(lines, (self.expected, self.found), strict=True)
        printed = "".join(f"{line}  # {answer}\n" for line, answer in answers)
        return f"{self.program.source}\n\nx = np.array({self.tokens.tolist()})\n{printed}"

    def again(self, tokens: Array) -> TextMismatch | None:
        """The same two ways on another text, if they differ there in the same manner."""
        found = two_ways(self.program, tokens, self.ways)
        return found if found and found.kind == self.kind else None

    def smaller(self, seconds: float = SECONDS) -> TextMismatch:
        """Without what can go: the text after the first difference, then stretches of it."""
        end, best = time.process_time() + seconds, self.cut()
        improved = True
        while improved:
            improved = False
            for tokens in shorter(best.tokens):
                if time.process_time() > end:
                    return best
                if found := best.again(tokens):
                    best, improved = found.cut(), True
                    break
        return best

    def cut(self) -> TextMismatch:
        if self.expected.error or self.found.error:
            return self
        right, wrong = (np.array(o.values) for o in (self.expected, self.found))
        return self.again(self.tokens[: int(np.argmax(right != wrong)) + 1]) or self


def shorter(tokens: Array) -> Iterator[Array]:
    stretch = len(tokens) // 2
    while stretch:
        for start in range(0, len(tokens) - stretch + 1, stretch):
            yield np.delete(tokens, slice(start, start + stretch))
        stretch //= 2


def two_ways(program: Written, tokens: Array, ways: tuple[str, str]) -> TextMismatch | None:
    expected, found = (outcome(program.runner(way), tokens) for way in ways)
    return TextMismatch(program, tokens, ways, expected, found) if differ(expected, found) else None


def differ(expected: Outcome, found: Outcome) -> bool:
    """Every way must answer: what is refused here is wrong."""
    return bool(expected.error or found.error) or expected.values != found.values


@dataclass(frozen=True)
class BrokenContract:
    """A solution in which the program is first wrong at another token than its contract says."""

    program: Written
    text: Text
    first_wrong: int | None

    @property
    def kind(self) -> str:
        return f"{self.program.kind}: contract"

    def script(self) -> str:
        said = f"# first wrong token: {self.first_wrong}; by the contract {self.text.first_wrong}"
        shown = f"x = np.array({self.text.tokens.tolist()})\nfound = {self.program.spelled('stream')}\n"
        wrong = f"print(np.flatnonzero(found[:-1] != x[1:])[:9] + 1)  {said}, {self.text.start} tokens are given\n"
        return f"{self.program.source}\n\n{shown}{wrong}"


def compare_text(program: Written, text: Text, figures: Figures) -> list[TextMismatch | BrokenContract]:
    first, *others = ways_for(len(text.tokens))
    expected = outcome(program.runner(first), text.tokens)
    figures.note(f"{program.kind}, {first}", expected)
    mismatches: list[TextMismatch | BrokenContract] = []
    for way in others:
        found = outcome(program.runner(way), text.tokens)
        figures.note(f"{program.kind}, {way}", found)
        if differ(expected, found):
            mismatches.append(TextMismatch(program, text.tokens, (first, way), expected, found))
    broken = None if expected.error else compare_contract(program, text, np.array(expected.values), figures)
    figures.tokens[program.kind] += len(text.tokens)
    return [*mismatches, *([broken] if broken else [])]


def compare_contract(program: Written, text: Text, predictions: Array, figures: Figures) -> BrokenContract | None:
    """Whether the first wrong token of a solution is the one that its contract names."""
    if text.start is None:
        return None
    figures.counts[f"{program.kind}: contracts"] += 1
    wrong = np.flatnonzero(predictions[text.start - 1 : -1] != text.tokens[text.start :])
    first_wrong = text.start + int(wrong[0]) if len(wrong) else None
    return BrokenContract(program, text, first_wrong) if first_wrong != text.first_wrong else None


def text_case(seed: int, number: int) -> tuple[Written, Text]:
    rng = np.random.default_rng([seed, number, 1])
    program = draw_written(rng)
    return program, draw_text(rng, program)
