"""Files of machines: what is written is read back as the same machine, and what is broken is refused in a sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz.machine_files import same_behaviour, same_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from test_machine import machines

from rasp.formats.bbchallenge import from_bbchallenge, to_bbchallenge
from rasp.formats.dtm import from_dtm, to_dtm
from rasp.formats.json import from_json, to_json
from rasp.formats.yaml import from_yaml, to_yaml
from rasp.gallery import entry, gallery
from rasp.gallery import machine as known
from rasp.loading import default_tape, load_machine, save_machine
from rasp.machines.machine import InvalidMachine, TuringMachine
from rasp.machines.partial import STUCK
from rasp.machines.state_graph import draw_machine, state_graph, to_dot

SINGLE = st.sampled_from("01ab_ '\"#:,{}[]-~&*!|>%@`é")


@st.composite
def endless(draw: Any) -> TuringMachine:
    """What formats without end markers can hold: a start state that is not final, symbols of one character."""
    m = draw(machines(symbol_names=SINGLE).filter(lambda m: len(m.final) < len(m.states)))
    start = draw(st.sampled_from([q for q in m.states if q not in m.final]))
    return m.replace(bounce=None, start=start)  # type: ignore[no-any-return]


# --- own JSON ---------------------------------------------------------------------------------------------------------


@given(machines())
def test_json_keeps_everything(m: TuringMachine) -> None:
    assert from_json(to_json(m)) == m and from_json(to_json(m.replace(name="x"))).name == "x"


def test_json_by_hand() -> None:
    rules = '{"A": {"0": ["0", "R", "Z"]}}'
    m = from_json('{"states": ["A", "Z"], "symbols": ["0"], "final": ["Z"], "transitions": ' + rules + "}")
    assert m.start == "A" and m.blank == "0" and m.bounce["A", "bos"] == "A"


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ("{}", "'no symbols'"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ('{"symbols": [], "states": [], "transitions": {}, "colour": 1}', "'colour'"),
        ('{"symbols": "01", "states": [], "transitions": {}}', "symbols is '01': expected a list"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": []}', "transitions must be a mapping"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": {"A": 3}}', "transitions of state 'A'"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": {"A": {"0": "0RA"}}}', "expected (write"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": {"A": {"0": ["0", "S", "A"]}}}', "'S'"),
        ('{"symbols": ["0"], "states": [["A"]], "transitions": {}}', "['A']"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": {}, "start": {}}', "start state is {}"),
        ('{"symbols": ["0"], "states": ["A"], "transitions": {}, "format": "other"}', "format"),
        ("[" * 100_000, "not JSON"),
        ('{"states":' * 20_000, "not JSON"),
        ('{"states": ' + "9" * 9_999 + "}", "not JSON"),
    ],
)
def test_bad_json_is_refused(text: str, culprit: str) -> None:
    with pytest.raises(InvalidMachine) as refused:
        from_json(text)
    assert culprit in str(refused.value)


# --- bbchallenge ------------------------------------------------------------------------------------------------------

BEAVERS = ["1RB1LB_1LA1RZ", "1RB1LB_1LA0LC_1RZ1LD_1RD0RA", "1RB2LA1LA_2LA2RB0RA", "0RA", "1RB2LB1RZ_2LA2RB1LB"]


@pytest.mark.parametrize("text", BEAVERS)
def test_bbchallenge_text_round_trips(text: str) -> None:
    assert to_bbchallenge(from_bbchallenge(text)) == text


def test_bbchallenge_holes_halt() -> None:
    assert from_bbchallenge("1RB1LB_1LA---") == from_bbchallenge("1RB1LB_1LA1RZ") == from_bbchallenge("1RB1LB_1LA1RH")
    assert from_bbchallenge("1RB1LB_1LA---").run().steps == 6
    assert from_bbchallenge("---").run().steps == 1 and "Z" not in from_bbchallenge("0RA").states


@given(endless().filter(lambda m: len(m.final) < 2))
def test_bbchallenge_keeps_behaviour(m: TuringMachine) -> None:
    symbols = sorted(m.symbols, key=lambda a: a != m.blank)
    assert same_runs(m, from_bbchallenge(to_bbchallenge(m)), {name: str(i) for i, name in enumerate(symbols)})


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "not bbchallenge text"),
        ("1RB1L", "not bbchallenge text"),
        ("1RB_", "not bbchallenge text"),
        ("1XB1LA", "not bbchallenge text"),
        ("1RB1LB_1LA", "state B has 1 transitions: expected 2"),
        ("1RC1LB_1LA1RZ", "1RC goes to state C"),
        ("2RB1LB_1LA1RZ", "'2'"),
        ("0RA" * 11, "11 symbols"),
        ("_".join(["0RA"] * 26), "26 states"),
    ],
)
def test_bad_bbchallenge_text_is_refused(text: str, culprit: str) -> None:
    with pytest.raises(InvalidMachine) as refused:
        from_bbchallenge(text)
    assert culprit in str(refused.value)


# --- turingmachine.io -------------------------------------------------------------------------------------------------

BY_HAND = """
# every way of writing an instruction
input: 0110
blank: ' '
start state: go
synonyms:
  finish: {R: yes}
  back: {write: ' ', L: go}
