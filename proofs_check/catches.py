"""Which wrong programs (`symbolic.mutants`) each check is meant to catch in its default run.

`verify` and `exhaust` look at runs, so they are meant to catch every wrong program that shows in a run of their sizes;
here stand the others, each with the reason why it does not. `prove` is meant to catch those that `CONCERNS` names,
lemma by lemma. tests/test_catches.py and tests/test_lemmas.py hold each check to it.
"""

from __future__ import annotations

from collections.abc import Mapping

_TRUTH = "the program's conditions are 0 or 1, for which it is right; `prove where` asks for every int64"
_SMALL = "2 symbols and 2 states are 8 token ids"

# wrong programs that no run of `verify`, its corners included, shows
NOT_BY_VERIFY: Mapping[str, str] = {
    "where takes negative conditions for false": _TRUTH,
    "where looks at the last bit only": _TRUTH,
}

# wrong programs that no run of `exhaust` in its default size shows (2 x 2, n = 1, 3 cells, 8 steps, paper packing)
NOT_BY_EXHAUST: Mapping[str, str] = {
    **NOT_BY_VERIFY,
    "the hash is in base 32 whatever the alphabet": f"{_SMALL}, fewer than 32",
    "at most six tokens are hashed": "n = 1 hashes two",
    "the digits of the hash are reversed": "within base**n steps the order of digits does not matter",
    "the hash is packed with base**(n+1)": "within base**n steps the room for the count does not matter",
    "what lies before a separator is seen by tuples": "its packing has no tuples",
    "only 28 tokens back are seen": "a tape of 3 cells looks 7 tokens back",
}
