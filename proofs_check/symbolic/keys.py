"""What is claimed of keys, at any two positions of inputs of any length: equal keys are equal counts and grams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import z3

from proofs_check.symbolic.checking import Query
from proofs_check.symbolic.positions import START, around, position
from proofs_check.symbolic.program import Program
from proofs_check.symbolic.sequences import POSITIONS, AnyLength
from proofs_check.symbolic.terms import BITS, Value, choose, condition, every, known, number, same
from rasp.core import tok_map
from rasp.library import cumsum
from rasp.machines.machine import sep

BASE = 32  # the paper's MAX_INT: token ids are below it


@dataclass(frozen=True)
class Keyed:
    """The program's key at some position of a sequence of any length, and what it is made of."""

    key: Value
    count: z3.BitVecRef
    tokens: tuple[Value, ...]  # newest first
    p: Value

    @classmethod
    def of(cls, program: Program, name: str, n: int, packing: str, tokens: Sequence[Value], p: Value) -> Keyed:
        """At position p, where these tokens end."""
        rasp = AnyLength(f"count_{name}")
        if not known(p):
            rasp.assume_at_least(number(p), START)
        x = around(rasp, name, p, lambda d: tokens[-d], longest(n, packing))
        key = program.call("hash_n_gram_iter", x, n, BASE, packing).at(p)
        count = number(cumsum(tok_map(x, lambda z: z == sep)).at(p))
        return cls(key, count, tuple(tokens[: n + 1]), p)

    def given(self, limit: int) -> z3.BoolRef:
        """A count of separators is at most the number of tokens."""
        p = number(self.p)
        return z3.And(p >= 0, p < limit - START, self.count >= 0, self.count <= p + 1)


def any_tokens(name: str, size: int) -> list[Value]:
    """Unknown numbers below 32."""
    return [z3.ZeroExt(BITS - 5, z3.BitVec(f"{name}_{i}", 5)) for i in range(size)]


def longest(n: int, packing: str) -> int:
    """Positions up to which the key is an int64."""
    return POSITIONS if packing == "paper" else 2**62 // BASE ** (n + 1)


def masked(tokens: Sequence[Value]) -> tuple[Value, ...]:
    """Tokens, newest first, up to the first separator; zeros from there on."""
    out: list[Value] = []
    alive: Value = True
    for token in tokens:
        alive = choose(alive, choose(same(token, sep), False, True), False)
        out.append(choose(alive, token, 0))
    return tuple(out)


def keys_are_injective(packing: str, ns: Sequence[int]) -> Callable[[Program], Iterator[Query]]:
    def build(program: Program) -> Iterator[Query]:
        for n in ns:
            yield from (_key_near_start(program, n, packing, p) for p in range(n))
            yield from _keys_and_grams(program, n, packing)

    return build


def _key_near_start(program: Program, n: int, packing: str, p: int) -> Query:
    """Before the start of the input a key reads zeros, so that the other positions speak for the first ones too."""
    tokens = any_tokens("x", p + 1)
    near = Keyed.of(program, "x", n, packing, tokens, p)
    far = Keyed.of(program, "y", n, packing, [*tokens, *[0] * START], position())
    wrong = z3.Not(condition(same(near.key, far.key)))
    shown = {"x": tokens[::-1], "key": near.key, "key after zeros": far.key}
    return Query(f"n={n}, p={p}", (near.count == far.count, wrong), watch=shown)


def _keys_and_grams(program: Program, n: int, packing: str) -> Iterator[Query]:
    """Equal count and gram give equal keys; equal keys come from equal count and gram, or from counts far apart."""
    limit = longest(n, packing)
    a, b = (Keyed.of(program, x, n, packing, any_tokens(x, START), position(f"p_{x}")) for x in "xy")
    grams = [masked(a.tokens), masked(b.tokens)]
    equal = every([same(a.count, b.count), *(same(s, t) for s, t in zip(*grams, strict=True))])
    far = z3.Or(a.count - b.count >= BASE**n, b.count - a.count >= BASE**n)
    excused = z3.Or(equal, far) if packing == "paper" else equal
    shown = {"counts": [a.count, b.count], "gram x": grams[0], "gram y": grams[1], "keys": [a.key, b.key]}
    given, same_key = (a.given(limit), b.given(limit)), condition(same(a.key, b.key))
    yield Query(f"n={n}, same key", (*given, same_key, z3.Not(excused)), watch=shown)
    yield Query(f"n={n}, same gram", (*given, equal, z3.Not(same_key)), watch=shown)
