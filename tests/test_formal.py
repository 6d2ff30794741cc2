"""The theorem in Coq: every claim is proved from no axioms, and a wrong program or a wrong statement is not."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import warnings
from pathlib import Path

import pytest

from proofs_check.formal import check as formal
from proofs_check.formal.check import CoqMissing, FormalReport, check, find_coqc, in_order, proof_files, write_proof
from proofs_check.formal.generate import NotInModel, traced_file, traced_sizes
from proofs_check.formal.texts import texts_file
from proofs_check.symbolic.mutants import MUTANTS
from rasp.programs import turing

if find_coqc() is None:
    warnings.warn(f"THE FORMAL PROOF WAS NOT CHECKED: {formal.MISSING}", stacklevel=1)
needs_coq = pytest.mark.skipif(find_coqc() is None, reason=formal.MISSING)


pytestmark = pytest.mark.timeout(1800)  # the whole proof takes two minutes of one core, which others may share


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[FormalReport, Path]:
    """The whole proof, with fewer texts, checked once for all test processes, and the folder where it was compiled."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "formal-proof"
    folder.mkdir(exist_ok=True)
    kept = folder / "report.pickle"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(check(texts=500, folder=folder)))
    return pickle.loads(kept.read_bytes()), folder


CLAIMED = (
    "the_sharp_theorem", "no_bound", "the_first_wrong_token", "predicts_largest", "the_bound_is_exact",
    "the_packing_ends", "graph_on_whole_numbers", "graph_on_64_bits", "the_sharp_theorem_64", "the_size",
    "DeBruijn.tags_exist", "Tags.every_machine_simulated", "UniversalMachine.universal_is_next_tokens",
    "hypotheses_hold", "a_tape_repeats", "a_tape_does_not", "paper_model", "unbounded_model", "tuple_model",
    "paper_sizes", "tuple_sizes",
    "texts_agree",
)  # fmt: skip


@needs_coq
def test_every_claim_is_proved_from_no_axioms(proof: tuple[FormalReport, Path]) -> None:
    report, _ = proof
    assert report.errors == ()
    assert report.all_proved
    assert {claim.assumptions for claim in report.claims} == {"closed"}
    assert set(CLAIMED) <= {claim.theorem for claim in report.claims}
    row = report.to_json()[0]
    assert {"claim", "theorem", "assumptions", "result", "seconds", "scope"} <= set(row)
    json.dumps(report.to_json())


def test_nothing_is_assumed_or_left_out() -> None:
    for name, text in proof_files().items():
        code = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
        assert not re.search(r"\b(Axiom|Parameter|Conjecture|Admitted|admit|Abort)\b", code), name
        assert "\nVariable" not in code.partition("Section")[0], f"{name}: a variable outside a section is an axiom"


def test_every_claim_says_where_it_is_proved_and_of_what() -> None:
    theorem = proof_files()["Theorem"]
    stated = formal._CLAIM.findall(theorem)
    assert len(stated) == len(re.findall(r"^Print Assumptions", theorem, re.MULTILINE))
    assert {file for file, *_ in stated} <= set(proof_files())


def test_every_lemma_that_the_document_names_is_stated_where_it_says() -> None:
    document = Path(formal.__file__).parents[2] / "docs" / "theorem.md"
    named = re.findall(r"\[`(\w+)`\]\(\.\./proofs_check/formal/(\w+)\.v\)", document.read_text())
    assert len(named) > 25
    stated = {name: formal._STATED.findall(text) for name, text in proof_files().items()}
    assert [(lemma, file) for lemma, file in named if lemma not in stated.get(file, ())] == []


def test_the_page_cites_claims_whose_assumptions_are_printed() -> None:
    page = (Path(formal.__file__).parents[1] / "page" / "sections.py").read_text()
    cited = set(re.findall(r"_and_proved\(.*?, \"(\w+)\"\)", page))
    printed = {name.rpartition(".")[2] for *_, name in formal._CLAIM.findall(proof_files()["Theorem"])}
    assert len(cited) == 4 and cited <= printed


def test_the_traced_program_grows_by_18_nodes_for_each_n() -> None:
    for packing, sizes in traced_sizes().items():
        assert sizes == [201 + 18 * n for n in range(1, 9)], packing


# --- wrong programs ---------------------------------------------------------------------------------------------------

MOVED = {
    "the head moves the wrong way": "get_next",
    "tokens are taken from the other neighbour": "select_move_token",
    "the next tape comes one position late": "next_tape 2",
    "shifts fill with empt": "shift_right",
    "where's branches are exchanged": "where",
    "the hash is packed with base**(n+1)": "hash_n_gram_iter paper",
    "a separator does not hide what lies before it": "hash_n_gram",
    "the hash is in base 32 whatever the alphabet": "hash_n_gram",
    "the mean of the matches is taken": "next_tokens paper 1",
    "what lies before a separator is seen by tuples": "n_gram",
    "one position too many is filled": "prefix_fill",
}


@needs_coq
@pytest.mark.parametrize("mutant", MOVED)
def test_a_wrong_program_is_not_the_model_and_coq_names_what_moved(
    mutant: str, proof: tuple[FormalReport, Path], tmp_path: Path
) -> None:
    report = check(of=MUTANTS[mutant].functions.__getitem__, only=["Traced"], folder=tmp_path, reuse=proof[1])
    assert not report.all_proved
    assert len(report.errors) == 1
    assert report.errors[0].startswith(f"{MOVED[mutant]} moved: "), report.errors
    assert all(claim.result != "proved" for claim in report.claims)