table:
  go:
    [0, 1]: R
    ' ': {write: 1, L}
    on: {L: two}
  two:
    0: finish
    1: back
    ' ': {write: 0, R: two}
    N,M: L
  yes:
  off: {}
"""


def test_yaml_by_hand() -> None:
    m = from_yaml(BY_HAND.replace("    on: {L: two}\n", "    o: {L: two}\n"))
    rules = m.transitions
    assert m.states == ("go", "two", "yes", "off", STUCK) and m.final == {"yes", "off", STUCK}
    assert m.symbols == (" ", "0", "1", "o", "N", "M") and m.start == "go" and m.blank == " "
    assert rules["go", "0"] == ("0", "R", "go") and rules["go", " "] == ("1", "L", "go")
    assert rules["go", "o"] == ("o", "L", "two") and rules["two", "0"] == ("0", "R", "yes")
    assert rules["two", "1"] == (" ", "L", "go") and rules["two", " "] == ("0", "R", "two")
    assert rules["two", "N"] == ("N", "L", "two") and rules["two", "o"] == ("o", "R", STUCK)


def test_yaml_as_the_site_saves_it(tmp_path: Path) -> None:
    inner = to_yaml(known("parentheses").replace(name=""), input="(\\[x")
    saved = "name: a machine\nsource code: |\n" + "".join(f"  {line}\n" for line in inner.splitlines())
    (tmp_path / "m.yaml").write_text(saved)
    m = load_machine(tmp_path / "m.yaml")
    assert m.name == "a machine" and {"[", "\\"} < set(m.symbols)  # symbols of the input alone
    assert all(m.transitions[key] == rule for key, rule in known("parentheses").transitions.items())
    assert default_tape(tmp_path / "m.yaml") == "(\\\\\\[x"
    assert m.parse_tape(default_tape(tmp_path / "m.yaml")) == m.encode("(\\[x")
    with pytest.raises(InvalidMachine, match="start state"):  # one wrapper is enough
        from_yaml("source code: |\n  source code: |\n    blank: ' '\n  blank: ' '\n")


@given(endless())
@settings(deadline=None)
def test_yaml_keeps_the_machine(m: TuringMachine) -> None:
    again = from_yaml(to_yaml(m))
    assert same_behaviour(again, m) and set(again.symbols) == set(m.symbols) and again.states == m.states


def test_yaml_leaves_out_what_is_implied() -> None:
    m = known("palindrome").replace(name="")
    assert STUCK not in known("palindrome").states
    holes = from_yaml("blank: _\nstart state: q\ntable:\n  q: {a: R, b: {R: w}}\n  w: {a: L}\n  z:\n")
    assert holes.transitions["w", "b"] == ("b", "R", STUCK) and holes.transitions["q", "_"] == ("_", "R", STUCK)
    written = to_yaml(holes)  # `_` stands nowhere else, so this one hole is written
    assert written.count(STUCK) == 2 and "'_': {R: stuck}" in written and "  stuck:\n" in written
    assert same_behaviour(from_yaml(written), holes) and same_behaviour(from_yaml(to_yaml(m)), m)
    taken = from_yaml("blank: _\nstart state: stuck\ntable:\n  stuck: {a: R}\n")  # the name is in use
    assert taken.final == {"stuck_"} and same_behaviour(from_yaml(to_yaml(taken)), taken)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "a mapping with blank"),
        ("- a", "a mapping with blank"),
        ("a: [", "not YAML"),
        ("a: \x00", "not YAML"),
        ("!!python/object/apply:os.system ['true']", "a mapping with blank"),
        ("start state: q\ntable: {q: }", "blank is None"),
        ("blank: ~\nstart state: q\ntable: {q: }", "quoted"),
        ("blank: '  '\nstart state: q\ntable: {q: }", "one character"),
        ("blank: _\ntable: {q: }", "'start state' is None"),
        ("blank: _\nstart state: q", "'table' is None"),
        ("blank: _\nstart state: q\ntable: [q]", "'table' is ('q',)"),
        ("blank: _\nstart state: p\ntable: {q: }", "start state is 'p'"),
        ("blank: _\nstart state: q\ntable: {q: 3}", "state 'q' has '3'"),
        ("blank: _\nstart state: q\ntable: {q: {a: N}}", "direction N (stay) is not supported"),
        ("blank: _\nstart state: q\ntable: {q: {a: {N: q}}}", "state 'q' on 'a': direction N"),
        ("blank: _\nstart state: q\ntable: {q: {a: jump}}", "{'jump': None} is no instruction"),
        ("blank: _\nstart state: q\ntable: {q: {a: {L: q, R: q}}}", "no instruction"),
        ("blank: _\nstart state: q\ntable: {q: {a: {write: b}}}", "no instruction"),
        ("blank: _\nstart state: q\ntable: {q: {a: {write: bb, R}}}", "what to write is 'bb'"),
        ("blank: _\nstart state: q\ntable: {q: {a: {R: [q]}}}", "the next state is ('q',)"),
        ("blank: _\nstart state: q\ntable: {q: {a: {R: p}}}", "'p'"),
        ("blank: _\nstart state: q\ntable: {q: {ab: R}}", "'ab'"),
        ("blank: _\nstart state: q\ntable: {q: {[a, a]: R}}", "two instructions for 'a'"),
        ("blank: _\nstart state: q\ntable:\n  q: {a: R}\n  q: {a: L}", "line 5: 'q' is given twice"),
        ("blank: _\nstart state: q\ntable:\n  ? {a: b}\n  : c", "line 4: {'a': 'b'} is no key"),
        ("blank: _\nstart state: q\ntable:\n  q: {[{a: b}]: R}", "is no key"),
        ("blank: _\nstart state: q\ntable:\n  q: {[~]: R}", "a symbol of state 'q' is None"),
        ("blank: _\nstart state: q\nsynonyms: {go: stop}\ntable: {q: }", "synonym 'go'"),
        ("blank: _\nstart state: q\ninput: [a]\ntable: {q: }", "'input' is ('a',)"),
        ("[" * 5_000, "not YAML"),
        ("a: b\n" * 200_000, "use .json for large machines"),
        ("&a [*a]", "RecursionError"),
        ("? &a {x: *a}\n: y", "RecursionError"),
        (BOMB, "write it without aliases"),
    ],
)
def test_bad_yaml_is_refused(text: str, culprit: str) -> None:
    with pytest.raises(InvalidMachine) as refused:
        from_yaml(text)
    assert culprit in str(refused.value)


# --- automata-lib -----------------------------------------------------------------------------------------------------


@given(endless().filter(lambda m: len(m.symbols) > 1))
def test_dtm_keeps_the_machine(m: TuringMachine) -> None:
    again = from_dtm(to_dtm(m))
    assert again.start == m.start and again.blank == m.blank and again.transitions == m.transitions
    assert again.final | {STUCK} == m.final | {STUCK} and same_runs(m, again)


def test_dtm_holes_and_stays() -> None:
    from automata.tm.dtm import DTM

    def dtm(direction: str) -> Any:
        return DTM(
            states={"q", "f"},
            input_symbols={"a"},
            tape_symbols={"a", "."},
            initial_state="q",
            blank_symbol=".",
            final_states={"f"},
            transitions={"q": {"a": ("f", "a", direction)}},  # type: ignore[dict-item]
        )

    m = from_dtm(dtm("R"), name="m")
    assert m.transitions["q", "."] == (".", "R", STUCK) and m.final == {"f", STUCK} and m.name == "m"
    assert to_dtm(m) == dtm("R") or to_dtm(m).transitions == dtm("R").transitions
    assert to_dtm(m).final_states == {"f"} and to_dtm(m).states == {"q", "f"}
    with pytest.raises(InvalidMachine, match="state 'q' on 'a' stays in place"):
        from_dtm(dtm("N"))
    with pytest.raises(InvalidMachine, match="expected an automata-lib DTM, got int"):
        from_dtm(3)  # type: ignore[arg-type]


# --- what a format cannot hold ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [to_yaml, to_bbchallenge, to_dtm])
def test_what_cannot_be_written_is_refused(write: Callable[[TuringMachine], Any]) -> None:
    with pytest.raises(InvalidMachine, match="no end markers, but state 'q"):
        write(TuringMachine.random(3, 3))
    over = TuringMachine(states=["Z"], symbols=["0", "1"], transitions={}, final=["Z"])
    with pytest.raises(InvalidMachine, match="start state with transitions, but 'Z' is final"):
        write(over)


def test_more_that_cannot_be_written() -> None:
    plain = TuringMachine.random(3, 3).replace(bounce=None)
    for write in (to_yaml, to_dtm):
        with pytest.raises(InvalidMachine, match="symbols of one character, but this machine has 'a1'"):
            write(plain)  # type: ignore[operator]
    for symbols, states in [(11, 2), (2, 26)]:
        with pytest.raises(InvalidMachine, match=f"has {states} and {symbols}"):
            to_bbchallenge(TuringMachine.random(symbols, states).replace(bounce=None))
    with pytest.raises(InvalidMachine, match="one way to halt"):
        to_bbchallenge(known("palindrome"))


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", gallery())
@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_gallery_machines_survive_files(name: str, suffix: str, tmp_path: Path) -> None:
    save_machine(known(name), tmp_path / f"m{suffix}")
    again = load_machine(tmp_path / f"m{suffix}")
    assert same_behaviour(again, known(name)) and again.name == name


def test_machines_are_found_by_name_text_and_file(tmp_path: Path) -> None:
    assert load_machine("bb4") is known("bb4") and default_tape("increment") == entry("increment").tape == "1011"
    assert load_machine("1RB1LB_1LA---").run().steps == 6 and default_tape("1RB1LB_1LA---") == ""
    assert load_machine(to_json(known("copy"))) == known("copy") and default_tape(to_json(known("copy"))) == ""
    assert same_behaviour(load_machine(to_yaml(known("copy"))), known("copy"))
    save_machine(known("bb4"), tmp_path / "beaver.txt")
    assert (tmp_path / "beaver.txt").read_text() == "1RB1LB_1LA0LC_1RZ1LD_1RD0RA\n"
    assert load_machine(str(tmp_path / "beaver.txt")) == known("bb4")
    (tmp_path / "unnamed.json").write_text(to_json(known("bb4").replace(name="")), encoding="utf-8-sig")
    assert load_machine(tmp_path / "unnamed.json").name == "unnamed"


def test_bad_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b"\xff{}")
    (tmp_path / "big.json").write_bytes(b" " * 8_000_001)
    (tmp_path / "broken.json").write_text("{")
    cases = [
        ("latin.json", "byte 0 is not UTF-8"),
        ("big.json", "larger than"),
        ("broken.json", "broken.json: not JSON"),
        ("none.json", "no such file"),
        (".", "cannot be read"),
        ("a\0b", "cannot be read"),
        ("x" * 5_000, "cannot be read"),
    ]
    for name, culprit in cases:
        for load in (load_machine, default_tape):
            if load is default_tape and name == "broken.json":
                continue  # JSON brings no tape, whatever is in it
            with pytest.raises(InvalidMachine) as refused:
                load(tmp_path / name)
            assert culprit in str(refused.value)
    with pytest.raises(InvalidMachine, match="did you mean 'palindrome'"):
        load_machine("palindrom")
    with pytest.raises(InvalidMachine, match="the gallery has 'bb2'"):
        load_machine("xyzzy")
    for nothing in ("", " "):
        with pytest.raises(InvalidMachine, match=f"^'{nothing}': there is no machine here"):
            load_machine(nothing)
    (tmp_path / "my.py").write_text("def majority(x):  # a program: of ones\n    return x\n")
    with pytest.raises(InvalidMachine, match="my.py: is Python, not a machine; .* FILE.py:FUNCTION"):
        load_machine(tmp_path / "my.py")
    for path, culprit in [("m.tm", "use one of '.json'"), ("none/m.json", "cannot write")]:
        with pytest.raises(InvalidMachine, match=culprit):
            save_machine(known("bb4"), tmp_path / path)


# --- fuzzing ----------------------------------------------------------------------------------------------------------

STRANGE: list[Any] = [None, True, 0, 1.5, 10**30, "", "R", "N", "bos", "Z", "\0", [], {}, ["1", "R", "A"], {"A": {}}]
FRAGMENTS = b"{ } [ ] : ' \" , &a *a !!int ? - << | ~ % --- _ null 1RZ NaN N \x00 \xff \xf0\x9f\x98\x80".split(b" ")
FRAGMENTS += [b"\n", b"  ", b"? ", b"- "]


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few cuts, copies, swaps, changed bytes and inserted fragments."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        j = min(j, i + 40)
        data = rng.choice(
            [
                data[:i] + data[j:],
                data[:j] + data[i:],
                data[:i] + rng.choice(FRAGMENTS) + data[i:],
                data[:i] + rng.choice(FRAGMENTS) + data[j:],
                data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :],
                data[:i] + data[i:j][::-1] + data[j:],
            ]
        )
    return data


def mutate_tree(rng: random.Random, tree: Any) -> Any:
    """One value somewhere in the structure is replaced, removed or renamed."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.15:
        return rng.choice(STRANGE)
    tree = tree.copy()
    key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
    chosen = rng.random()
    if chosen < 0.2:
        del tree[key]
    elif chosen < 0.3 and isinstance(tree, dict):
        tree[str(rng.choice(STRANGE))] = tree.pop(key)
    else:
        tree[key] = mutate_tree(rng, tree[key])
    return tree


