"""What random programs are made of: for each sort of phrase, the forms it can take and the sorts of their parts.

A form is Python with `{0}`, `{1}`, .. for its parts. `V` stands for a variable in scope (`a`; `a, b`; `k, q`).
The third word of a rule says how tame it is: `tame` forms keep values few and whole, so that most programs made of
them compile; `wild` ones overflow, divide, make fractions; `odd` ones are functions that cannot be recorded.
"""

from __future__ import annotations

from typing import NamedTuple

TAME, WILD, ODD = range(3)


class Rule(NamedTuple):
    weight: float
    form: str
    parts: tuple[str, ...] = ()
    level: int = TAME


def _rules(sorts: str, *forms: str, weight: float = 1.0, level: int = TAME) -> list[Rule]:
    return [Rule(weight / len(forms), form, tuple(sorts.split()), level) for form in forms]


# --- sequences --------------------------------------------------------------------------------------------------------

S2, S3, S4, S5 = (" ".join(["sequence"] * count) for count in (2, 3, 4, 5))

SEQUENCE = [
    *_rules("sequence unary", "tok_map({0}, {1})", weight=6),
    *_rules(f"{S2} binary", "seq_map({0}, {1}, {2})", weight=5),
    *_rules("sequence literal", "full({0}, {1})", weight=1),
    *_rules("sequence", "indices({0})", weight=1),
    *_rules("selector", "sel_width({0})", weight=3),
    *_rules("selector sequence literal reduction", "aggr({0}, {1}, {2}, {3})", weight=2),
    *_rules("selector sequence", "aggr_mean({0}, {1})", "aggr_max({0}, {1})", "aggr_min({0}, {1})", weight=1),
    *_rules("selector sequence literal", "aggr_max({0}, {1}, {2})", "aggr_min({0}, {1}, default={2})", weight=0.5),
    *_rules(f"{S3} predicate literal reduction", "kqv({0}, {1}, {2}, {3}, default={4}, reduction={5})", weight=6),
    *_rules(f"{S3} predicate", "kqv({0}, {1}, {2}, {3})", weight=1),
    *_rules(f"{S5} literal reduction", "kqv(({0}, {1}), ({2}, {3}), {4}, equals, {5}, reduction={6})", weight=2),
    *_rules(S5, "kqv(({0}, {1}, {2}), ({0}, {3}, {2}), {4}, equals)", weight=0.5),
    # the library
    *_rules("sequence distance", "shift_right({0}, {1})", weight=1),
    *_rules("sequence distance literal", "shift_right({0}, {1}, {2})", weight=3),
    *_rules("sequence", "cumsum({0})", "maximum({0})", "minimum({0})", "argmax({0})", "argmin({0})", weight=2.5),
    *_rules("sequence", "mode({0})", "binary_mode({0})", "first_true({0})", "cumsum({0} == 1)", weight=2),
    *_rules(S2, "num_prev({0}, {1})", "has_seen({0}, {1})", "firsts({0}, {1})", "lasts({0}, {1})", weight=2),
    *_rules(f"{S2} literal", "firsts({0}, {1}, {2})", "lasts({0}, {1}, {2})", "mask({0}, {1}, {2})", weight=1),
    *_rules(S2, "mask({0}, {1})", "index_select({0}, {1})", weight=1),
    *_rules(f"{S2} literal", "index_select({0}, {1}, {2})", weight=1),
    *_rules("sequence literal", "first_true({0}, {1})", weight=0.5),
    *_rules(f"{S2} distance", "induct({0}, {1}, offset={2})", "induct_prev({0}, {1}, {2})", weight=0.7),
    *_rules(f"{S2} distance literal", "induct({0}, {1}, {2}, default={3}, null_val=-9)", weight=0.3),
    *_rules(f"{S3} distance literal", "induct_kqv({0}, {1}, {2}, {3}, {4})", weight=0.5),
    *_rules("sequence distance literal", "prefix_fill({0}, {1}, {2})", weight=0.7),
    *_rules(S3, "where({0}, {1}, {2})", weight=2),
    *_rules(S4, "where3({0}, {1}, {2}, {3})", weight=0.7),
    *_rules("sequence", 'named({0}, "label")', weight=0.3),
    # operators between sequences, and with constants
    *_rules(S2, "({0} + {1})", "({0} - {1})", "({0} * {1})", weight=2),
    *_rules(S2, "({0} == {1})", "({0} != {1})", "({0} < {1})", "({0} <= {1})", "({0} > {1})", "({0} >= {1})", weight=3),
    *_rules(S2, "({0} & {1})", "({0} | {1})", "({0} ^ {1})", weight=1, level=WILD),
    *_rules(S2, "(({0} == 1) & ({1} > 0))", "(({0} < 2) | ({1} == 2))", "(({0} > 0) ^ ({1} > 0))", weight=1),
    *_rules(S2, "({0} // {1})", "({0} % {1})", "({0} / {1})", weight=1, level=WILD),
    *_rules(S2, "({0} << {1})", "({0} >> {1})", "({0} ** {1})", weight=0.5, level=WILD),
    *_rules("sequence small", "({0} % {1})", "({0} // {1})", weight=3),
    *_rules("sequence literal", "({0} + {1})", "({0} - {1})", "({1} - {0})", "({0} * {1})", weight=2),
    *_rules("sequence literal", "({0} == {1})", "({0} < {1})", "({0} > {1})", "({0} != {1})", weight=3),
    *_rules("sequence literal", "({1} // {0})", "({1} % {0})", "({1} / {0})", "({0} / {1})", weight=1, level=WILD),
    *_rules("sequence float", "({0} + {1})", "({0} * {1})", "({0} - {1})", "({1} / {0})", weight=1, level=WILD),
    *_rules("sequence large", "({0} + {1})", "({0} * {1})", "({1} - {0})", weight=1, level=WILD),
    *_rules("sequence small", "({0} << {1})", "({0} >> {1})", "({0} ** {1})", "({1} << {0})", weight=0.7, level=WILD),
    *_rules("sequence", "(-{0})", "abs({0})", weight=1),
    *_rules("sequence", "(~({0} == 1))", "(-({0} == 1))", "(({0} == 1) - 1)", "(~{0})", weight=1),
    *_rules("sequence", "((({0} == 1) // ({0} == 1)) * 200)", "(({0} > 0) + ({0} > 1))", weight=0.5, level=WILD),
]

