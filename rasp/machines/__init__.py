"""Turing machines: tables with names (`machine`), tapes as tokens and text (`tape`), fast runs (`simulate`).

`simulable` tags any machine's cells so that the theorem applies; `state_graph` and `partial` look at its states.
Nothing here knows RASP-L's engines.
"""
