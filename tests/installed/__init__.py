"""The project as a stranger installs it: built, put into an empty environment, and used outside the checkout.

`make packaging EXTRAS="torch proofs" WITH=/usr/bin/python3.12` builds wheel and sdist, and installs each extra alone.
`make packaging LOWEST=1` installs the oldest versions that pyproject.toml allows.
"""
