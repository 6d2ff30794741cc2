"""Pages of the inspector, and how all this was made."""

from __future__ import annotations

from collections.abc import Sequence

from compile.markup import Markup, joined, markup
from experiments.comparison.sections.pieces import NOTHING, duration, facts, folded, table, with_small
from experiments.comparison.summary import Record, Results, length_text, promises_kept, times_of, words_of

INSPECTOR = """<p>Compiled and learned model side by side on one trace, with every head's attention, step by step. Any
other trace: <code>turing-programs inspect compiled MACHINE TAPE --no-tags --n 4 --against CHECKPOINT</code>.</p>"""
NUMBERS = """<a href="results.json">results.json</a>: this page is drawn from it alone; <code>turing-programs compare
--from results.json --markdown</code> prints the summary table"""


def kicker(results: Results) -> str:
    machines = results["machines"]
    if "task" in results:
        return f"Turing Programs, learned against compiled · {results['task']}"
    sizes = sorted({f"{m['states']} states x {m['symbols']} symbols" for m in machines})
    many = f"{machines[0]['name']}, a machine" if len(machines) == 1 else f"{len(machines)} machines"
    return f"Turing machines, learned against compiled · {many} of {' and '.join(sizes)}"


def inspector(results: Results) -> Markup:
    links = [
        (page["file"], f"{machine['name']}, {page['length']} cells: {page['title']}", page.get("live"))
        for machine in results["machines"]
        for page in machine["inspector"]
    ]
    items = [markup('<li><a href="{}">{}</a>{}</li>', file, title, _live(live)) for file, title, live in links]
    return markup('{}<ul class="links">{}</ul>', markup(INSPECTOR), joined(items)) if items else NOTHING


def _live(link: str | None) -> Markup:
    return markup(' · <a href="{}">run it live</a>', link) if link else NOTHING


def method(results: Results) -> Markup:
    (tokens, held), words = promises_kept(results), words_of(results)
    known = {
        "command": markup("<code>{}</code>", results["command"]),
        "time": duration(results["seconds"]),
        "seed": f"{str(results['seed']).strip('[]')}; {words.whole}s come from streams that training never draws from",
        "versions": ", ".join(f"{name} {version}" for name, version in results["versions"].items()),
        "compiled = program": f"{tokens:,} tokens compared, 0 differ",
        f"errors = {words.law}": f"{held:,} {words.whole}s compared, 0 differ",
        **({"without": joined(results["without"], "<br>")} if results.get("without") else {}),
        "numbers": markup(NUMBERS),
    }
    given = folded(f"How many {words.whole}s each simulator was given", _counts(results))
    return joined((facts(known), given))


def _counts(results: Results) -> Markup:
    """Tapes per machine, by length: the fewest and the most that a machine's simulators of a kind were given."""
    given: dict[str, list[Record]] = {}
    for machine in results["machines"]:
        kinds = {
            sim["name"]: f"compiled: {sim['backend']}" if sim["backend"] else sim["kind"]
            for sim in machine["simulators"]
        }
        for row in machine["accuracy"]:
            if row["measure"] == words_of(results).whole:
                given.setdefault(kinds[row["simulator"]], []).append({**row, "machine": machine["name"]})
    columns = times_of(results)
    body = [
        [kind, *(_range(rows, times, len(results["machines"])) for times in columns)] for kind, rows in given.items()
    ]
    whole = words_of(results).whole
    given_to = f"{whole}s" if "task" in results else f"{whole}s per machine"
    return table([given_to, *(length_text(results, times) for times in columns)], body)


def _range(rows: Sequence[Record], times: float, machines: int) -> str:
    here = [row for row in rows if row["times"] == times]
    if not here:
        return "–"
    counts = sorted({row["examples"] for row in here})
    some = len({row["machine"] for row in here})
    given = " – ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return with_small(given, f"{some} of {machines} machines") if some < machines else given
