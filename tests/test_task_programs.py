"""Addition, multiplication and SGD in RASP-L: texts, contracts, engines, and bad problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from experiments.tasks import Addition, Multiplication, Sgd
from experiments.tasks.sgd.regression import rounded
from experiments.tasks.sgd.writing import Writing
from proofs_check.tasks import (
    actual_first_wrong,
    all_problems,
    check_contract,
    predicted_first_wrong,
    predictor,
    sample_problems,
    satisfies_contract,
)
from rasp import run, simplify, trace
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.programs import (
    InvalidProblem,
    next_token_addition,
    next_token_multiplication,
    next_token_sgd,
    next_tokens_addition,
    next_tokens_multiplication,
    next_tokens_sgd,
    task_program,
)
from rasp.programs.problems import Product, Regression, Sum, prompt_tokens, text_tokens, whole_text
from rasp.programs.vocabulary import ADDITION, MULTIPLICATION, NUMBERS, SGD

TASKS = ("addition", "multiplication1", "multiplication3", "sgd")


@lru_cache
def on_graph(task: str, n: int) -> Callable[[np.ndarray], np.ndarray]:
    return predictor(task, n, engine="graph")


# --- texts ------------------------------------------------------------------------------------------------------------


def test_the_papers_examples() -> None:
    assert whole_text(Sum("4324", "139")) == "$4324+139|432e+13j(1,3)|43c+1d(0,63)|4d+b(0,463)|e+^(0,4463)|4463."
    assert whole_text(Product("4324", "135")) == (
        "$4324*135|432e*135(0540~054,0)|43c*135(0270~032,40)|4d*135(0405~043,740)|e*135(0540~058,3740)|"
        "^*135(0000~005,83740)|^*135(0000~000,583740)|583740."
    )


def test_one_vocabulary_for_programs_and_training() -> None:
    assert Addition().vocabulary == ADDITION.names
    assert Multiplication().vocabulary == MULTIPLICATION.names
    assert Sgd().vocabulary == SGD.names


def test_texts_are_those_of_the_training_data() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = ("".join(map(str, rng.integers(10, size=rng.integers(1, 9)))) for _ in range(2))
        assert Addition().problem(a, b).row(0).tolist() == text_tokens(Sum(a, b)).tolist()
        for digits in (1, 2, 3):
            factor = str(rng.integers(10**digits)).zfill(digits)
            expected = Multiplication(digits=digits).problem(a, factor).row(0).tolist()
            assert expected == text_tokens(Product(a, factor)).tolist()
    for size in range(1, 40):
        examples = rng.integers(NUMBERS, size=(size, 3))
        x, y = np.split((examples - 100) / 100, [2], axis=1)
        written = Sgd().lay_out_runs(x[None], y.T, np.array([size]), Writing(kept=rounded))
        assert written.row(0).tolist() == text_tokens(Regression(tuple(map(tuple, examples.tolist())))).tolist()


# --- contracts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("n", "kinds"), [(1, 10), (1, 3), (2, 3), (4, 2), (4, 10)])
def test_the_first_wrong_token_is_the_predicted_one(task: str, n: int, kinds: int) -> None:
    problems = sample_problems(task, 30, longest=7 if n < 4 else 12, kinds=kinds, seed=n)
    report = check_contract(problems, n, on_graph(task, n))
    assert not report.exceptions
    assert report.held == report.right
    if (n, kinds) != (4, 10):
        assert 0 < report.right < report.problems  # both sides were tested


def test_all_sums_of_one_and_two_digits() -> None:
    report = check_contract(all_problems("addition", 2), 1, predictor("addition", 1))
    assert (report.problems, report.exceptions) == (110**2, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "problems"), [("addition", 1110**2), ("multiplication1", 11100), ("multiplication3", 1110000)]
)
@pytest.mark.parametrize("n", [1, 2])
def test_all_problems_up_to_three_digits(task: str, problems: int, n: int) -> None:
    report = check_contract(all_problems(task, 3), n, predictor(task, n))
    assert (report.problems, report.exceptions) == (problems, [])


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_hundred_thousand_problems(task: str) -> None:
    for n, longest, kinds in ((1, 8, 10), (2, 12, 10), (3, 15, 6), (4, 20, 10)):
        report = check_contract(sample_problems(task, 25_000, longest, kinds, seed=n), n, predictor(task, n))
        assert (report.problems, report.exceptions) == (25_000, [])


def test_all_products_of_up_to_two_digits_with_one() -> None:
    report = check_contract(all_problems("multiplication1", 2), 1, predictor("multiplication1", 1))
    assert (report.problems, report.exceptions) == (1100, [])


def test_a_long_sum_and_a_long_product_are_right() -> None:
    rng = np.random.default_rng(0)
    left, right = ("".join(map(str, rng.integers(10, size=30))) for _ in range(2))
    for problem, task in ((Sum(left, right), "addition"), (Product(left, "987"), "multiplication3")):
        assert satisfies_contract(problem, 4)
        assert actual_first_wrong(problem, on_graph(task, 4)) is None


def test_where_a_repeat_goes_wrong() -> None:
    assert predicted_first_wrong(Sum("1212", "5"), 1) is None  # only the last digit repeats, and it is not looked up
    problem = Sum("12125", "5")  # 1 2 1 2 f: after `1 2` comes 1 and then f, and f is larger
    assert predicted_first_wrong(problem, 1) == len("$12125+5|12") and not satisfies_contract(problem, 1)
    assert actual_first_wrong(problem, on_graph("addition", 1)) == len("$12125+5|12")
    assert predicted_first_wrong(problem, 2) is None and satisfies_contract(problem, 2)


def test_generation_writes_the_whole_text_token_by_token() -> None:
    for problem, step in (
        (Sum("8", "7"), next_token_addition),
        (Product("8", "7"), lambda x: next_token_multiplication(x, 1)),
        (Regression(((120, 80, 90),)), next_token_sgd),
    ):
        expected, x = text_tokens(problem).tolist(), prompt_tokens(problem).tolist()
        while len(x) < len(expected):
            x.append(step(x))
        assert x == expected


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", ["reference", "graph", "stream"])
def test_engines_agree_on_soup_and_cut_texts(task: str, engine: str) -> None:
    rng = np.random.default_rng(5)
    known = task_program(task)
    text = text_tokens(next(sample_problems(task, 1, longest=3, kinds=10, seed=5)))
    cut = text[rng.integers(len(text) // 2) :][:60]
    damaged = np.where(rng.random(len(text)) < 0.1, rng.integers(len(known.vocabulary), size=len(text)), text)[:60]
    for x in (rng.integers(len(known.vocabulary), size=40), cut, damaged):
        program = lambda s: known.program(s, 2)  # noqa: E731
        assert run(program, x, engine=engine).tolist() == run(program, x, engine="eager").tolist()


@pytest.mark.parametrize("task", TASKS)
def test_stream_and_jit_agree_on_many_texts(task: str) -> None:
    rng = np.random.default_rng(6)
    known = task_program(task)
    graph = simplify(trace(lambda x: known.program(x, 1)))
    stream, kernel = Stream(graph), Kernel(graph)
    for problem in sample_problems(task, 40, longest=6, kinds=4, seed=6):
        text = text_tokens(problem)
        noise = rng.integers(len(known.vocabulary), size=len(text))
        for x in (noise, text[rng.integers(len(text) // 2) :], np.where(rng.random(len(text)) < 0.05, noise, text)):
            stream.reset()
            assert stream.run(x).tolist() == kernel.predict(x).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_engines_agree_on_ten_thousand_texts(task: str) -> None:
    """Soups, cut texts and damaged ones; the reference interpreter, which is slow, on the first of them."""
    rng = np.random.default_rng(7)
    known = task_program(task)
    program = lambda x: known.program(x, 2)  # noqa: E731
    graph = simplify(trace(program))
    stream, kernel = Stream(graph), Kernel(graph)
    for number, problem in enumerate(sample_problems(task, 10_000, longest=4, kinds=4, seed=7)):
        text = text_tokens(problem)
        noise = rng.integers(len(known.vocabulary), size=len(text))
        start = int(rng.integers(len(text) // 2))
        damaged = np.where(rng.random(len(text)) < 0.05, noise, text)
        x = (noise, text[start:], damaged)[number % 3][:60]
        stream.reset()
        expected = kernel.predict(x).tolist()
        assert stream.run(x).tolist() == expected
        assert graph.run(x).tolist() == expected
        if number % 10 == 0:
            assert run(program, x, engine="eager").tolist() == expected
        if number < 100:
            assert run(program, x[:40], engine="reference").tolist() == expected[:40]


# --- bad problems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "text", "why"), [
    ("addition", "12+", "'12\\+' is not a problem: write two numbers with \\+ between them, as in 4324\\+139"),
    ("addition", "12", "is not a problem"),
    ("addition", "1+2+3", "is not a problem"),
    ("addition", "12+3x", "the second number is '3x': expected digits 0 to 9 only"),
    ("addition", "-1+2", "the first number is '-1'"),
    ("addition", "1" * 10**6 + "+2", "the first number has 1000000 digits: at most 10000"),
    ("multiplication3", "12*", "is not a problem"),
    ("multiplication3", "12*34", "the factor 34 has 2 digits: multiplication3 takes 3"),
    ("multiplication1", "twelve*3", "the first number is 'twelve'"),
    ("multiplication9", "1*" + "1" * 10, "the second number has 10 digits: at most 9"),
    ("sgd", "", "0 examples were given"),
    ("sgd", "d a1 a2 a3", "is no example: write `d x1 x2 , y`"),
    ("sgd", "d a1 a2 , a200", "'a200' is not a number: expected a0 to a199"),
])  # fmt: skip
def test_bad_problems_are_refused(task: str, text: str, why: str) -> None:
    with pytest.raises(InvalidProblem, match=why):
        task_program(task).read(text)


def test_examples_are_read() -> None:
    for task in TASKS:
        problem = task_program(task).read(task_program(task).example)
        assert actual_first_wrong(problem, on_graph(task, 4)) is None
    assert task_program("sgd").read("$ d a1 a2 , a3 |") == Regression(((1, 2, 3),))


@pytest.mark.parametrize(("call", "why"), [
    (lambda: task_program("division"), "'division' is not a task; choose addition, multiplication1 to"),
    (lambda: next_tokens_addition([1, 28]), "token 28 at position 1 is none of this task's 0..27"),
    (lambda: next_tokens_addition([[1], [2]]), "flat sequence"),
    (lambda: next_tokens_addition([1.5]), "flat sequence of whole numbers"),
    (lambda: next_tokens_addition([1], n=0), "n must be a whole number from 1 on, not 0"),
    (lambda: next_tokens_multiplication([1], digits=0), "digits must be a whole number from 1 on, not 0"),
    (lambda: next_tokens_sgd([207]), "token 207"),
    (lambda: next_token_addition([]), "the text is empty"),
    (lambda: Regression(((1, 2, 300),)), "is no example: expected three number tokens"),
    (lambda: ADDITION.token("x"), "'x' is not a token of this task"),
])  # fmt: skip
def test_bad_arguments_are_refused(call: Callable[[], Any], why: str) -> None:
    with pytest.raises(InvalidProblem, match=why):
        call()
