"""A differential fuzzer: random RASP-L programs, run in every way there is and compared with the definition; and the
house's own programs on long texts, their compiled models, saved models, and files of machines.

`make fuzz SECONDS=600 SEED=0`. A mismatch is shrunk to a few lines and printed as a program one can paste.
"""
