"""find_references and find_definitions(at=…) held against what compilers and language servers say of the same symbols.

    python benchmarks/resolution.py TRUTH.json ... [--wrong]

A TRUTH file comes from one of `benchmarks/resolution_oracles/`: symbols drawn by a seed in three strata (a name that is defined
once, two to five times, more often) with the lines on which each is used, and places with their definitions. Lines that no
oracle can decide (`undecided`) and files that it did not read (outside of `below`) are left out. Everything is asked through the
public door, by place. Prints a Markdown table; with --wrong also each row that differs.
"""

import argparse
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from code_intel_server.codebase.answers import Page
from code_intel_server.codebase.explorer import Explorer
from code_intel_server.codebase.files.project import ProjectScope
from code_intel_server.codebase.references.finder import collect
from code_intel_server.errors import Rejected
from code_intel_server.tools.shaping import answer_rows as shaped
from code_intel_server.tools.shaping import size_of

Place = tuple[str, int]
STRATA = ("unique", "few", "common")
HEAD = (
    "| repository | stratum | symbols | uses | by name: precision | certain: precision | recall | with possible: recall "
    "| page 1: true | bytes a true use | median s |"
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("truths", nargs="+", type=Path)
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    print(HEAD + "\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    wrong: list[str] = []
    went: list[str] = []
    for path in options.truths:
        truth = json.loads(path.read_text(encoding="utf-8"))
        explorer = Explorer(truth["root"], keeps=False)
        explorer.refresh_all()
        for stratum in STRATA:
            symbols = [one for one in truth["symbols"] if one["stratum"] == stratum]
            if symbols:
                print(row(path.stem, stratum, [compared(explorer, truth, one, wrong) for one in symbols]), flush=True)
        went.append(gone_to(path.stem, explorer, truth["sites"], wrong))
    print(
        "\n| repository | places | defined in the project | right first | said to be outside, rightly |\n|---|--:|--:|--:|--:|"
    )
    print("\n".join(went))
    if options.wrong:
        print("\n".join(wrong))


def compared(explorer: Explorer, truth: dict[str, Any], symbol: dict[str, Any], wrong: list[str]) -> Counter[str]:
    """The counts of one symbol."""
    at = f"{symbol['path']}:{symbol['line']}:{symbol['column'] + 1}"
    undecided = {(path, line) for path, line in symbol.get("undecided", ())}

    def judged(path: str, line: int) -> bool:
        is_read = (
            path.startswith(tuple(truth.get("below", ("",))))
            and not path.startswith(tuple(truth.get("beside", ())))
            and path.endswith(tuple(truth["exts"]))
        )
        return is_read and (path, line) not in undecided

    by_name = {
        (row.path, row.start_line)
        for row in collect(ProjectScope.at(truth["root"], keeps=False), (symbol["name"],)).rows
        if judged(row.path, row.start_line)
    }
    uses = {(path, line) for path, line in symbol["uses"]} & by_name
    started = time.perf_counter()
    first = explorer.find_references(at=at)
    seconds = time.perf_counter() - started
    bindings: dict[Place, str] = {}
    page = first
    while True:
        for one in page.results:
            place = (one.path, one.start_line)
            if judged(*place) and bindings.get(place) != "certain" and place in by_name:
                bindings[place] = str(one.binding)
        if page.next_offset is None:
            break
        page = explorer.find_references(at=at, page=Page(1000, page.next_offset))
    certain = {place for place, binding in bindings.items() if binding == "certain"}
    shown = {(one.path, one.start_line) for one in first.results} & by_name
    name = f"{symbol['owner']}.{symbol['name']} ({at})"
    wrong += [f"not {name}: {path}:{line}" for path, line in sorted(certain - uses)]
    wrong += [f"missed {name}: {path}:{line}" for path, line in sorted(uses - set(bindings))]
    return Counter(
        uses=len(uses),
        by_name=len(by_name),
        certain=len(certain),
        certain_true=len(certain & uses),
        told_true=len(uses & set(bindings)),
        shown=len(shown),
        shown_true=len(shown & uses),
        bytes=size_of(shaped(first)),
        ms=round(seconds * 1000),
    )


def row(name: str, stratum: str, counts: list[Counter[str]]) -> str:
    """The line of one repository and stratum."""
    total = sum(counts, Counter[str]())

    def share(part: str, whole: str) -> str:
        return f"{total[part] / total[whole]:.3f}" if total[whole] else ""

    seconds = statistics.median(one["ms"] for one in counts) / 1000
    return (
        f"| {name} | {stratum} | {len(counts)} | {total['uses']} | {share('uses', 'by_name')} | {share('certain_true', 'certain')} "
        f"| {share('certain_true', 'uses')} | {share('told_true', 'uses')} | {share('shown_true', 'shown')} "
        f"| {total['bytes'] / max(total['shown_true'], 1):.0f} | {seconds:.2f} |"
    )


def gone_to(name: str, explorer: Explorer, sites: list[dict[str, Any]], wrong: list[str]) -> str:
    """The line of one repository's places."""
    counts = Counter[str]()
    for site in sites:
        truth = {(path, line) for path, line in site["truth"] if not path.startswith("/")}
        at = f"{site['path']}:{site['line']}:{site['column'] + 1}"
        try:
            found = explorer.find_definitions(at=at)
        except Rejected:
            counts.update(inside=bool(truth))
            continue
        sure = not any("not known" in note for note in found.notes)
        got = [(one.path, one.start_line) for one in found.results] if sure else []
        right = bool(got and got[0] in truth)
        counts.update(inside=bool(truth), right=right, outside=not truth, said=not truth and not got)
        if truth and not right:
            wrong.append(f"went wrong from {at} {site['name']}: {got[:1]}, not {sorted(truth)[:2]}")
    share = counts["right"] / max(counts["inside"], 1)
    return f"| {name} | {len(sites)} | {counts['inside']} | {share:.3f} | {counts['said']} of {counts['outside']} |"


if __name__ == "__main__":
    main()
