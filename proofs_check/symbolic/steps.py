"""What is claimed of one step, at one arbitrary position of an input of any length.

The library's `where`, where the next tape looks, and that it is the machine's step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import z3

from proofs_check.symbolic.checking import Query, ask
from proofs_check.symbolic.positions import START, around, back, every_position, position
from proofs_check.symbolic.program import Program
from proofs_check.symbolic.sequences import AnyLength, Local, Terms
from proofs_check.symbolic.terms import BITS, Value, choose, condition, every, known, same
from proofs_check.symbolic.unknown import Place, UnknownMachine, Window
from rasp.machines.machine import sep

# --- the library, and where the next tape looks -----------------------------------------------------------------------


def where_is_choice(program: Program) -> Iterator[Query]:
    c, x, y = (z3.BitVec(name, BITS) for name in ("condition", "x_if", "y_else"))
    out = program.call("where", Terms([c]), Terms([x]), Terms([y]))[0]
    wrong = z3.Not(condition(same(out, choose(c, x, y))))
    yield Query("every int64 triple", (wrong,), watch={"condition": c, "x_if": x, "y_else": y, "where": out})


@dataclass(frozen=True)
class NextTape:
    """The program's next tape of an unknown input of any length."""

    machine: UnknownMachine
    x: Local
    tape: Local

    @classmethod
    def of(cls, program: Program, name: str = "x", shift: int = 2, machine: UnknownMachine | None = None) -> NextTape:
        machine = machine or UnknownMachine(base=2**63 - 1)  # any alphabet
        x = AnyLength().sequence(name)
        return cls(machine, x, program.call("next_tape", x, shift, machine))

    def item(self, p: Value) -> Value:
        """The input at p; zero before the start."""
        return 0 if known(p) and int(p) < 0 else self.x.at(p)

    def window(self, p: Value) -> list[Value]:
        return [self.item(back(p, d)) for d in WINDOW]


WINDOW = (4, 3, 2, 1, 0)  # how far before its own position the next tape (of shift 2) looks: cells -2 to +2


def window_is_enough(program: Program) -> Iterator[Query]:
    x = NextTape.of(program, "x")
    y = NextTape.of(program, "y", machine=x.machine)
    for name, p, here in every_position(x.x.rasp, y.x.rasp):
        differ = z3.Not(condition(same(x.tape.at(p), y.tape.at(p))))
        agree = [same(a, b) for a, b in zip(x.window(p), y.window(p), strict=True)]
        shown = {"p": p, "x[p-4..p]": x.window(p), "y[p-4..p]": y.window(p), "next": [x.tape.at(p), y.tape.at(p)]}
        yield ask(x.machine, f"{name}: equal windows", here, every(agree), differ, watch=shown)
    for i, d in enumerate(WINDOW):
        others = every(agree[:i] + agree[i + 1 :])
        yield ask(x.machine, f"cell {2 - d:+d} matters", here, others, differ, watch=shown, expect="sat")


def start_is_padding(program: Program) -> Iterator[Query]:
    x = NextTape.of(program, "x")
    y = NextTape.of(program, "y", machine=x.machine)
    for p in range(START):
        later = p + START  # y is x after so many zeros
        zeros_first = every([same(a, b) for a, b in zip(x.window(p), y.window(later), strict=True)])
        a, b = x.tape.at(p), y.tape.at(later)
        wrong = z3.Not(condition(same(a, b)))
        shown = {"x[p-4..p]": x.window(p), "next tape": a, "after zeros": b}
        yield ask(x.machine, f"p={p}", zeros_first, wrong, watch=shown)


def third_is_second_delayed(program: Program) -> Iterator[Query]:
    late = NextTape.of(program, "x", 3)
    early = NextTape.of(program, "x", 2, late.machine)
    for name, p, here in every_position(late.x.rasp, early.x.rasp):
        a, b = late.tape.at(p), 0 if known(p) and p == 0 else early.tape.at(back(p, 1))
        wrong = z3.Not(condition(same(a, b)))
        shown = {"x[p-5..p-1]": early.window(back(p, 1)), "next_tape(x, 3)[p]": a, "next_tape(x, 2)[p-1]": b}
        yield ask(late.machine, name, here, wrong, watch=shown)


# --- one step ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneStep:
    """A place on a tape of any length, anywhere in an input, and what the program says stands there next."""

    window: Window
    out: Value

    @classmethod
    def of(cls, program: Program, place: Place) -> OneStep:
        window = Window(UnknownMachine(base=2**63 - 1), place)  # any alphabet
        here, rasp = position(), AnyLength()
        rasp.assume_at_least(here, START)  # nearer to the start of the input, `start_is_padding` says the same
        x = around(rasp, "x", here, window.cell)
        return cls(window, program.call("next_tape", x, 2, window.machine).at(here + 2))

    def query(self, wrong: z3.BoolRef) -> Query:
        shown = {
            "cells -2..2": [self.window.cell(d) for d in range(-2, 3)],
            "next tape": self.out,
            "true": self.window.after(),
        }
        return ask(self.window.machine, str(self.window.place), wrong, *self.window.assumed, watch=shown)


def next_tape_is_step(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        yield step.query(z3.Not(condition(same(step.out, step.window.after()))))


def next_tape_is_well_formed(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        right = step.window.right() if place.head is not None else True
        ways = {1: right, -1: z3.Not(condition(right))}
        wrong = [every([way, z3.Not(condition(_keeps_shape(step, place.moved(by))))]) for by, way in ways.items()]
        yield step.query(z3.Or(*wrong))


def _keeps_shape(step: OneStep, after: Place) -> Value:
    """The head is still on the tape, and the token is what stands in this place then."""
    return after.exists() and step.window.is_kind(step.out, after.kind(0))


def separator_is_only_zero(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        yield step.query(condition(same(step.out, sep)) != (place.end == 0))
