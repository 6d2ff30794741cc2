"""Wrong variants of the arithmetic programs and of the universal one: one piece of the text of each is changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from rasp.programs import addition, arithmetic, copying, multiplication, sgd, universal

PROGRAMS = {"addition": addition, "multiplication": multiplication, "sgd": sgd, "universal": universal}


@dataclass(frozen=True)
class Wrong:
    """`right` becomes `wrong` in the module (which the program's own module imports, or is)."""

    program: str
    module: ModuleType
    right: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.program}: {self.right} -> {self.wrong}"

    def make(self) -> Callable[..., Any]:
        """The changed program."""
        text = inspect.getsource(self.module)
        if text.count(self.right) != 1:
            raise ValueError(f"{self.right!r} stands {text.count(self.right)} times in {self.module.__name__}")
        changed = ModuleType(self.module.__name__)
        exec(compile(text.replace(self.right, self.wrong), self.module.__name__, "exec"), vars(changed))
        return getattr(_relinked(PROGRAMS[self.program], changed), f"next_tokens_{self.program}")  # type: ignore[no-any-return]


def _relinked(module: ModuleType, changed: ModuleType) -> ModuleType:
    """A copy of the module, and of what it imports from `rasp.programs`, that uses the changed one."""
    if module.__name__ == changed.__name__:
        return changed
    copy = ModuleType(module.__name__)
    exec(compile(inspect.getsource(module), module.__name__, "exec"), vars(copy))
    for inner in (copying, arithmetic):
        if inner.__name__ != module.__name__ and _imports(module, inner):
            linked = _relinked(inner, changed)
            names = [name for name, value in vars(copy).items() if getattr(value, "__module__", "") == inner.__name__]
            vars(copy).update({name: getattr(linked, name) for name in names if hasattr(linked, name)})
    return copy


def _imports(module: ModuleType, inner: ModuleType) -> bool:
    return f"from {inner.__name__} import" in inspect.getsource(module)


