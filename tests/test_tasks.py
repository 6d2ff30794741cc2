"""The paper's tasks: its printed examples character by character, and every sample against plain arithmetic."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from experiments.tasks import TASKS, Addition, Multiplication, Samples, Sgd, Task, TuringPaper, TuringRasp, make_task
from experiments.tasks.base import UnknownOption
from experiments.tasks.digits import FEW
from experiments.tasks.multiplication import approach_round
from experiments.tasks.sgd.practice import uneven_ends
from experiments.tasks.sgd.regression import draw_problems, explained, quantised, rounded
from experiments.tasks.sgd.writing import Writing
from experiments.tasks.symbols import PERIODS, cycle, repeat
from experiments.training.packing import Packing
from rasp import TuringMachine
from rasp.formats.json import to_json

ADDITION = "$4324+139|432e+13j(1,3)|43c+1d(0,63)|4d+b(0,463)|e+^(0,4463)|4463."
MULTIPLICATION = (
    "$4324*135|432e*135(0540~054,0)|43c*135(0270~032,40)|4d*135(0405~043,740)|"
    "e*135(0540~058,3740)|^*135(0000~005,83740)|^*135(0000~000,583740)|583740."
)
SGD = (
    "$ d a179 a166 , a76 d a80 a145 , a102 d a77 a139 , a103 | "
    "d a179 a166 , a76 d a80 a145 , a102 d a77 a139 , a103 yp a100 g a101 a99 cur a99 a101 | "
    "d a179 a166 , a76 d a80 a145 , a102 yp a101 g a100 a99 cur a99 a102 | "
    "d a179 a166 , a76 yp a100 g a120 a117 cur a79 a85 |"
)
EVERY_TASK: list[dict[str, Any]] = [
    {"name": name, "scratchpad": scratchpad, **extra}
    for name, extra in [
        ("turing_rasp", {}),
        ("turing_rasp", {"steps": 3}),
        ("turing_paper", {}),
        ("addition", {}),
        ("multiplication", {"digits": 1}),
        ("multiplication", {"digits": 3}),
        ("sgd", {}),
    ]
    for scratchpad in (True, False)
]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- the paper's examples


def test_the_printed_addition() -> None:
    task = Addition()
    samples = task.problem("4324", "139")
    assert task.text(samples.row(0)) == ADDITION
    assert task.text(samples.prompt(0)) == "$4324+139|"


def test_the_printed_multiplication() -> None:
    task = Multiplication(digits=3)
    assert task.text(task.problem("4324", "135").row(0)) == MULTIPLICATION


def test_the_printed_sgd_follows_from_real_data_rounded_for_print() -> None:
    task = Sgd()
    samples = task.problem([[0.794, 0.664], [-0.2, 0.45], [-0.23, 0.39]], [-0.2449, 0.02, 0.03])
    assert task.text(samples.row(0)) == SGD


def test_the_printed_sgd_does_not_follow_from_its_own_tokens() -> None:
    task = Sgd()
    samples = task.problem([[0.79, 0.66], [-0.2, 0.45], [-0.23, 0.39]], [-0.24, 0.02, 0.03])
    said, printed = task.text(samples.row(0)), SGD
    assert said != printed
    assert said.rsplit("|", 2)[0] == printed.rsplit("|", 2)[0]  # only the last line differs


@pytest.mark.parametrize("text", [ADDITION, MULTIPLICATION, SGD])
def test_reading_undoes_printing(text: str) -> None:
    task: Task = Sgd() if text is SGD else Addition() if text is ADDITION else Multiplication(digits=3)
    assert task.text(task.read(text)) == text


# --- where the examples do not reach


def test_a_last_carry_has_a_line_of_its_own() -> None:
    task = Addition()
    assert task.text(task.problem("95", "7").row(0)) == "$95+7|9f+h(1,2)|j+^(1,02)|^+^(0,102)|102."


def test_a_carry_of_three_digits_is_flushed() -> None:
    task = Multiplication(digits=3)
    assert task.text(task.problem("999", "999").row(0)).endswith("^*999(0000~000,998001)|998001.")


# --- against plain arithmetic


@pytest.mark.parametrize("scratchpad", [True, False])
def test_sums_are_right(scratchpad: bool) -> None:
    task = Addition(scratchpad=scratchpad)
    samples = task.sample(rng(), task.draw_lengths(rng(1), 200, 1, 9))
    for i in range(len(samples)):
        left, right = task.text(samples.prompt(i)).strip("$|").split("+")
        answer = task.text(samples.answer(i))
        assert int(answer.rstrip(".").split("|")[-1]) == int(left) + int(right)
        assert ("|" in answer) == scratchpad


@pytest.mark.parametrize("digits", [1, 3])
def test_products_are_right_line_by_line(digits: int) -> None:
    task = Multiplication(digits=digits)
    samples = task.sample(rng(), task.draw_lengths(rng(1), 200, 1, 9))
    for i in range(len(samples)):
        left, right = task.text(samples.prompt(i)).strip("$|").split("*")
        *lines, total = task.text(samples.answer(i)).rstrip(".").split("|")
        assert int(total) == int(left) * int(right)
        for place, line in enumerate(lines):
            inside = line[line.index("(") + 1 : -1]
            carry, so_far = inside.split("~")[1].split(",")
            taken = int(left[max(0, len(left) - place - 1) :])
            assert int(carry + so_far) == taken * int(right)


def test_sums_have_the_lengths_asked_for() -> None:
    task = Addition()
    samples = task.sample(rng(), (17, 3), count=5)
    for i in range(5):
        assert [len(part) for part in task.text(samples.prompt(i)).strip("$|").split("+")] == [17, 3]


@pytest.mark.parametrize("seed", range(5))
def test_rasp_samples_are_traces_of_the_machine(seed: int) -> None:
    machine = TuringMachine.random(symbols=4, states=3, seed=seed)
    task = TuringRasp(machine=machine, steps=3)
    samples = task.sample(rng(seed), rng(seed).integers(1, 9, size=50))
    for i in range(len(samples)):
        assert samples.row(i).tolist() == machine.trace(samples.prompt(i)[:-1], 3).tolist()


def test_rasp_without_scratchpad_jumps_to_the_last_tape() -> None:
    task = TuringRasp(steps=4, scratchpad=False)
    samples = task.sample(rng(), [5, 8])
    for i in range(2):
        trace = task.machine.trace(samples.prompt(i)[:-1], 4)
        assert samples.answer(i).tolist() == trace[-len(samples.prompt(i)) :].tolist()


def test_heads_stand_on_every_cell_and_both_ends() -> None:
    task = TuringRasp()
    samples = task.sample(rng(), 3, count=300)
    heads = {int(np.flatnonzero(task.machine.is_state(samples.prompt(i)))[0]) for i in range(300)}
    assert heads == {1, 2, 3, 4, 5}


def test_the_papers_format_emits_the_transition_first() -> None:
    machine = TuringMachine.random(symbols=15, states=5, seed=0)
    task = TuringPaper(machine=machine)
    write, direction, target = machine.transitions["q2", "a5"]
    to_b = {"L": f"b2 {write} a7", "R": f"a2 {write} b7"}[direction]
    text = task.text(task.problem([1, 4, 6], 1, 2).row(0))
    assert text == f"$ ( q2 ) a2 b5 a7 | ( {target} {write} {direction} ) {to_b} |"


@pytest.mark.parametrize("head", [0, 2])
def test_the_papers_head_stays_on_the_tape(head: int) -> None:
    task = TuringPaper()
    for state in range(5):
        text = task.text(task.problem([3, 3, 3], head, state).row(0))
        assert all(line.count("b") == 1 for line in text.removesuffix(" |").split("|"))


def test_sgd_converges_to_the_true_weights_on_long_data() -> None:
    task = Sgd(scratchpad=False)
    x = rng().uniform(-1, 1, size=(400, 2))
    samples = task.problem(x, x @ np.array([0.3, -0.4]))
    assert task.text(samples.answer(0)) == "cur a130 a60 |"


def test_sgd_practises_on_labels_that_no_weights_explain() -> None:
    task, lengths = Sgd(), np.full((400, 1), 6)

    def explained(samples: Samples) -> float:
        """The share of problems whose labels are a linear function of their inputs, up to rounding."""
        numbers = np.array([samples.prompt(i)[1:-1].reshape(6, 5) for i in range(len(samples))]) / 100 - 1
        x, y = numbers[:, :, 1:3], numbers[:, :, 4]
        misses = [np.linalg.lstsq(a, b, rcond=None)[1].max(initial=0) for a, b in zip(x, y, strict=True)]
        return float(np.mean(np.array(misses) < 1e-3))

    assert explained(task.sample(rng(), 6, count=400)) == 1  # tests always are
    assert 0.1 < explained(task.practice(random_labels=0.8).draw(rng(), lengths, 500)) < 0.3
    with pytest.raises(ValueError, match=r"random_labels is 1\.2"):
        task.practice(random_labels=1.2)


def test_sgd_practises_on_examples_that_resemble_each_other_later_on() -> None:
    plain, lengths = Sgd().practice(random_labels=0.5), np.full((4000, 1), 6)
    similar = Sgd().practice(random_labels=0.5, similar=[[0, 0], [100, 0], [100, 0.5]])

    def ranges(samples: Samples) -> np.ndarray:
        """(problems, 3): of each problem, the difference of the largest and the smallest x1, x2 and y."""
        numbers = [samples.prompt(i)[1:-1].reshape(6, 5)[:, [1, 2, 4]] for i in range(len(samples))]
        return np.ptp(np.array(numbers), axis=1)

    def narrow(step: int) -> float:
        """The share of problems in which both inputs are within what a problem of similar ones has at the most."""
        return float((ranges(similar.draw(rng(), lengths, step))[:, :2] <= 81).all(axis=1).mean())

    assert 0.47 < narrow(100) < 0.55 and narrow(99) < 0.05
    later = ranges(similar.draw(rng(), lengths, 100))
    assert (later[(later[:, :2] <= 20).all(axis=1)][:, 2] <= 24).all()  # then labels are alike, too
    assert np.array_equal(*(practice.draw(rng(), lengths, 0).tokens for practice in (plain, similar)))
    with pytest.raises(ValueError, match=r"similar is -0\.5"):
        Sgd().practice(similar=-0.5)


def test_some_numbers_of_similar_examples_tell_examples_apart_and_some_do_not() -> None:
    lengths, size = np.full((4000, 1), 8), 8

    def kinds(differing: float) -> np.ndarray:
        """Of such problems, how many of x1, x2 and y are narrow: the shares of none, one, two and three."""
        practice = Sgd().practice(random_labels=1.0, similar=1.0, differing=differing)
        samples = practice.draw(rng(), lengths, 0)
        numbers = np.array([samples.prompt(i)[1:-1].reshape(size, 5)[:, [1, 2, 4]] for i in range(len(samples))])
        narrow = np.ptp(numbers, axis=1) <= (81, 81, 49)  # four tenths of all inputs, and of labels by chance
        return np.bincount(narrow.sum(axis=1), minlength=4) / len(samples)

    assert kinds(0.0)[3] == 1
    shares = np.array([0.4**3, 3 * 0.6 * 0.4**2, 3 * 0.6**2 * 0.4, 0.6**3])  # some of the wide are narrow by chance
    assert np.allclose(kinds(0.4), shares, atol=0.03)
    with pytest.raises(ValueError, match="differing is 2"):
        Sgd().practice(differing=2)


def answered(samples: Samples) -> np.ndarray:
    """For every token, whether it belongs to an answer."""
    sizes = np.diff(samples.starts)
    within = np.arange(len(samples.tokens)) - np.repeat(samples.starts[:-1], sizes)
    return within >= np.repeat(samples.prompts, sizes)


def lines_of(task: Sgd, samples: Samples, index: int) -> list[tuple[list[int], np.ndarray]]:
    """The tokens of every line of a sample, and which of them are asked for."""
    row, asked = samples.row(index).tolist(), samples.weights[samples.starts[index] : samples.starts[index + 1]] > 0
    ends = [0, *(i + 1 for i, token in enumerate(row) if token == task.token("|"))]
    return [(row[a:b], asked[a:b]) for a, b in itertools.pairwise(ends)]


def test_truncated_lines_begin_later_and_only_what_they_tell_is_asked_for() -> None:
    task, size = Sgd(), 6
    practice = task.practice(truncated=[[0, 0], [40, 0], [40, 0.7]])
    samples, seen = practice.draw(rng(), np.full((60, 1), size), 40), 0
    for i in range(len(samples)):
        whole = [tuple(e) for e in samples.prompt(i)[1:-1].reshape(size, 5).tolist()]
        before = whole
        for t, (line, asked) in enumerate(lines_of(task, samples, i)[1:]):
            end = line.index(task.token("yp"))
            examples = [tuple(line[at : at + 5]) for at in range(0, end, 5)]
            assert examples == whole[size - t - len(examples) : size - t] and len(examples) >= min(2, size - t)
            assert asked[end + 1 :].all()
            meeting = next(k for k, example in enumerate(examples) if example in before)
            assert not asked[: 5 * meeting].any() and asked[5 * meeting + 3 : end].all()
            begin_alike = len(examples) == size - t and before[0] == whole[0]
            assert asked[5 * meeting + 1 : 5 * meeting + 3].tolist() == [begin_alike] * 2
            seen += meeting > 0 or not begin_alike
            before = examples
    assert seen > 100
    early = [drawn.draw(rng(), np.full((9, 1), size), 39) for drawn in (task.practice(), practice)]
    assert np.array_equal(early[0].tokens, early[1].tokens) and np.array_equal(early[1].weights > 0, answered(early[1]))
    tests = task.sample(rng(), 6, count=50)
    assert np.array_equal(tests.weights > 0, answered(tests))


def test_an_end_is_as_likely_after_any_number_of_examples() -> None:
    """Of what is asked after the k-th example; without the masked ends it is the likelier, the larger k."""
    examples = Sgd().draw_lengths(rng(), 40_000, 1, 10, decay=0.8) - np.arange(10)
    examples = np.maximum(examples, 0)
    masked = uneven_ends(rng(), examples)
    going_on = np.array([(examples > k).sum() for k in range(1, 10)])
    ends, asked = (np.array([((examples == k) & shown).sum() for k in range(1, 10)]) for shown in (True, ~masked))
    assert (np.diff(ends / (ends + going_on)) > 0).all() and ends[-1] > 2 * going_on[-1]
    assert np.ptp(asked / (asked + going_on)) < 0.02
    assert masked[examples == 10].all()  # no line is longer, so the end would be certain
    assert not uneven_ends(rng(), np.ones((5, 1), dtype=np.int64)).any()


def test_sgd_practises_on_numbers_that_follow_from_the_text() -> None:
    """With `from_text`, whoever works from the tokens gets exactly the next tokens; without, only about."""
    lengths = np.full((200, 1), 9)

    def off(**options: Any) -> float:
        """The share of numbers that differ from those worked out of the tokens before them."""
        task = Sgd()
        samples, misses = task.practice(random_labels=0.8, **options).draw(rng(), lengths, 0), []
        for i in range(len(samples)):
            weights = np.zeros(2)
            for line in np.split(samples.answer(i), np.flatnonzero(samples.answer(i) == task.token("|"))[:-1] + 1):
                x1, x2, y, yp, g1, g2, w1, w2 = (line[[-13, -12, -10, -8, -6, -5, -3, -2]] - 100) / 100
                x, said = np.array([x1, x2]), np.array([yp, g1, g2, w1, w2])
                step = (yp - y) * x
                expected = np.array([weights @ x, *step, *(weights - [g1, g2])])
                misses.append(quantised(expected) != quantised(said))
                weights = np.array([w1, w2])
        return float(np.mean(misses))

    assert off(from_text=True) < 1e-3 and off() > 0.1


@pytest.mark.parametrize("examples", [8, 30])
def test_who_works_from_the_text_without_error_solves_the_tests_of_sgd(examples: int) -> None:
    task, sizes = Sgd(), np.full(400, examples)
    x, truth = draw_problems(rng(), sizes)
    y = explained(x, truth)
    read = task.lay_out_runs(x, y, sizes, Writing(rounded))
    right = task.check(task.lay_out_runs(x, y, sizes), [read.answer(i) for i in range(len(read))])
    assert right.mean() > 0.99


def test_what_sgd_works_out_has_soft_labels_and_nothing_else() -> None:
    task = Sgd()
    samples = task.practice(soft_labels=1.0).draw(rng(), np.full((1, 1), 3), 0)
    soft = samples.labels >= len(task.vocabulary)
    assert np.array_equal(samples.labels - soft * len(task.vocabulary), samples.tokens)
    text = [
        f"[{name}]" if marked else name for name, marked in zip(task.text(samples.row(0)).split(), soft, strict=True)
    ]
    lines = " ".join(text).split(" |")[1:-1]
    pattern = r"( d a\d+ a\d+ , a\d+)+ yp \[a\d+\] g( \[a\d+\]){2} cur( \[a\d+\]){2}"
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert len(lines) == 3 and "[" not in " ".join(text).split(" |")[0]
    for sharp in (task.practice().draw(rng(), np.full((1, 1), 3), 0), Addition().sample(rng(), [3])):
        assert np.array_equal(sharp.labels, sharp.tokens)


def test_soft_labels_are_bells_around_numbers_and_other_labels_are_tokens() -> None:
    task = Sgd()
    wanted, size = task.practice(soft_labels=1.0).soft_targets, len(task.vocabulary)
    assert wanted is not None and wanted.shape == (size + 200, size) and np.allclose(wanted.sum(axis=1), 1)
    assert np.array_equal(wanted[:size], np.eye(size))
    bells = wanted[size:]
    assert np.allclose(bells[100, 99:102] / bells[100, 100], np.exp([-0.5, 0, -0.5]))
    assert not bells[:, 200:].any() and bells[0].argmax() == 0  # no bell leaks into other tokens
    assert task.practice().soft_targets is None
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match="soft_labels is"):
            task.practice(soft_labels=wrong)


def test_copied_tokens_may_count_more_from_some_step_on() -> None:
    task = Sgd()
    practice, lengths = task.practice(copy_weight=[[0, 1], [5, 1], [5, 3]], soft_labels=1.0), np.full((4, 1), 3)
    for step, weight in ((4, 1.0), (5, 3.0), (99, 3.0)):
        samples = practice.draw(rng(), lengths, step)
        computed, asked = samples.labels >= len(task.vocabulary), answered(samples)
        assert (samples.weights[computed] == 1).all() and (samples.weights[asked & ~computed] == weight).all()
        assert not samples.weights[~asked].any()
    for wrong in (0.0, [[0, 1], [5, -1]], np.nan):
        with pytest.raises(ValueError, match="copy_weight is|no schedule"):
            task.practice(copy_weight=wrong)


def test_lengths_decay_geometrically() -> None:
    drawn = Sgd().draw_lengths(rng(), 40_000, 2, 6, decay=0.5)
    shares = np.bincount(drawn[:, 0], minlength=7)[2:] / 40_000
    assert len(shares) == 5 and np.allclose(shares, np.array([16, 8, 4, 2, 1]) / 31, atol=0.01)
    even = np.bincount(Sgd().draw_lengths(rng(), 40_000, 2, 6)[:, 0])[2:] / 40_000
    assert np.allclose(even, 0.2, atol=0.01)


def test_sgd_forgives_two_hundredths_and_no_more() -> None:
    task = Sgd()
    samples = task.sample(rng(), [4])
    right = samples.answer(0).copy()
    for off, accepted in ((0, True), (2, True), (3, False)):
        said = right.copy()
        said[-3] = quantised(samples.truth[0])[0] + off
        assert task.check(samples, [said]).tolist() == [accepted]
    assert not task.check(samples, [right[:-1]])[0]
    assert not task.check(samples, [np.where(right == right[-3], task.token("d"), right)])[0]


# --- every task


@pytest.mark.parametrize("description", EVERY_TASK, ids=lambda d: "-".join(map(str, d.values())))
def test_samples_are_well_formed(description: dict[str, Any]) -> None:
    task = make_task(description)
    samples = task.sample(rng(), task.draw_lengths(rng(1), 64, 1, 7))
    again = task.sample(rng(), task.draw_lengths(rng(1), 64, 1, 7))
    assert np.array_equal(samples.tokens, again.tokens)
    assert samples.tokens.min() >= 0 and samples.tokens.max() < len(task.vocabulary)
    assert len(set(task.vocabulary)) == len(task.vocabulary)
    assert task.check(samples, [samples.answer(i) for i in range(64)]).all()
    wrong = [(samples.answer(i) + 1) % len(task.vocabulary) for i in range(64)]
    assert not task.check(samples, wrong).any()
    separator = task.token(task.separator)
    assert all(samples.prompt(i)[-1] == separator for i in range(64))
    assert np.array_equal(samples.weights, answered(samples).astype(float))
    assert samples.weights.sum() == sum(len(samples.answer(i)) for i in range(64))


@pytest.mark.parametrize("description", EVERY_TASK, ids=lambda d: "-".join(map(str, d.values())))
def test_packed_rows_are_cut_from_one_stream(description: dict[str, Any]) -> None:
    task = make_task(description)
    packing = Packing(task.practice(), (1, 6), rows=5, context=90, seed=3)
    batch = packing.batch(7)
    assert np.array_equal(batch.inputs, packing.batch(7).inputs)
    assert not np.array_equal(batch.inputs, packing.batch(8).inputs)
    assert not np.array_equal(batch.inputs, packing.batch(7, process=1).inputs)
    assert 0.1 < (batch.weights > 0).mean() < 1
    assert (batch.labels[:, :-1] == batch.inputs[:, 1:]).all()


@pytest.mark.parametrize("description", EVERY_TASK, ids=lambda d: "-".join(map(str, d.values())))
def test_rows_begin_with_a_problem_as_often_as_is_asked_for(description: dict[str, Any]) -> None:
    practice = make_task(description).practice()
    first = practice.draw(rng(), np.full((1, practice.task.operands), 3), 0).tokens[0]  # of every problem, and no more

    def share(whole_rows: float) -> float:
        packing = Packing(practice, (1, 6), rows=200, context=90, seed=3, whole_rows=whole_rows)
        return float((packing.batch(7).inputs[:, 0] == first).mean())

    assert share(1.0) == 1 and 0.35 < share(0.5) < 0.8
    whole = Packing(practice, (1, 6), rows=5, context=90, seed=3, whole_rows=1.0).batch(7)
    assert (whole.labels[:, :-1] == whole.inputs[:, 1:]).all() and 0.1 < (whole.weights > 0).mean() < 1


@pytest.mark.parametrize("name", ["turing_rasp", "turing_paper", "addition", "multiplication"])
def test_repetitive_problems_come_with_training_and_use_few_symbols(name: str) -> None:
    """At the end of training all of them when the share is 1; at its beginning, and in tests, none."""
    task = make_task({"name": name})
    practice, lengths = task.practice(repetitive=[[0, 0], [100, 1]]), np.full((300, task.operands), 40)

    def variety(step: int | None) -> np.ndarray:
        drawn = task.generate(rng(), lengths) if step is None else practice.draw(rng(), lengths, step)
        return np.array([len(set(drawn.prompt(i).tolist())) for i in range(len(drawn))])

    assert variety(100).mean() < variety(None).mean() - 2
    assert abs(variety(0).mean() - variety(None).mean()) < 0.5
    assert variety(0).mean() > variety(50).mean() > variety(100).mean()


def test_a_recipe_says_how_few_symbols_a_repetitive_problem_may_have() -> None:
    task = TuringRasp()
    drawn = task.practice(repetitive=1.0, fewest=2).draw(rng(), np.full((500, 1), 60), 0)
    symbols = [len(set(drawn.prompt(i).tolist()) & set(task.machine.symbol_tokens)) for i in range(len(drawn))]
    assert set(symbols) == set(range(2, task.few.stop))
    for wrong in (0, 11):
        with pytest.raises(ValueError, match=f"fewest is {wrong}; a repetitive problem has 1 to 10 different symbols"):
            task.practice(fewest=wrong)


@pytest.mark.parametrize("name", ["turing_rasp", "turing_paper", "addition", "multiplication"])
def test_repeated_groups_come_with_training(name: str) -> None:
    """When the share is 1, every problem has at the end a group of at least 3 neighbours twice, except where the head
    of a machine or the plus of a sum stands within it."""
    task = make_task({"name": name})
    practice, lengths = task.practice(repeated=[[0, 0], [100, 1]]), np.full((200, task.operands), 14)

    def share(step: int) -> float:
        drawn = practice.draw(rng(), lengths, step)
        return float(np.mean([has_a_group_twice(drawn.prompt(i)) for i in range(len(drawn))]))

    assert share(0) < 0.2 < share(50) < share(100) - 0.1
    assert share(100) > {"addition": 0.9, "multiplication": 0.99}.get(name, 0.6)


def test_what_one_summand_repeats_may_stand_in_the_other() -> None:
    task, size = make_task({"name": "addition"}), 12
    practice = task.practice(repetitive=1.0, repeated=1.0)
    drawn = practice.draw(rng(), np.array([[size, size]] * 200 + [[3, size]] * 200), 0)
    summands = [task.text(drawn.prompt(i)).strip("$|").split("+") for i in range(len(drawn))]
    assert {(len(a), len(b)) for a, b in summands} == {(size, size), (3, size)}
    assert all(len(set(a + b)) <= max(FEW) for a, b in summands)
    across = [any(a[i : i + 3] in b for i in range(len(a) - 2)) for a, b in summands[:200]]
    assert np.mean(across) > 0.5


def has_a_group_twice(prompt: np.ndarray, size: int = 3) -> bool:
    grams = [tuple(prompt[i : i + size]) for i in range(len(prompt) - size + 1)]
    return any(gram in grams[i + size :] for i, gram in enumerate(grams))


def test_a_group_is_repeated_as_a_whole_and_only_where_there_is_room() -> None:
    symbols = np.arange(40).reshape(2, 20).repeat(100, axis=0)
    lengths, group = np.full(200, 11), np.resize([0, 3, 5, 6], 200)
    changed = repeat(rng(), symbols, lengths, group)
    for before, after, size in zip(symbols, changed, group, strict=True):
        places = np.flatnonzero(before != after)
        assert len(places) == (size if size < 6 else 0)
        if len(places):
            source = int(np.flatnonzero(before == after[places[0]])[0])
            assert places[-1] == places[0] + size - 1 < 11 and source + size <= places[0]
            assert np.array_equal(after[places], before[source : source + size])


def test_a_group_stands_again_at_once_and_only_where_there_is_room() -> None:
    symbols = np.arange(40).reshape(2, 20).repeat(200, axis=0)
    lengths, period = np.resize([5, 12], 400), np.resize([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], 400)
    changed = cycle(rng(), symbols, lengths, period)
    seen = set()
    for before, after, back, length in zip(symbols, changed, period, lengths, strict=True):
        places = np.flatnonzero(before != after)
        seen.add((length, back, len(places)))
        if len(places):
            assert places[-1] == places[0] + len(places) - 1 < length
            assert np.array_equal(after[places], after[places - back])
    roomy = {(12, back, more) for back in (1, 2, 3, 4) for more in (3, 4, 5, 6)} | {(12, 0, 0)}
    cramped = {(5, 1, 3), (5, 1, 4), (5, 2, 3)} | {(5, back, 0) for back in range(5)}
    assert seen == roomy | cramped


def test_periodic_stretches_come_with_training() -> None:
    task = make_task({"name": "addition"})
    practice, lengths = task.practice(periodic=[[0, 0], [100, 1]]), np.full((200, 2), 14)

    def share(step: int) -> float:
        texts = [task.text(row.tolist()) for row in map(practice.draw(rng(), lengths, step).prompt, range(200))]
        return float(
            np.mean(
                [any(t[i : i + 3] == t[i + p : i + p + 3] for p in PERIODS for i in range(30 - p - 2)) for t in texts]
            )
        )

    assert share(0) < 0.2 < share(50) < share(100) - 0.1
    assert share(100) > 0.8  # the plus of the sum may stand in the middle of one


def test_sums_near_round_numbers_come_with_training() -> None:
    """Of the carry before and the product: within 2% of 1000, or of 100, of a multiple of it."""
    task = make_task({"name": "multiplication", "digits": 3})

    def share(step: int, unit: int, **options: int) -> float:
        practice = task.practice(near_round=[[0, 0], [100, 1]], **options)
        drawn = practice.draw(rng(), np.full((200, 1), 16), step)
        near = []
        for text in (task.text(drawn.row(i)) for i in range(len(drawn))):
            lines = [(int(p), int(c)) for p, c in re.findall(r"[a-j]\*...\((\d{4})~(\d{3}),", text)]
            carries = [0, *(carry for _, carry in lines)]
            sums = [product + carry for (product, _), carry in zip(lines, carries, strict=False)]
            near += [(total + unit // 50) % unit < unit // 25 for total in sums]
        assert len(near) == 200 * 16
        return float(np.mean(near))

    assert share(0, 1000) < 0.07 < share(50, 1000, round_unit=1000) < 0.16 < share(100, 1000, round_unit=1000)
    assert min(share(100, 1000), share(100, 100)) > 0.1 and share(0, 100) < 0.07  # both by default
    with pytest.raises(ValueError, match="round_unit is 0; round numbers are multiples of it"):
        task.practice(round_unit=0)
    with pytest.raises(ValueError, match="near_round is 2.*; a share lies between 0 and 1"):
        task.practice(near_round=2)


def test_digits_near_round_sums_are_the_closest_there_are() -> None:
    digits, factors = np.array([[5, 0, 7, 7], [5, 0, 5, 5]]).repeat(50, axis=0), np.array([135, 999]).repeat(50)
    changed = approach_round(rng(), digits, factors, np.arange(100) % 2 == 0, np.full(digits.shape, 1000))
    assert np.array_equal(changed[1::2], digits[1::2])
    assert (changed[:, 1] == digits[:, 1]).all()  # a 0 stays: it may stand beyond the number
    assert set(changed[0:50:2, 0]) == {5, 7}  # 7 * 135 = 945
    assert set(changed[50::2, 0]) == {5, 1}  # 1 * 999


def test_repetitive_tapes_have_the_promised_number_of_symbols() -> None:
    task = TuringRasp()
    drawn = task.practice(repetitive=1.0).draw(rng(), np.full((500, 1), 60), 0)
    symbols = [len(set(drawn.prompt(i).tolist()) & set(task.machine.symbol_tokens)) for i in range(len(drawn))]
    assert set(symbols) <= set(task.few) and len(set(symbols)) == len(task.few)
    assert {int(t) for t in drawn.tokens} >= set(task.machine.symbol_tokens)


def test_the_loss_looks_only_at_answers_whose_source_is_in_the_row() -> None:
    task = TuringRasp()
    packing = Packing(task.practice(), (4, 4), rows=40, context=50, seed=0)
    inputs, _, weights = packing.batch(0)
    sep = task.token("sep")
    for row, weight in zip(inputs, weights, strict=True):
        counted = np.flatnonzero(weight)
        assert np.flatnonzero(row == sep)[0] <= counted[0]
        assert counted[0] >= 7  # a whole tape of 4 cells is 7 tokens: it comes before anything that counts


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "subtraction"},
        {"name": "multiplication", "digits": 0},
        {"name": "addition", "machine_seed": 3},
        {"name": "turing_rasp", "steps": 0},
        {"name": "sgd", "repetitive": 0.5},
        {"name": "addition", "repetitive": 2},
        {},
    ],
)
def test_wrong_tasks_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        make_task(wrong)


@pytest.mark.parametrize(
    ("name", "options", "culprit"),
    [
        ("addition", {"repetitive": 2}, "repetitive is 2"),
        ("addition", {"repetitive": [[0, 0], [9, -1]]}, "repetitive is"),
        ("addition", {"repetitive": [[9, 0], [0, 1]]}, "no schedule"),
        ("addition", {"repetitive": "often"}, "no schedule"),
    ],
)
def test_wrong_practice_is_refused(name: str, options: dict[str, Any], culprit: str) -> None:
    with pytest.raises(ValueError, match=culprit):
        make_task({"name": name}).practice(**options)


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownOption, match="machine_seed") as caught:
        make_task({"name": "addition", "machine_seed": 3})
    assert (caught.value.option, caught.value.known) == ("machine_seed", ["scratchpad"])
    with pytest.raises(UnknownOption, match="repetitive") as caught:
        Sgd().practice(repetitive=0.5)
    assert "similar" in caught.value.known


@pytest.mark.parametrize("length", [0, -3, 10**9])
def test_wrong_lengths_are_refused(length: int) -> None:
    for name in TASKS:
        with pytest.raises(ValueError, match="length"):
            make_task({"name": name}).sample(rng(), length, count=2)


def test_a_machine_of_ones_own() -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=5)
    for name in ("turing_rasp", "turing_paper"):
        task = make_task({"name": name, "machine": to_json(machine)})
        assert isinstance(task, TuringRasp | TuringPaper) and task.machine == machine
    with pytest.raises(UnknownOption, match="machine_seed"):
        make_task({"name": "turing_rasp", "machine": to_json(machine), "machine_seed": 3})