def read_or_refuse(read: Callable[[], TuringMachine]) -> bool:
    """Whether it was read. Any exception but `InvalidMachine` fails the test."""
    try:
        m = read()
    except InvalidMachine as refused:
        assert len(str(refused)) > 10
        return False
    m.trace(m.encode([m.blank]), 5)
    return True


def test_a_thousand_broken_files_crash_nothing(tmp_path: Path) -> None:
    rng = random.Random(0)
    sources = [known(name) for name in ("bb3", "increment", "palindrome")]
    read = 0
    for i in range(1_000):
        m = sources[i % 3]
        kind = i % 4
        if kind == 0:
            suffix, data = ".json", mutate_bytes(rng, to_json(m).encode())
        elif kind == 1:
            suffix, data = ".json", json.dumps(mutate_tree(rng, json.loads(to_json(m)))).encode()
        elif kind == 2:
            suffix, data = ".yaml", mutate_bytes(rng, to_yaml(m).encode())
        else:
            suffix, data = ".txt", mutate_bytes(rng, to_bbchallenge(sources[0]).encode())
        path = tmp_path / f"m{suffix}"
        path.write_bytes(data)
        read += read_or_refuse(lambda path=path: load_machine(path))  # type: ignore[misc]
    assert 20 < read < 900  # the mutations are neither all fatal nor all harmless