_ARITHMETIC = [  # of addition and multiplication
    ("return where(tok_map(digit, is_worked_on), full(digit, USED_UP), copied)", "return copied"),
    ("lambda u: u >= FIRST_LETTER", "lambda u: u > USED_UP"),
    ("t + FIRST_LETTER if last else t", "t"),
    ("lambda t: t <= USED_UP", "lambda t: t < USED_UP"),
    ("lambda t: t <= USED_UP", "lambda t: t >= 0"),
    ("where(in_result, right, becomes(right, right_right))", "becomes(right, right_right)"),
    ("offers = in_result | ", "offers = "),
    ("lambda done, r: result if done else r", "lambda done, r: r"),
    ("begins = operand_begins | shift_right(result_begins, 1)", "begins = operand_begins | result_begins"),
    ("place_begins = operand_begins | result_begins", "place_begins = operand_begins"),
    ("offer, equals, default=marks.close", "offer, equals, default=marks.comma"),
    ('default=marks.close, reduction="max"', 'default=marks.close, reduction="min"'),
    ("mask(shift_right(line + 1, 2", "mask(shift_right(line, 2"),
    ("negation(digits_left | carry_before)", "negation(digits_left)"),
    ("negation(digits_left | carry_before)", "negation(carry_before)"),
    ("lambda z: z - FIRST_LETTER", "lambda z: z - FIRST_LETTER + 1"),
]
_COPYING = [  # of all
    ("for back in range(n + 1):", "for back in range(n):"),
    ("for back in range(n + 1):", "for back in range(n + 2):"),
    ("over = over | shift_right(is_start, back, default=1)", "over = shift_right(is_start, back, default=1)"),
]
_ADDITION = [
    ("has_had(line, is_token(x, PLUS)) + ", ""),
    ("told(line + 1, after_open, digit_written(x), asked=line)", "full(x, 0)"),
    ("told(line + 1, after_open", "told(line + 1, is_token(x, OPEN)"),
    ("PLUS if r == LEFT else OPEN", "PLUS"),
    ("total = left + right + carry_before", "total = left + right"),
    ("lambda t: t // 10", "lambda t: t > 10"),
    ("letter & is_token(region, LEFT)", "letter"),
    ("lambda r: r < CARRY", "lambda r: r <= CARRY"),
    ("lambda r: r < CARRY", "lambda r: r < RIGHT"),
    ("finished & is_token(copied, CLOSE)", "is_token(copied, CLOSE)"),
]
_MULTIPLICATION = [
    ("+ has_had(line, is_token(x, COMMA))", "+ has_had(line, is_token(x, TILDE))"),
    ("total = place * digit + carry", "total = place * digit"),
    ("total = place + other + carry", "total = place + other"),
    ("after(x, TIMES, i + 1), here, asked=first", "after(x, TIMES, digits - i), here, asked=first"),
    ("told(line + 1, after(x, TILDE, i + 1)", "told(line + 1, after(x, OPEN, i + 1)"),
    ("reduce(lambda a, b: a | b, before)", "before[-1]"),
    ("is_token(region, LEFT), reduce", "full(x, 1), reduce"),
    ("*carry, digit = add_numbers", "digit, *carry = add_numbers"),
]
_SGD = [
    ("told(line + 1, ago(x, WEIGHTS, i), x, asked=line, default=ZERO)", "full(x, ZERO)"),
    ("asked=line, default=ZERO)", "asked=line)"),
    ("product(w1, x1) + product(w2, x2)", "product(w1, x1) + product(w1, x2)"),
    ("1 if is_half and nearest % 2 == 1 else 0", "0"),
    ("1 if is_half and nearest % 2 == 1 else 0", "1 if is_half else 0"),
    ("0 if token < 0 else ", ""),
    ("NUMBERS - 1 if token >= NUMBERS else token", "token % NUMBERS"),
    ("lambda p, label: p - label", "lambda p, label: label - p"),
    ("lambda a, b: within(a - (b - ZERO))", "lambda a, b: within(a - b)"),
    ("descend(w2, shift_right(x, 2))", "descend(w1, shift_right(x, 2))"),
    ("is_token(right, BAR) | is_token(x, PREDICTION)", "is_token(x, PREDICTION)"),
    ("is_token(right, BAR) | is_token(x, PREDICTION)", "is_token(right, BAR)"),
    (
        "where(shift_right(worked, seen), full(x, NOWHERE), shift_right(line + 1, seen, default=NOWHERE))",
        "shift_right(line + 1, seen, default=NOWHERE)",
    ),
    ('default=PREDICTION, reduction="max"', 'default=PREDICTION, reduction="min"'),
    ("seen = EXAMPLE + 1", "seen = EXAMPLE"),
]
_UNIVERSAL = [
    ("lambda k: k > 0", "lambda k: k >= 0"),
    ("mask(shift_right(x, 4), is_rule, sep)", "shift_right(x, 4)"),
    ("select((rule_state, rule_symbol), (cells, under_head), equals)", "select(rule_state, cells, equals)"),
    ("select((rule_state, rule_symbol), (cells, under_head), equals)", "select(rule_symbol, under_head, equals)"),
    ("aggr_max(found, shift_right(x, 2))", "aggr_max(found, shift_right(x, 1))"),
    ("aggr_max(found, is_token(x, right))", "aggr_max(found, is_token(x, left))"),
    ("x_next = where(right.is_head, right.next_symbol, x_next)", "x_next = x_next"),
    ("get_next(cells, rule, shift - 1))", "get_next(cells, rule, shift))"),
    ("prefix_fill(next_tape(cells, rule, 3), 2, empt)", "next_tape(cells, rule, 3)"),
    ("next_tape(cells, rule, 3)", "next_tape(cells, rule, 2)"),
    ("(key_line, *tape_n_gram(key_tape, n))", "(line, *tape_n_gram(key_tape, n))"),
    ('kqv(keys, queries, tape, equals, reduction="max")', 'kqv(keys, queries, tape, equals, reduction="min")'),
]

WRONG_TASKS = [
    *(Wrong(program, arithmetic, *change) for program in ("addition", "multiplication") for change in _ARITHMETIC),
    *(Wrong(program, copying, *change) for program in ("addition", "multiplication", "sgd") for change in _COPYING),
    *(Wrong("addition", addition, *change) for change in _ADDITION),
    *(Wrong("multiplication", multiplication, *change) for change in _MULTIPLICATION),
    *(Wrong("sgd", sgd, *change) for change in _SGD),
]
WRONG_UNIVERSAL = [
    *(Wrong("universal", copying, *change) for change in _COPYING),
    *(Wrong("universal", universal, *change) for change in _UNIVERSAL),
]
