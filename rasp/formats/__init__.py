"""Machines as text, one module per format: own JSON, turingmachine.io YAML, bbchallenge lines, automata-lib's DTM.

`rasp.load_machine` and `rasp.save_machine` tell the formats apart; a format knows machines and no other format.
"""
