"""Pages of the inspector, and how all this was made."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.comparison.sections.pieces import duration, facts, folded, table, text
from experiments.comparison.summary import Record, Results, length_text, times_of

INSPECTOR = """<p>Compiled and learned model side by side on one trace, with every head's attention, step by step. Any
other trace: <code>turing-programs inspect compiled MACHINE TAPE --no-tags --n 4 --against CHECKPOINT</code>.</p>"""
NUMBERS = """<a href="results.json">results.json</a>: this page is drawn from it alone; <code>turing-programs compare
--from results.json --markdown</code> prints the summary table"""


def kicker(results: Results) -> str:
    machines = results["machines"]
    sizes = sorted({f"{m['states']} states x {m['symbols']} symbols" for m in machines})
    many = f"{text(machines[0]['name'])}, a machine" if len(machines) == 1 else f"{len(machines)} machines"
    return f"Turing machines, learned against compiled · {many} of {' and '.join(sizes)}"


def inspector(results: Results) -> str:
    links = [
        (page["file"], f"{machine['name']}, {page['length']} cells: {page['title']}")
        for machine in results["machines"]
        for page in machine["inspector"]
    ]
    items = [f'<li><a href="{text(file)}">{text(title)}</a></li>' for file, title in links]
    return f'{INSPECTOR}<ul class="links">{"".join(items)}</ul>' if items else ""


def method(results: Results) -> str:
    checks = results["checks"]
    equal, criterion = checks["compiled_equals_program"], checks["criterion"]
    known = {
        "command": f"<code>{text(results['command'])}</code>",
        "time": duration(results["seconds"]),
        "seed": f"{str(results['seed']).strip('[]')}; tapes come from streams that training never draws from",
        "versions": text(", ".join(f"{name} {version}" for name, version in results["versions"].items())),
        "compiled = program": f"{equal['tokens']:,} tokens compared, {equal['mismatches']} differ",
        "errors = theorem": f"{criterion['tapes']:,} tapes compared, {criterion['mismatches']} differ",
        "numbers": NUMBERS,
    }
    return facts(known) + folded("How many tapes each simulator was given", _counts(results))


def _counts(results: Results) -> str:
    """Tapes per machine, by length: the fewest and the most that a machine's simulators of a kind were given."""
    given: dict[str, list[Record]] = {}
    for machine in results["machines"]:
        kinds = {
            sim["name"]: f"compiled: {sim['backend']}" if sim["backend"] else sim["kind"]
            for sim in machine["simulators"]
        }
        for row in machine["accuracy"]:
            if row["measure"] == "tape":
                given.setdefault(kinds[row["simulator"]], []).append({**row, "machine": machine["name"]})
    columns = times_of(results)
    body = [
        [text(kind), *(_range(rows, times, len(results["machines"])) for times in columns)]
        for kind, rows in given.items()
    ]
    return table(["tapes per machine", *(length_text(results, times) for times in columns)], body)


def _range(rows: Sequence[Record], times: float, machines: int) -> str:
    here = [row for row in rows if row["times"] == times]
    if not here:
        return "–"
    counts = sorted({row["examples"] for row in here})
    some = len({row["machine"] for row in here})
    only = f"<small>{some} of {machines} machines</small>" if some < machines else ""
    return f"{' – '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}{only}"