SELECTOR = [
    *_rules(f"{S2} predicate", "select({0}, {1}, {2})", weight=6),
    *_rules(S4, "select(({0}, {1}), ({2}, {3}), equals)", weight=1),
    *_rules(S3, "select(({0}, {1}, {2}), ({1}, {2}, {0}), equals)", weight=0.3),
    *_rules("selector selector", "({0} & {1})", "({0} | {1})", weight=3),
    *_rules(f"{S2} predicate", "select({0}, {1}, {2}, causal=False)", weight=0.15),
    *_rules("selector", "(~{0})", weight=0.1),
]

# --- functions --------------------------------------------------------------------------------------------------------

UNARY = [
    *_rules("number", "lambda a: {0}", weight=8),
    *_rules("", "abs", "bool", "operator.neg", "operator.not_", weight=0.8),
    *_rules(
        "number number literal",
        "def F(a):\n    if {0}:\n        return {1}\n    return {2}",
        "def F(a):\n    b = {0}\n    if b > {2}:\n        a = {1}\n    return a + b",
        "def F(a):\n    for b in range(3):\n        if a == b:\n            return {0}\n    return {1} + {2}",
        "def F(a):\n    for b in range(4):\n        a = (a * {2} + b) % 5\n    return a",
        weight=1.5,
    ),
    *_rules(
        "number number literal",
        "def F(a):\n    try:\n        return DICT[a]\n    except KeyError:\n        return {0}",
        "def F(a):\n    try:\n        return DICT[{0}]\n    except Exception:\n        return {2}",
        "def F(a):\n    return {0} if isinstance(a, np.integer) else {2}",
        "def F(a):\n    return {0} if hasattr(a, 'bit_count') or hasattr(a, 'dtype') else {2}",
        "def F(a):\n    return [{0}, {1}, {2}][int(a) % 3]",
        "def F(a):\n    return len(str(a)) + {2}",
        "def F(a):\n    return sum(int(b) for b in bin(abs(int(a)) % 64)[2:])",
        "def F(a):\n    return sorted([{0}, {1}, {2}])[1]",
        "def F(a):\n    match int(a) % 4:\n        case 0 | 3:\n            return {0}\n    return {2}",
        "def F(a):\n    return {0} if int(a) in {{0, 2, 5}} else {1}",
        "def F(a):\n    return [b for b in range(6) if b != {2}][int(a) % 5]",
        weight=2,
        level=ODD,
    ),
    *_rules("number", "def F(a):\n    if a > 1:\n        return {0}", weight=0.05, level=ODD),
    *_rules("number", "def F(a):\n    return {0} if a > 1 else 'x'", weight=0.05, level=ODD),
    *_rules("number", "def F(a):\n    return DICT[{0}]", weight=0.05, level=ODD),
]