def test_broken_yaml_trees_crash_nothing() -> None:
    import yaml

    rng = random.Random(1)
    tree = yaml.safe_load(to_yaml(known("copy")))
    for _ in range(150):
        read_or_refuse(lambda: from_yaml(yaml.safe_dump(mutate_tree(rng, tree))))


def test_broken_dtms_crash_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import automata.base.config as config
    from automata.tm.dtm import DTM

    monkeypatch.setattr(config, "should_validate_automata", False)
    rng = random.Random(2)
    d = to_dtm(known("copy"))
    described = {
        "states": sorted(d.states),
        "input_symbols": ["1", "x"],
        "tape_symbols": ["_", "1", "x"],
        "transitions": {q: {a: list(r) for a, r in row.items()} for q, row in d.transitions.items()},
        "initial_state": "each",
        "blank_symbol": "_",
        "final_states": sorted(d.final_states),
    }

    def build(description: dict[str, Any]) -> TuringMachine:
        hashable = all(isinstance(x, str) for v in description.values() if isinstance(v, list) for x in v)
        return from_dtm(DTM(**{k: set(v) if isinstance(v, list) and hashable else v for k, v in description.items()}))

    assert same_behaviour(build(described), known("copy"))
    read = 0
    for _ in range(200):
        key = rng.choice(list(described))
        broken = described | {key: mutate_tree(rng, described[key])}
        read += read_or_refuse(lambda broken=broken: build(broken))  # type: ignore[misc]
    assert 10 < read < 190


