"""An empty environment with what is installed into it, and commands run in an empty folder outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 1800  # seconds for one installation or command


@dataclass
class Environment:
    folder: Path
    python: str = sys.executable
    said: dict[str, str] = field(default_factory=dict)  # by command

    def __enter__(self) -> Environment:
        self.home.mkdir(parents=True)
        self._run([self.python, "-m", "venv", str(self.folder / "venv")])
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def install(self, *requirements: str, constraints: Path | None = None) -> None:
        """Modules are compiled when they are imported: most never are, and compiling them all takes minutes."""
        given = ["--constraint", str(constraints)] if constraints else []
        self.run(["python", "-m", "pip", "install", "--quiet", "--no-compile", *given, *requirements])

    def run(self, command: Sequence[str]) -> str:
        """What a program of the environment prints; an error with all of it if it fails."""
        where = self.folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.said[" ".join(command)] = out = self._run([str(where / command[0]), *command[1:]])
        return out

    def _run(self, command: Sequence[str]) -> str:
        outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment = {**outside, "HOME": str(self.home), "PIP_CACHE_DIR": outside.get("PIP_CACHE_DIR", pip_cache())}
        done = subprocess.run(
            list(command), cwd=self.home, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        if done.returncode:
            said = (done.stdout + done.stderr)[-2000:]
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {said}")
        return done.stdout


def pip_cache() -> str:
    """The user's, so that what was downloaded once is not downloaded for each environment."""
    return str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pip")
