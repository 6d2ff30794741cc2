"""A page that is one file of HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from rasp.files import write_whole


class HtmlPage(ABC):
    """`html`, and `save(path)`."""

    @property
    @abstractmethod
    def html(self) -> str: ...

    def save(self, path: str | Path) -> Path:
        path = Path(path)
        write_whole(path, self.html)
        return path
