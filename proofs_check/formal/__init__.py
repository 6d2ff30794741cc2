"""The theorem in Coq: one `.v` file per step of the argument, `Theorem.v` with everything on one page, and what ties
it to the code: `generate` writes the traced program and random texts as Coq files, `check` has Coq check all of it.
"""
