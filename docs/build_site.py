"""The site: pages, notebooks, the live demos and the reference, in one folder that can be published as it is.

python docs/build_site.py build/site            # `make docs` runs this
python docs/build_site.py build/site --quick    # notebooks as they are, not executed
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rasp", "proofs_check", "compile", "experiments")
PAGES = {
    "architecture": "Architecture",
    "language": "The language",
    "theorem": "The theorem and its proof",
    "compiler": "The compiler",
    "circuits": "A zoo with known circuits, and doors",
    "results": "Learned against compiled",
    "machines": "Machines, programs and tasks of your own",
    "training-notes": "Training notes",
    "sizing": "What large runs take",
}
DEMOS = {  # file: the command that makes it
    "playground": ("Playground: machines and sums, live", ["playground"]),
    "inspector": ("Inspector: busy beaver 3, compiled", ["inspect", "compiled", "bb3", "--steps", "8"]),
}
STYLE = """
:root { color-scheme: light dark; --edge: #8884; --code: #8881; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.2rem 5rem; }
nav { border-bottom: 1px solid var(--edge); margin-bottom: 1.5rem; padding-bottom: .6rem; font-size: .9rem; }
nav a { margin-right: .9rem; white-space: nowrap; }
pre, code { font: .86rem/1.5 ui-monospace, monospace; background: var(--code); border-radius: 4px; }
pre { padding: .7rem .9rem; overflow-x: auto; } code { padding: .1em .25em; } pre code { padding: 0; background: none; }
.output pre { background: none; white-space: pre-wrap; border-left: 3px solid var(--edge); border-radius: 0; }
img { max-width: 100%; background: #fff; border-radius: 4px; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .92rem; }
td, th { border-bottom: 1px solid var(--edge); padding: .3rem .6rem; text-align: left; vertical-align: top; }
blockquote { border-left: 3px solid var(--edge); margin-left: 0; padding-left: 1rem; }
"""


def main(arguments: list[str]) -> None:
    places = [argument for argument in arguments if not argument.startswith("--")]
    if len(places) != 1 or set(arguments) - {*places, "--quick"}:
        sys.exit("usage: python docs/build_site.py FOLDER [--quick]")
    build(Path(places[0]), quick="--quick" in arguments)


def build(site: Path, quick: bool = False) -> None:
    """Everything, afresh; what is there is replaced."""
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    notebooks = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    say("pages")
    for name in PAGES:
        write(
            site / f"{name}.html", PAGES[name], from_markdown((ROOT / "docs" / f"{name}.md").read_text(), ROOT / "docs")
        )
    for name, path in notebooks.items():
        say(f"notebook {name}")
        write(site / f"{name}.html", title_of(name), from_notebook(path, execute=not quick))
    made = [name for name, (_, command) in DEMOS.items() if demo(site / f"{name}.html", command)]
    say("reference")
    reference(site / "reference")
    write(site / "index.html", "turing-programs", index(list(notebooks), made))
    copy_files(site)
    broken = broken_links(site)
    if broken:
        sys.exit(f"the site has links that lead nowhere: {', '.join(broken[:5])}")
    say(f"{site}: {sum(1 for _ in site.rglob('*.html'))} pages")


def say(text: str) -> None:
    print(text, file=sys.stderr)


# --- pages ------------------------------------------------------------------------------------------------------------


def write(path: Path, title: str, body: str) -> None:
    links = [("index", "start"), *((name, name) for name in PAGES), ("reference/index", "reference")]
    nav = "".join(f'<a href="{name}.html">{text}</a>' for name, text in links)
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{html.escape(title)}</title>"
    path.write_text(f"<!doctype html>{head}<style>{STYLE}</style><nav>{nav}</nav>{body}\n", encoding="utf-8")


def from_markdown(text: str, origin: Path = ROOT) -> str:
    """HTML of a text that stands in the folder `origin`; links to files of the repository lead to their place here."""
    import markdown2

    found = str(markdown2.markdown(text, extras=["tables", "fenced-code-blocks", "header-ids", "code-friendly"]))
    return re.sub(r'(href|src)="([^"#]+)((?:#[^"]*)?)"', lambda match: _here(match, origin), found)


def _here(match: re.Match[str], origin: Path) -> str:
    kind, target, anchor = match.groups()
    if "://" in target:
        return match[0]
    path = (origin / target).resolve()
    if path.suffix in (".md", ".ipynb"):
        known = path.stem in PAGES or path.suffix == ".ipynb"
        return f'{kind}="{path.stem if known else "index"}.html{anchor}"'
    if path.is_dir():
        return f'{kind}="index.html"'
    return f'{kind}="files/{path.relative_to(ROOT)}"' if path.is_relative_to(ROOT) else match[0]


def copy_files(site: Path) -> None:
    """What the pages show or link to: pictures, sources."""
    for page in site.glob("*.html"):
        for target in re.findall(r'(?:href|src)="files/([^"]+)"', page.read_text(encoding="utf-8")):
            if (ROOT / target).is_file():
                (site / "files" / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / target, site / "files" / target)


def index(notebooks: list[str], demos: list[str]) -> str:
    """The README, and links to all the rest."""

    def listed(names: list[str], title: Callable[[str], str]) -> str:
        return "<ul>" + "".join(f'<li><a href="{n}.html">{html.escape(title(n))}</a></li>' for n in names) + "</ul>"

    parts = [from_markdown((ROOT / "README.md").read_text()), "<h2>Learn it in an hour</h2>"]
    parts += [listed(notebooks, title_of), "<h2>Try it here</h2>", listed(demos, lambda name: DEMOS[name][0])]
    parts += ["<h2>Pages</h2>", listed([*PAGES], PAGES.__getitem__)]
    return "".join([*parts, '<p><a href="reference/index.html">Reference of every module</a></p>'])


def broken_links(site: Path) -> list[str]:
    """Links of our own pages to files that are not there."""
    found = []
    for page in site.glob("*.html"):
        if page.stem in DEMOS:
            continue
        for target in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text(encoding="utf-8")):
            if not target.startswith("data") and not (site / target).exists():
                found.append(f"{page.name} -> {target}")
    return found


# --- notebooks, demos, reference --------------------------------------------------------------------------------------


def title_of(name: str) -> str:
    number, _, words = name.partition("-")
    return f"{number}. {words.replace('-', ' ').capitalize()}"


def from_notebook(path: Path, execute: bool) -> str:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    if execute:
        from nbclient import NotebookClient

        NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(from_markdown(cell.source, path.parent))
        else:
            parts.append(f"<pre><code>{html.escape(cell.source)}</code></pre>")
            parts += [shown for output in cell.outputs if (shown := from_output(output))]
    return "".join(parts)


def from_output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f'<div class="output"><img alt="figure" src="data:image/png;base64,{data["image/png"].strip()}"></div>'
    plain = output["text"] if output["output_type"] == "stream" else data.get("text/plain", "")
    quiet = output.get("name") == "stderr" or "<IPython" in plain
    return "" if quiet or not plain else f'<div class="output"><pre>{html.escape(plain)}</pre></div>'


def demo(path: Path, command: list[str]) -> bool:
    """Whether the command made the page; one that fails is named and left out."""
    say(f"demo {path.stem}")
    full = [sys.executable, "-m", "experiments.cli", *command, "-o", str(path)]
    done = subprocess.run(full, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode or not path.exists():
        say(f"  left out: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no page was written'}")
        return False
    return True


def reference(folder: Path) -> None:
    """Every module from its docstrings."""
    import pdoc

    pdoc.render.configure(docformat="markdown", footer_text="turing-programs")
    sys.path.insert(0, str(ROOT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a module was named beside its package
        pdoc.pdoc(*modules(), output_directory=folder.absolute())


def modules() -> list[str]:
    """All of them: pdoc by itself leaves out what a package's `__all__` does not name."""
    files = [path.relative_to(ROOT).with_suffix("") for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    names = [".".join(path.parts[:-1] if path.name == "__init__" else path.parts) for path in files]
    return sorted(name for name in names if not name.endswith("__main__"))


if __name__ == "__main__":
    main(sys.argv[1:])
