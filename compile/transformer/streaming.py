"""The tokens of one sequence as they are written, and who writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class TokenStream(Iterator[int]):
    """Iterates over tokens. `engine` is the one at work, `memory_bytes` what it holds of the context by now."""

    def __init__(self, engine: str, tokens: Iterator[int], held: Callable[[], int]) -> None:
        self.engine, self._tokens, self._held = engine, tokens, held
        self._read: Callable[[int], int] | None = None

    def __next__(self) -> int:
        token = next(self._tokens)
        return token if self._read is None else self._read(token)

    def translated(self, read: Callable[[int], int]) -> TokenStream:
        """The same stream, each token read as another."""
        self._read = read
        return self

    @property
    def memory_bytes(self) -> int:
        return self._held()

    def go_on_with(self, other: TokenStream) -> None:
        """From here on it is this one's tokens."""
        self.engine, self._tokens, self._held = other.engine, other._tokens, other._held