def test_what_the_model_has_no_word_for_is_named() -> None:
    def of(name: str) -> object:
        return (lambda x: turing.cumsum(x) // 2) if name == "cumsum" else getattr(turing, name)

    with pytest.raises(NotInModel, match=r"cumsum moved: it computes .*//"):
        traced_file(of)  # type: ignore[arg-type]


# --- wrong statements and wrong definitions ---------------------------------------------------------------------------

WRONG = {
    "where_ takes the other branch": ("Rasp", "if m =? 0 then 0 else x)", "if m =? 0 then x else 0)", "where_spec"),
    "the head moves the wrong way": ("Machine", "ns q a else T c, h + 1)", "ns q a else T c, h - 1)", "wf_step"),
    "the paper's packing with base^(n+1)": ("Program", "a + B ^ n * b", "a + B ^ (n + 1) * b", "key_spec"),
    "one step too many": ("Sharp", "(k = Paper -> S t <= B ^ n)", "(k = Paper -> S t <= B ^ n + 1)", "right_iff"),
    "only the places of earlier tapes outbid": (
        "Horizon", "count trace j <= count trace i /\\ key_at B n k trace j = key_at B n k trace i /\\ trace (i + 1)",
        "count trace j < count trace i /\\ key_at B n k trace j = key_at B n k trace i /\\ trace (i + 1)",
        "right_iff_not_outbid",
    ),
    "words of 63 bits": ("Words", "mod 18446744073709551616", "mod 9223372036854775808", "wrap64_is"),
    "one node more": ("Graph", "(program k n) = 201 + 18 * n", "(program k n) = 202 + 18 * n", "size_linear"),
    "both grams are followed by 5": ("Collision", "else if c =? 4 + n then 4", "else if c =? 4 + n then 5", ""),
}  # fmt: skip


@needs_coq
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_statement_does_not_check(what: str, proof: tuple[FormalReport, Path], tmp_path: Path) -> None:
    file, right, wrong, lemma = WRONG[what]
    source, folder = tmp_path / "source", tmp_path / "built"
    source.mkdir(), folder.mkdir()
    for name, text in proof_files().items():
        (source / f"{name}.v").write_text(text)
    before = (source / f"{file}.v").read_text()
    assert right in before
    (source / f"{file}.v").write_text(before.replace(right, wrong))
    seen = "Lookup" if file == "Program" else file
    report = check(source=source, only=[seen], folder=folder, reuse=proof[1])
    assert not report.all_proved
    assert len(report.errors) == 1
    assert report.errors[0].startswith(f"{seen}.v: {lemma}"), report.errors


@needs_coq
def test_an_axiom_is_seen(tmp_path: Path) -> None:
    (tmp_path / "Cheat.v").write_text(
        "Axiom easy : 1 = 2.\nTheorem wrong : 2 = 1.\nProof. symmetry. exact easy. Qed.\n"
        "(** [Cheat.v] two is one | everywhere *)\nPrint Assumptions wrong.\n"
        "Theorem fine : 1 = 1.\nProof. reflexivity. Qed.\n"
        "(** [Cheat.v] one is one | everywhere *)\nPrint Assumptions fine.\n"
    )
    report = check(source=tmp_path, only=["Cheat"])
    wrong, fine = report.claims
    assert (wrong.assumptions, wrong.result) == ("easy", "failed")
    assert (fine.assumptions, fine.result) == ("closed", "proved")
    assert not report.all_proved


@needs_coq
def test_a_wrong_prediction_is_seen(proof: tuple[FormalReport, Path], tmp_path: Path) -> None:
    right = (proof[1] / "Texts.v").read_text()
    wrong = re.sub(
        r"\[\((0x\w+), (0x\w+?)(\w)\)", lambda m: f"[({m[1]}, {m[2]}{(int(m[3], 16) ^ 1):x})", right, count=1
    )
    assert wrong != right
    files = {**proof_files(), "Texts": wrong}
    made = formal.compile_files(files, tmp_path, ["Texts"], proof[1])["Texts"]
    assert not made.ok
    assert "texts_agree does not check" in made.error


# --- the runner -------------------------------------------------------------------------------------------------------


def test_files_come_after_what_they_require() -> None:
    files = {"C": "Require Import A B.", "A": "", "B": "From Coq Require Import List.\nRequire A."}
    assert in_order(files) == ["A", "B", "C"]
    assert in_order(files, ["B"]) == ["A", "B"]


def test_the_proof_can_be_written_for_another_coq(tmp_path: Path) -> None:
    written = write_proof(tmp_path, texts=50)
    names = (tmp_path / "order.txt").read_text().split()
    assert [path.name for path in written] == names
    assert {"Theorem.v", "Traced.v", "Texts.v"} <= set(names)
    assert names.index("Rasp.v") < names.index("Sharp.v") < names.index("Theorem.v")


def test_without_coq_one_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CoqMissing, match="apt-get install coq"):
        check()


def test_prove_formal_without_coq_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from experiments.cli import main

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["turing-programs", "prove", "where", "--formal"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert "apt-get install coq" in told.err
    assert told.out == ""


def test_without_coq_all_else_is_proved_and_one_line_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from experiments.cli import main
    from proofs_check.symbolic import certificates, proving

    monkeypatch.setattr(proving, "LEMMAS", proving.LEMMAS[:1])
    monkeypatch.setattr(certificates, "LEMMAS", certificates.LEMMAS[:1])
    monkeypatch.setattr(formal, "texts_file", lambda count: texts_file(count // 40))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["turing-programs", "prove", "--certificate", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code in (0, None)
    assert [line for line in told.err.splitlines() if "coq" in line] == [
        f"{formal.MISSING}; the claims it proves for every machine and length were left out"
    ]
    assert "every lemma is proved" in told.out and "Coq files" in told.out
    assert {"where-000.smt2", "Theorem.v", "Traced.v", "order.txt"} <= {path.name for path in tmp_path.iterdir()}
