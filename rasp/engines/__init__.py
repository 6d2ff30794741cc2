"""Ways to run a program: reference (the definition), eager (numpy), graph, stream (token by token), jit (numba).

`dispatch` has the table from their names, `turing` runs the paper's program on each. They share `predicates` and
`scalar`; stream and jit share the code generator (`codegen`, `spelling`, `ranges`).
"""
