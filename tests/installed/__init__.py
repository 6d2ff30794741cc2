"""The project as a stranger installs it: built, put into an empty environment, and used outside the checkout.

`make packaging` builds wheel and sdist, and installs each extra by itself: EXTRAS="torch proofs" PYTHON=python3.12.
`make packaging LOWEST=1` installs the oldest versions that pyproject.toml allows.
"""
