"""What kind of predicate a selector has, read off its expression.

The kind decides how cheaply it can be run: an equality is a dictionary, and so are several equalities at once, whose
keys are tuples; a predicate of the key alone is a running count, one of the query alone or a constant is a running
total, and anything else must look at every distinct key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from rasp.scalar import Expr, arg, arguments, as_int, binary, const, truth


@dataclass(frozen=True)
class Predicate:
    """`kind` is one of equality, tuple, key, query, constant, order, other.

    For an equality `key` and `query` are the two sides (of the key alone, of the query alone); for an equality of
    tuples they are the `pairs`, one for each place of the tuple; otherwise the condition itself stands in `condition`.
    Arguments 0..keys-1 are the key, the rest the query.
    """

    kind: str
    condition: Expr
    key: Expr | None = None
    query: Expr | None = None
    pairs: tuple[tuple[Expr, Expr], ...] = ()


def classify(condition: Expr, keys: int = 1) -> Predicate:
    condition = truth(condition)
    used = arguments(condition)
    on_key, on_query = any(i < keys for i in used), any(i >= keys for i in used)
    if not used:  # a function that fails at constants has no argument left either, but must be asked
        return Predicate("constant" if condition.op == "const" else "query", condition)
    if not on_query:
        return Predicate("key", condition)
    if not on_key:
        return Predicate("query", condition)
    if condition.op in ("==", "<", "<=", ">", ">="):
        sides = _separate(condition.args[0], condition.args[1], keys)
        if sides:
            return Predicate("equality" if condition.op == "==" else "order", condition, *sides)
    pairs = _tuple_pairs(condition, keys)
    return Predicate("tuple", condition, pairs=pairs) if pairs else Predicate("other", condition)


def _tuple_pairs(condition: Expr, keys: int) -> tuple[tuple[Expr, Expr], ...]:
    """The sides of a conjunction of equalities, each pair once; what only one of the two must satisfy equals 1."""
    parts = conjuncts(condition)
    pairs: list[tuple[Expr, Expr]] = []
    for part in parts if len(parts) > 1 else ():
        found = classify(part, keys)
        if found.kind not in ("equality", "key", "query"):
            return ()
        if found.key is not None and found.query is not None:
            pairs.append((found.key, found.query))
        else:
            flag = as_int(found.condition)
            pairs.append((flag, const(1)) if found.kind == "key" else (const(1), flag))
    return tuple(dict.fromkeys(pairs))


def _separate(a: Expr, b: Expr, keys: int) -> tuple[Expr, Expr] | None:
    """The side of the key and the side of the query, if each side of the comparison speaks of one of them only."""
    on_key = [any(i < keys for i in arguments(e)) for e in (a, b)]
    on_query = [any(i >= keys for i in arguments(e)) for e in (a, b)]
    if any(k and q for k, q in zip(on_key, on_query, strict=True)) or on_key[0] == on_key[1]:
        return None
    if not (a.is_whole and b.is_whole):  # each side would be stored as a sequence, and lose its fraction
        return None
    key, query = (a, b) if on_key[0] else (b, a)
    return as_int(key), as_int(query)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions whose conjunction this is (`a & b`, and `b if a else False`)."""
    if condition.op == "&" and condition.is_bool:
        return conjuncts(condition.args[0]) + conjuncts(condition.args[1])
    if condition.op == "ite" and condition.args[2].op == "const" and not condition.args[2].payload:
        return conjuncts(condition.args[0]) + conjuncts(truth(condition.args[1]))
    return [condition]


def same_tuples(size: int) -> Expr:
    """The keys, arguments 0 to size-1, equal the queries, the arguments after them, one by one."""
    return reduce(both, (binary("==", arg(i), arg(size + i)) for i in range(size)))


def both(a: Expr, b: Expr) -> Expr:
    return binary("&", truth(a), truth(b))
