"""Problems written out: the true text, what each of its tokens is part of, and how far back copying must look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.comparison.simulators import IntArray
from proofs_check.tasks import CopiedRegion, copied_regions
from rasp.programs.problems import Problem, Regression, prompt_tokens, spell_examples, text_tokens
from rasp.programs.vocabulary import DIGITS, FIRST_LETTER, NUMBERS, is_letter

MARK, ANSWER = "mark", "answer"
EXAMPLE = 5  # tokens of an example of SGD
NOTHING = -1
AFTER = {  # which part of a line begins after a mark; `$` begins the problem, `|` a line
    "+": {"$": "first operand", "|": "first operand", "+": "second operand", "(": "carry", ",": "new digit"},
    "*": {"$": "operand", "|": "operand", "*": "factor", "(": "digit times factor", "~": "carry", ",": "new digit"},
    "yp": {"$": "examples", "|": "examples", "yp": "prediction", "g": "gradient", "cur": "weights"},
}
THEN = {"+": "sum so far", "*": "product so far"}  # what follows the new digit
COMPUTED = {"carry", "new digit", "digit times factor", "prediction", "gradient", "weights"}
PLACES = {
    "first operand": "what is left of the first number, its last digit written as a letter",
    "second operand": "what is left of the second number",
    "operand": "what is left of the number, its last digit written as a letter",
    "factor": "the factor, the same on every line",
    "digit times factor": "the product of one digit and the factor",
    "carry": "what is carried to the next line",
    "new digit": "the digit of the result that this line finds",
    "sum so far": "the digits of the sum found before, copied",
    "product so far": "the digits of the product found before, copied",
    "examples": "the examples that are left, copied",
    "prediction": "what the weights say of the last example",
    "gradient": "how far the weights move",
    "weights": "the weights after this example",
    ANSWER: "the last line, or all that is asked for",
    MARK: "the signs between them: + * ( ~ , ) | and the end",
}


@dataclass(frozen=True)
class CopiedToken:
    """A token looked up in the line before: `answers[k]` are the tokens that follow the same last k tokens there."""

    position: int  # in the whole text
    answers: tuple[frozenset[int], ...]

    @property
    def needed(self) -> int:
        """How many tokens one must look back to know what comes."""
        return len(self.answers) - 1

    def reach(self, said: int) -> int:
        """How many of the last tokens also stand elsewhere before what was said: -1 if it stands nowhere."""
        return max((k for k, found in enumerate(self.answers) if said in found), default=-1)


@dataclass(frozen=True, eq=False)
class WrittenProblem:
    """`tokens` is the whole text, of which the first `given` are the question. `problem` is None in one's own tasks."""

    tokens: IntArray
    given: int
    names: tuple[str, ...]  # of the vocabulary
    problem: Problem | None = None

    @classmethod
    def of(cls, problem: Problem) -> WrittenProblem:
        return cls(text_tokens(problem), len(prompt_tokens(problem)), problem.vocabulary.names, problem)

    @property
    def answer(self) -> IntArray:
        return self.tokens[self.given :]

    @cached_property
    def words(self) -> list[str]:
        return [self.names[token] for token in self.tokens.tolist()]

    @cached_property
    def parts(self) -> list[str]:
        """What each token of the whole text is part of."""
        if self.problem is None:
            return [ANSWER] * len(self.tokens)
        sign = next(sign for sign in AFTER if sign in self.names)
        return parts_of(self.words, AFTER[sign], THEN.get(sign, ""))

    def ends_a_part(self, token: int) -> bool:
        """Marks, and the letter with which an operand ends."""
        if isinstance(self.problem, Regression):
            return token >= NUMBERS and self.names[token] not in ("d", ",")
        return self.problem is not None and token >= len(DIGITS)

    def copied_tokens(self, at: int | None = None) -> Iterator[CopiedToken]:
        """Every token that is looked up in the line before, or the one at this position of the text.

        None is known of a person's own task.
        """
        for region in copied_regions(self.problem) if self.problem is not None else ():
            if at is None or region.start <= at < region.start + len(region.tokens):
                found = look_up(region.start, region.tokens, left_out(self.problem, region))
                yield from (token for token in found if at in (None, token.position))


def parts_of(words: Sequence[str], after: dict[str, str], then: str) -> list[str]:
    """The part that every token belongs to; marks are their own."""
    last_line = len(words) - 1 - words[::-1].index("|") if words[-1] == "." else len(words)
    found, part = [], ""
    for place, word in enumerate(words):
        if word in after or word in ")$|.":
            found.append(MARK)
            part = after.get(word, "")
            continue
        found.append(ANSWER if place > last_line else part)
        part = then if part == "new digit" else part
    return found


def left_out(problem: Problem | None, region: CopiedRegion) -> tuple[int, ...]:
    """What stands in the line before where the copy ends and after it: places one may take for another there."""
    if isinstance(problem, Regression):
        copied = len(region.tokens) // EXAMPLE
        return tuple(problem.vocabulary.read(spell_examples(problem.examples[copied : copied + 1])).tolist())
    last = region.tokens[-1]
    return (last - FIRST_LETTER,) if is_letter(last) else ()


def look_up(start: int, tokens: Sequence[int], beyond: Sequence[int]) -> list[CopiedToken]:
    """Of every token of a copied region: what follows the same last 0, 1, 2, .. tokens in it, until that is certain.

    Whoever looks back knows where the region begins. `beyond` stands in the line before from the place of the last
    token on, and is followed by NOTHING that is copied.
    """
    source = [*tokens[:-1], *beyond]
    offers = [*tokens, *[NOTHING] * len(beyond)]
    known: list[list[frozenset[int]]] = [[] for _ in tokens]
    back, open_places = 0, list(range(len(tokens)))
    while open_places:
        answers: dict[tuple[int, ...], set[int]] = {}
        grams = [(min(i, back), *source[max(i - back, 0) : i]) for i in range(len(offers))]
        for gram, token in zip(grams, offers, strict=True):
            answers.setdefault(gram, set()).add(token)
        for i in open_places:
            known[i].append(frozenset(answers[grams[i]]))
        open_places = [i for i in open_places if len(known[i][-1]) > 1]
        back += 1
    return [CopiedToken(start + i, tuple(found)) for i, found in enumerate(known)]


def as_rows(problems: Sequence[WrittenProblem]) -> IntArray:
    """The texts as one table, padded on the right with what no causal model sees."""
    longest = max(len(p.tokens) for p in problems)
    return np.stack([np.pad(p.tokens, (0, longest - len(p.tokens)), constant_values=p.tokens[-1]) for p in problems])
