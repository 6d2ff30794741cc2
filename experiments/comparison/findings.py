"""What was found, in words: sentences made of the results, so that they say what these results say and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.comparison.summary import (
    FEW,
    Record,
    Results,
    anatomies,
    digits,
    inductions,
    learned_of,
    lookbacks,
    percent,
    pooled,
    programs_of,
    promises_kept,
    rate_text,
    rows_of,
    shares,
    telling_gram,
    words_of,
)

KINDS = {
    "wrong transition": "by a wrong transition",
    "lost place": "by losing their place",
    "early stop": "by stopping early",
    "ran on": "by running on past the end",
    "wrong computation": "by a wrong computation",
    "other": "by none of the known ways",
}
ALIKE = 0.1  # accuracies that differ by no more, on average, are about the same
PLACES = {"near head": "near the head", "copy": "in what is only copied", "end marker": "at an end marker"}


def headline(results: Results) -> str:
    """What was found, in one sentence."""
    learned, programs = learned_of(results), programs_of(results)
    if learned is None:
        return _program_headline(results)
    found = shares(results, learned)
    near, far = min(found), max(found)
    who, whose = ("Learned models write", "their") if found[near].machines > 1 else ("The learned model writes", "its")
    length = f"{whose} training length" if near == 1 else f"{near:g}x {whose} training length"
    said = f"{who} {percent(found[near].mean)} of {words_of(results).wholes} right at {length}"
    if far > near:
        said += f" and {percent(found[far].mean)} at {far:.3g}x"
    if not programs:
        return f"{said}."
    best = max(programs, key=lambda family: family.n or 0)
    own = shares(results, best)
    return f"{said}; the compiled program with n = {best.n}, {percent(own[max(own)].mean)} at {max(own):.3g}x."


def _program_headline(results: Results) -> str:
    best, words = max(programs_of(results), key=lambda family: family.n or 0), words_of(results)
    found = shares(results, best)
    longest = max(row["length"] for row in rows_of(results, best, measure=words.whole))
    return (
        f"Interpreted or compiled, the program errs exactly where the {words.law} says: with n = {best.n} it writes "
        f"{percent(found[max(found)].mean)} of {words.whole}s of {longest} {words.unit} right."
    )


def findings(results: Results) -> list[str]:
    """What a reader should take along, a sentence or two each."""
    makers = (_likeness, _lookback, _mechanism, _difficulty, _anatomy, _training, _theorem)
    return [words for make in makers if (words := make(results))]


def _likeness(results: Results) -> str:
    """Which program is right about as often, length by length."""
    learned, programs = learned_of(results), programs_of(results)
    if learned is None or len(programs) < 2 or len(found := shares(results, learned)) < 2:
        return ""
    apart: dict[int | None, float] = {}
    for program in programs:
        own = shares(results, program)
        apart[program.n] = sum(abs(own[times].mean - share.mean) for times, share in found.items()) / len(found)
    n = min(apart, key=lambda n: apart[n])
    if apart[n] > ALIKE:
        return ""
    return (
        f"From {min(found):g}x to {max(found):.3g}x, learned models are right about as often as the program that "
        f"looks for the last {(n or 0) + 1} tokens, n = {n} (on average {digits(apart[n])} apart)."
    )


def _lookback(results: Results) -> str:
    """Whether learned models err where a program that looks k tokens back must: the k at which errors set in."""
    learned = learned_of(results)
    found = lookbacks(results, learned) if learned is not None else {}
    unsettled = [
        counts
        for program in programs_of(results)
        for back, counts in lookbacks(results, program).items()
        if back > (program.n or 0) + 1
    ]
    if not found or not sum(of for _, of in unsettled):
        return ""
    guessing = rate_of(unsettled)  # how often a program errs that looks less far back than it must
    often = [back for back, counts in found.items() if counts[1] >= FEW and rate_of([counts]) >= guessing / 2]
    if not often:
        wrong, of = found[max(found)]
        return f"Even copied tokens that need {max(found)} tokens or more are wrong in {percent(wrong / of)} of {of:,}."
    seen = min(often) - 1
    near, far = ([c for back, c in found.items() if (back <= seen) == wanted] for wanted in (True, False))
    if not near:
        return f"However few tokens settle a copied token, learned models are wrong in {percent(rate_of(far))} of them."
    return (
        f"Copied tokens that the last {seen} tokens settle are wrong in {percent(rate_of(near))} of "
        f"{sum(of for _, of in near):,}, the others in {percent(rate_of(far))} of {sum(of for _, of in far):,}, where "
        f"programs that look less far err on {percent(guessing)}: learned models copy like a program that looks about "
        f"{seen} tokens back."
    )


def rate_of(counts: Sequence[tuple[int, int]]) -> float:
    return sum(wrong for wrong, _ in counts) / sum(of for _, of in counts)


def _mechanism(results: Results) -> str:
    found = inductions(results)
    if not found:
        return ""
    counts = {verdict: sum(row["verdict"] == verdict for row in found) for verdict in ("found", "partly", "not found")}
    if counts["not found"] == len(found):
        said = "Training did not find the compiled program's match head"
    else:
        partly = f", and partly in {counts['partly']}" if counts["partly"] else ""
        many = f" in {counts['found']} of {len(found)} models{partly}" if len(found) > 1 or partly else ""
        said = f"Training found the compiled program's match head{many}"
    agreement, baseline = (sum(row[key] for row in found) / len(found) for key in ("agreement", "baseline"))
    return (
        f"{said}: the learned head most like it shares {percent(agreement)} of its attention, where position alone "
        f"explains {percent(baseline)}."
    )


def _difficulty(results: Results) -> str:
    learned = learned_of(results)
    gram = telling_gram(results, learned) if learned else None
    if learned is None or gram is None:
        return ""
    words = words_of(results)
    unique, repeated = (
        pooled(rows_of(results, learned, "difficulty", gram=gram, group=group)) for group in ("unique", "repeated")
    )
    return (
        f"Where {words.repeating} a {gram}-gram, the program that looks at {gram} tokens is always wrong; "
        f"learned models are right on {percent(repeated[0] / repeated[1])} of {repeated[1]:,} such {words.whole}s, "
        f"and on "
        f"{percent(unique[0] / unique[1])} of {unique[1]:,} without a repeat."
    )


def _anatomy(results: Results) -> str:
    learned = learned_of(results)
    found = anatomies(results, learned) if learned else None
    if not found or not found["wrong"]:
        return ""
    wrong = found["wrong"]
    kind, place = (max(found[key].items(), key=lambda item: item[1]) for key in ("kinds", "places"))
    at = PLACES.get(place[0], f"in the {place[0]}")
    return (
        f"Of {wrong:,} {words_of(results).whole}s that learned models get wrong, {percent(kind[1] / wrong)} go wrong "
        f"{KINDS.get(kind[0], kind[0])}; the first wrong token is {at} in "
        f"{percent(place[1] / wrong)}."
    )


def _training(results: Results) -> str:
    found = results.get("from_compiled")
    if not found:
        return ""
    kept, lost = ([run for run in found["runs"] if run["keeps"] == wanted] for wanted in (True, False))
    parts = [f"keeps its accuracy at every length at rate {_rates(kept)}"] if kept else []
    parts += [f"loses up to {percent(max(run['lost'] for run in lost))} at rate {_rates(lost)}"] if lost else []
    return f"Trained on for {found['recipe']['steps']} steps, a compiled model {' and '.join(parts)}."


def _rates(runs: Sequence[Record]) -> str:
    return " and ".join(rate_text(run["rate"]) for run in runs)


def _theorem(results: Results) -> str:
    (tokens, held), words = promises_kept(results), words_of(results)
    if not tokens or not held:
        return ""
    return (
        f"Compiled transformers and the RASP program say the same at every one of {tokens:,} tokens, and each of "
        f"{held:,} {words.whole}s is right or wrong exactly as the {words.law} says."
    )
