"""The rule of arithmetic in machine code, where the CPU's own operators have another answer or none.

`rasp.arithmetic` is the definition; the tests compare the two.
"""

from __future__ import annotations

import numpy as np

from rasp.machine_code import compiled

LOWEST = np.int64(-(2**63))  # a plain one would be taken for a uint64


@compiled
def add(a: int, b: int) -> int:
    return np.int64(np.uint64(a) + np.uint64(b))  # type: ignore[return-value]


@compiled
def subtract(a: int, b: int) -> int:
    return np.int64(np.uint64(a) - np.uint64(b))  # type: ignore[return-value]


@compiled
def multiply(a: int, b: int) -> int:
    return np.int64(np.uint64(a) * np.uint64(b))  # type: ignore[return-value]


@compiled
def negate(a: int) -> int:
    return subtract(0, a)  # type: ignore[no-any-return]


@compiled
def absolute(a: int) -> int:
    return negate(a) if a < 0 else a


@compiled
def floordiv(a: int, b: int) -> int:
    if b == 0:
        return 0
    return negate(a) if b == -1 else a // b  # -2**63 // -1 would trap


@compiled
def modulo(a: int, b: int) -> int:
    return 0 if b == 0 or b == -1 else a % b


@compiled
def power(a: int, b: int) -> int:
    if b < 0:
        if a == 1 or a == -1:
            return a if b % 2 != 0 else 1
        return 0
    result = 1
    while b > 0:
        if b & 1:
            result = multiply(result, a)
        a = multiply(a, a)
        b >>= 1
    return result


@compiled
def shift_left(a: int, b: int) -> int:
    return np.int64(np.uint64(a) << np.uint64(b)) if 0 <= b < 64 else 0  # type: ignore[return-value]


@compiled
def shift_right(a: int, b: int) -> int:
    if 0 <= b < 64:
        return a >> b
    return -1 if a < 0 else 0


@compiled
def cut(a: float) -> int:
    return np.int64(a) if -9223372036854775808.0 <= a < 9223372036854775808.0 else LOWEST  # type: ignore[return-value]


@compiled
def mean(total: int, count: int) -> int:
    quotient = total // count
    return quotient + 1 if quotient < 0 and quotient * count != total else quotient


@compiled
def float_divide(a: float, b: float) -> float:
    return a / b if b != 0 else 0.0


@compiled
def float_floordiv(a: float, b: float) -> float:
    return a // b if b != 0 else 0.0


@compiled
def float_modulo(a: float, b: float) -> float:
    return a % b if b != 0 else 0.0
