"""The theorem's lemmas as formulas for z3 and cvc5, for every machine at once."""
