"""What was said at every token of every problem, and the rows of the report that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.comparison.measure import share
from experiments.comparison.simulators import Description
from experiments.comparison.tasks.problems import COMPUTED, CopiedToken, WrittenProblem
from experiments.comparison.trials import BoolArray

KINDS = {
    "lost place": "in a copy, what is said follows the same last two tokens elsewhere in this part of the line before",
    "early stop": "a part ends too early (and it is no lost place)",
    "ran on": "a part should end and does not (and it is no lost place)",
    "wrong computation": "a digit or number is worked out wrongly",
    "other": "none of these",
}
LAST = 2  # tokens that tell a place
FAR = 8  # tokens back, and more: counted together
AROUND = 60  # tokens of a line shown with an error


@dataclass(frozen=True, eq=False)
class TaskTrial:
    """One taker on the first problems of a length. `said` is its prediction at every token of each text."""

    about: Description
    length: int
    problems: Sequence[WrittenProblem]
    said: Sequence[np.ndarray]
    tolerance: int = 0  # computed numbers this near count as right

    def wrong(self, index: int) -> BoolArray:
        """Which tokens of the answer are wrong, each after the right ones before it."""
        problem = self.problems[index]
        expected, said = problem.answer, self.said[index][problem.given - 1 : -1]
        apart = said != expected
        if self.tolerance:
            computed = np.array([part in COMPUTED for part in problem.parts[problem.given :]])
            apart &= ~(computed & (np.abs(said - expected) <= self.tolerance))
        return apart

    def first_wrong(self, index: int) -> int | None:
        """The position, in the whole text, of the first wrong token."""
        found = np.flatnonzero(self.wrong(index))
        return int(found[0]) + self.problems[index].given if len(found) else None

    @property
    def right(self) -> BoolArray:
        return np.array([not self.wrong(i).any() for i in range(len(self.problems))], dtype=np.bool_)


# --- rows -------------------------------------------------------------------------------------------------------------


def by_length(trials: Iterable[TaskTrial]) -> Iterator[tuple[str, int, list[TaskTrial]]]:
    known: dict[tuple[str, int], list[TaskTrial]] = {}
    for trial in trials:
        known.setdefault((trial.about.name, trial.length), []).append(trial)
    return ((name, length, found) for (name, length), found in known.items())


def accuracy(trials: Sequence[TaskTrial], times: Callable[[int], float]) -> list[dict[str, Any]]:
    rows = []
    for name, length, found in by_length(trials):
        about = {"simulator": name, "length": length, "times": times(length), "step": 1}
        tokens = np.concatenate([~t.wrong(i) for t in found for i in range(len(t.problems))])
        rows.append({**about, "measure": "token", **share(tokens)})
        rows.append({**about, "measure": "problem", **share(np.concatenate([t.right for t in found]))})
    return rows


def difficulty(trials: Sequence[TaskTrial], ns: Sequence[int]) -> list[dict[str, Any]]:
    """Problems on which program n fails, since they repeat an (n + 1)-gram (`gram`), and those on which it does not."""
    programs = [t for t in trials if t.about.kind == "program"]
    hard = {
        (t.about.n, id(p)): not right for t in programs for p, right in zip(t.problems, t.right.tolist(), strict=True)
    }
    rows = []
    for name, length, found in by_length(trials):
        right = np.concatenate([t.right for t in found])
        for n in ns if programs else ():
            repeated = np.array([hard[n, id(p)] for t in found for p in t.problems], dtype=np.bool_)
            about = {"simulator": name, "length": length, "n": n, "gram": n + 1}
            for group, wanted in (("unique", ~repeated), ("repeated", repeated)):
                rows += [{**about, "group": group, **share(right[wanted])}] if wanted.any() else []
    return rows


def parts(trials: Sequence[TaskTrial]) -> list[dict[str, Any]]:
    """Of every part of the text: how many of its tokens each gets wrong."""
    tokens: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for trial in trials:
        for i, problem in enumerate(trial.problems):
            names = problem.parts[problem.given :]
            apart = trial.wrong(i)
            tokens.update((trial.about.name, part) for part in names)
            wrong.update((trial.about.name, names[at]) for at in np.flatnonzero(apart).tolist())
    return [
        {"simulator": name, "part": part, "tokens": count, "wrong": wrong[name, part]}
        for (name, part), count in tokens.items()
    ]


def lookback(trials: Sequence[TaskTrial]) -> list[dict[str, Any]]:
    """Copied tokens by how many tokens one must look back to know them (FAR: or more), and how many are wrong.

    `followed` counts, of the wrong ones, how long a gram is after which what was said does stand elsewhere.
    """
    asked: dict[int, list[tuple[TaskTrial, int]]] = {}
    for trial in trials:
        for i, problem in enumerate(trial.problems):
            asked.setdefault(id(problem), []).append((trial, i))
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for answers in asked.values():  # one problem at a time: what is known of its tokens takes much room
        trial, i = answers[0]
        tokens = list(trial.problems[i].copied_tokens())
        for trial, i in answers:
            _count_copies(rows, trial, i, tokens)
    return [rows[key] for key in sorted(rows)]


def _count_copies(
    rows: dict[tuple[str, int], dict[str, Any]], trial: TaskTrial, index: int, tokens: Sequence[CopiedToken]
) -> None:
    apart, given, said = trial.wrong(index), trial.problems[index].given, trial.said[index]
    for token in tokens:
        key = trial.about.name, min(token.needed, FAR)
        row = rows.setdefault(key, {"simulator": key[0], "needed": key[1], "tokens": 0, "wrong": 0, "followed": {}})
        row["tokens"] += 1
        if apart[token.position - given]:
            row["wrong"] += 1
            back = str(min(token.reach(int(said[token.position - 1])), FAR))
            row["followed"][back] = row["followed"].get(back, 0) + 1


# --- errors -----------------------------------------------------------------------------------------------------------


def anatomy(trials: Sequence[TaskTrial], shown: int = 2) -> list[dict[str, Any]]:
    """One row per simulator: its wrong problems by the part and kind of their first wrong token."""
    rows = []
    for name in dict.fromkeys(t.about.name for t in trials):
        own = [t for t in trials if t.about.name == name]
        found = [(t, i, at) for t in own for i in range(len(t.problems)) if (at := t.first_wrong(i)) is not None]
        told = [(t, i, at, t.problems[i].parts[at], kind_of(t, i, at)) for t, i, at in found]
        places, kinds = Counter(part for *_, part, _ in told), Counter(kind for *_, kind in told)
        chosen = [one for kind in KINDS for one in [one for one in told if one[-1] == kind][:shown]]
        rows.append(
            {
                "simulator": name,
                "wrong": len(told),
                "tapes": sum(len(t.problems) for t in own),
                "places": dict(places.most_common()),
                "kinds": {kind: kinds[kind] for kind in KINDS},
                "examples": [example(*one) for one in chosen],
            }
        )
    return rows


def kind_of(trial: TaskTrial, index: int, at: int) -> str:
    problem, said = trial.problems[index], int(trial.said[index][at - 1])
    expected = int(problem.tokens[at])
    copied = next(problem.copied_tokens(at), None)
    if copied is not None and copied.reach(said) >= LAST:
        return "lost place"
    if problem.parts[at] in COMPUTED:
        return "wrong computation"
    if problem.ends_a_part(said) != problem.ends_a_part(expected):
        return "early stop" if problem.ends_a_part(said) else "ran on"
    return "other"


def example(trial: TaskTrial, index: int, at: int, place: str, kind: str) -> dict[str, Any]:
    """The line that goes wrong and the one before it, as far as they lie around the first wrong token."""
    problem, said = trial.problems[index], trial.said[index]
    ends = [i for i, word in enumerate(problem.words) if word == "|"]
    before = [i for i in ends if i < at]
    start = before[-1] + 1 if before else problem.given
    stop = next((i + 1 for i in ends if i >= at), len(problem.tokens))
    last = before[-2] + 1 if len(before) > 1 else 0
    first = max(start, min(at - AROUND // 2, stop - AROUND))
    shown = range(first, min(stop, first + AROUND))
    return {
        "length": trial.length,
        "place": place,
        "kind": kind,
        "at": at - first,
        "cut": first > start,
        "before": problem.words[last:start],
        "expected": [problem.words[i] for i in shown],
        "said": [problem.names[int(said[i - 1])] for i in shown],
    }