# --- drawing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph")])
def test_state_graphs_are_drawn(suffix: str, magic: bytes, tmp_path: Path) -> None:
    start, end = 'a"\\b', "$x$"
    rules = {(start, " "): ("$", "R", end), (start, "$"): (" ", "L", start)}
    odd = TuringMachine(states=[start, end], symbols=[" ", "$"], final=[end], transitions=rules)
    for m in (known("bb4"), TuringMachine.random(12, 16), TuringMachine.random(1, 1), odd):
        draw_machine(m, tmp_path / f"m{suffix}")
        assert (tmp_path / f"m{suffix}").read_bytes().startswith(magic)


def test_state_graphs_hold_the_rules() -> None:
    graph = state_graph(known("bb4"))
    assert sum(len(data["rules"]) for _, _, data in graph.edges(data=True)) == 8
    assert graph.edges["C", "Z"]["rules"] == [("0", "1", "R")]
    assert graph.nodes["Z"]["final"] and graph.nodes["A"]["start"]
    dot = to_dot(known("bb4"))
    assert '"C" -> "Z" [label="0 / 1, R"];' in dot and '"Z" [shape=doublecircle]' in dot
    assert STUCK in known("copy").states and STUCK not in state_graph(known("copy"))
    with pytest.raises(InvalidMachine, match="cannot draw to 'm.pdf'"):
        draw_machine(known("bb4"), "m.pdf")