BINARY = [
    *_rules("number", "lambda a, b: {0}", weight=8),
    *_rules("", "equals", "leq", "lt", "geq", "gt", "max", "min", weight=1),
    *_rules("", "operator.add", "operator.sub", "operator.mul", weight=0.5),
    *_rules("", "operator.floordiv", "operator.mod", "operator.truediv", weight=0.5, level=WILD),
    *_rules("number number number", "def F(a, b):\n    if {0}:\n        return {1}\n    return {2}", weight=1),
    *_rules(
        "number number",
        "def F(a, b):\n    try:\n        return LIST[a] + b\n    except IndexError:\n        return {0}",
        "def F(a, b):\n    return DICT.get((int(a), int(b)), {0})",
        "def F(a, b):\n    return {0} if (int(a), int(b)) in {{(1, 2), (0, 0)}} else {1}",
        "def F(a, b):\n    return divmod(int(a), int(b) or 1)[1]",
        weight=1,
        level=ODD,
    ),
]

PREDICATE = [
    *_rules("", "equals", weight=5),
    *_rules("", "leq", "lt", "geq", "gt", "operator.ne", weight=2.5),
    *_rules("", "lambda k, q: True", "lambda k, q: False", "lambda k, q: k", "lambda k, q: q", weight=1.2),
    *_rules("", "lambda k, q: k == q + 1", "lambda k, q: q == 2 * k", "lambda k, q: k == 1", weight=1.5),
    *_rules("", "lambda k, q: k != q", "lambda k, q: not k == q", "lambda k, q: q > 0", weight=0.8),
    *_rules("literal", "lambda k, q: k == {0}", "lambda k, q: k == q + {0}", "lambda k, q: k > q - {0}", weight=1),
    *_rules("number", "lambda k, q: {0}", weight=3),
    *_rules("number number", "lambda k, q: {0} and {1}", "lambda k, q: {0} == {1}", weight=2),
    *_rules(
        "number",
        "def F(k, q):\n    try:\n        return DICT[k] == q\n    except KeyError:\n        return {0}",
        "def F(k, q):\n    return int(k) in (int(q), 1)",
        weight=0.8,
        level=ODD,
    ),
    *_rules("number", "def F(k, q):\n    if k == q:\n        return {0}", weight=0.05, level=ODD),
]

# --- numbers: what a function computes --------------------------------------------------------------------------------

N2, N3 = "number number", "number number number"

