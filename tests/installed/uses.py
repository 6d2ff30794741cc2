"""What must work with each extra alone: commands, or scripts, and a word that each must print."""

from __future__ import annotations

from typing import NamedTuple

BASE = "base"  # no extra at all


class Use(NamedTuple):
    """A command of the environment; `says` is in what it prints."""

    command: str
    says: str = ""
    script: str = ""  # Python that is given to it, instead of a command


def python(script: str, says: str = "") -> Use:
    return Use("python -c", says, script)


DASK = """
from distributed import LocalCluster
from proofs_check import verify

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        print(verify(2000, dask=cluster.scheduler_address, chunk=500).result() == verify(2000, chunk=500).result())
"""
DTM = """
from rasp.formats.dtm import from_dtm, to_dtm
from rasp.gallery import machine

print(from_dtm(to_dtm(machine("bb3"))).transitions == machine("bb3").transitions)
"""
BENCH = """
import torch
from experiments.benchmarks.training import neox, ours_like

theirs, tokens = neox(32).eval(), torch.arange(32)[None]
with torch.no_grad():
    print(torch.allclose(ours_like(theirs)(tokens), theirs(tokens).logits, atol=1e-4))
"""
DOORS = """
import numpy, onnxruntime, torch
from transformers import AutoModelForCausalLM
from compile import compile_machine
from compile.doors import save_for_hugging_face, save_onnx, to_transformer_lens
from rasp.gallery import machine

model = compile_machine(machine("bb2"), "lean", 1, 12, check=False)
tape = [*machine("bb2").encode(["0"] * 6, 3), 0]
tokens = list(model.generate(numpy.array(tape), 8))
right = model.predict(numpy.array(tokens))
save_for_hugging_face(model, "there")
save_onnx(model, "there.onnx")
with torch.no_grad():
    theirs = AutoModelForCausalLM.from_pretrained("there")(torch.tensor([tokens])).logits.argmax(dim=-1)[0]
    lens = to_transformer_lens(model)
    seen = lens.answers(lens(lens.to_tokens(numpy.array([tokens]))))[0]
run = onnxruntime.InferenceSession("there.onnx").run(["answers"], {"tokens": numpy.array([tokens])})[0][0]
print(right.tolist() == theirs.tolist() == seen.tolist() == run.tolist())
"""

USES: dict[str, tuple[Use, ...]] = {
    BASE: (
        Use("turing-programs --version", "turing-programs"),
        Use("turing-programs run --help", "--on"),
        Use("turing-programs doctor", "200 random machines, 0 violations"),
        Use("turing-programs verify -m 1000", "0 violations"),
        Use("turing-programs run bb4", "107"),
        Use("turing-programs run bb4 --on rasp", "departs from the machine"),
        Use("turing-programs run addition 4324+139 --on program", "4463"),
        Use("turing-programs graph addition -o addition.dot"),
        Use("turing-programs machines", "bb5"),
    ),
    "draw": (Use("turing-programs graph addition -o addition.png"),),
    "proofs": (Use("turing-programs prove where", "proved"),),
    "dask": (python(DASK, "True"),),
    "torch": (
        Use("turing-programs doctor", "a learned transformer is right on"),
        Use("turing-programs compile bb2 -o bb2", "layers"),
        Use("turing-programs run bb3 --on compiled", "every token as the machine writes it"),
        Use("turing-programs inspect compiled bb2 -o page.html"),
        Use("turing-programs playground -o playground.html"),
        Use("turing-programs evaluate tm-0 --lengths 20 --examples 4", "tm-0"),
    ),
    "tracr": (Use("turing-programs compile bb2 --backend tracr --steps 4 -o bb2", "layers"),),
    "train": (
        Use("turing-programs train tm-tiny --steps 4 -o run"),
        Use("turing-programs train paper-tm --dry-run", "parameters"),
    ),
    "dtm": (python(DTM, "True"),),
    "bench": (python(BENCH, "True"),),
    "doors": (
        Use("turing-programs export onnx bb2 -o bb2.onnx"),
        Use("turing-programs export hugging-face bb2 -o bb2"),
        python(DOORS, "True"),
    ),
    "notebooks": (python("import nbclient, nbformat, ipykernel"),),
    "docs": (python("import pdoc"),),
}