NUMBER = [
    *_rules("literal", "{0}", weight=2),
    *_rules(N2, "({0} + {1})", "({0} - {1})", weight=3),
    *_rules(N2, "({0} == {1})", "({0} != {1})", "({0} < {1})", "({0} >= {1})", "({0} > {1})", "({0} <= {1})", weight=3),
    *_rules("number literal", "({0} == {1})", "({0} < {1})", "({0} > {1})", "({0} != {1})", weight=2),
    *_rules("number small", "({0} % {1})", "({0} // {1})", weight=3),
    *_rules("number literal", "({0} + {1})", "({0} * {1})", "({1} - {0})", weight=2),
    *_rules(N3, "({1} if {0} else {2})", weight=3),
    *_rules(N2, "({0} and {1})", "({0} or {1})", "({0} if {1} else 0)", weight=2),
    *_rules("number", "(not {0})", "(-{0})", "abs({0})", "(0 < {0} < 3)", weight=2),
    *_rules("number", "({0} in (1, 2, 4))", "({0} not in (0, 3))", weight=1),
    *_rules(N2, "max({0}, {1})", "min({0}, {1})", "min({0}, 4)", weight=1),
    *_rules(N2, "(({0} == 1) & ({1} > 0))", "(({0} < 2) | ({1} == 2))", weight=1),
    *_rules(N2, "TABLE({0}, {1})", "TABLE({0}, 1)", weight=1),
    *_rules(N2, "({0} * {1})", "({0} * {0})", weight=1),
    *_rules("number", "(-({0} == 1))", "(({0} == 1) - 1)", "(~({0} == 1))", "(({0} > 0) + ({0} > 1))", weight=0.7),
    *_rules(N2, "({0} // {1})", "({0} % {1})", "({0} / {1})", weight=3, level=WILD),
    *_rules("number literal", "({1} // {0})", "({1} % {0})", "({1} / {0})", "({0} / {1})", weight=2, level=WILD),
    *_rules("number float", "({0} + {1})", "({0} * {1})", "({1} / {0})", "({0} < {1})", weight=2, level=WILD),
    *_rules("number large", "({0} + {1})", "({0} * {1})", "({1} - {0})", "({0} % {1})", weight=2, level=WILD),
    *_rules(N2, "({0} << {1})", "({0} >> {1})", "({0} ** {1})", weight=0.7, level=WILD),
    *_rules("number small", "({0} << {1})", "({0} >> {1})", "({0} ** {1})", "({1} << {0})", weight=1, level=WILD),
    *_rules(N2, "({0} & {1})", "({0} | {1})", "({0} ^ {1})", weight=1, level=WILD),
    *_rules("number", "(~{0})", "((({0} == 1) // ({0} == 1)) * 200)", "(1 << (20 * {0}))", weight=1, level=WILD),
    *_rules("number", "LIST[{0} % 8]", "DICT.get({0}, -1)", "int({0})", "(int({0}) % 3)", weight=2, level=ODD),
    *_rules("number", "bool({0})", "float({0})", "round({0})", "LIST.index({0} % 4)", weight=1, level=ODD),
]

# --- constants --------------------------------------------------------------------------------------------------------

LITERAL = [
    *_rules("", "0", "1", "2", "3", weight=6),
    *_rules("", "-1", "-2", "5", "7", weight=2),
    *_rules("", "True", "False", weight=0.3),
    *_rules("", "-9", "100", "-999", weight=0.7, level=WILD),
    *_rules("", str(2**62), str(2**63 - 1), str(-(2**63)), str(2**53 + 1), weight=0.7, level=WILD),
]
GRAMMAR: dict[str, list[Rule]] = {
    "sequence": SEQUENCE,
    "selector": SELECTOR,
    "unary": UNARY,
    "binary": BINARY,
    "predicate": PREDICATE,
    "number": NUMBER,
    "literal": LITERAL,
    "distance": _rules("", "0", "1", "1", "1", "2", "2", "3", "5", "17", "20", "-1"),
    "small": [*_rules("", "2", "3", "4", "5", weight=5), *_rules("", "0", "-2", "-3", "1", level=WILD)],
    "float": _rules("", "0.5", "1.5", "-0.25", "2.0", "1e18", "1e300", "0.1", "-3.7"),
    "large": _rules("", str(2**40), str(2**62 + 3), str(2**63 - 1), str(-(2**63)), "3037000500", str(2**53 + 1)),
    "reduction": _rules("", '"mean"', '"max"', '"min"'),
}

# --- what programs may refer to ---------------------------------------------------------------------------------------

PRELUDE = {
    "LIST": "LIST = [3, 1, 4, 1, 5, 9, 2, 6]",
    "DICT": "DICT = {0: 2, 1: 0, 3: 1, (1, 2): 4, (0, 0): 3}",
    "TABLE": 'TABLE = Table("TABLE", np.array([[0, 2, 1], [3, 0, 1], [1, 1, 2], [0, 4, 0]]))',
}
