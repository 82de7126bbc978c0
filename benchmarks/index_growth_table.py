"""Writes index_growth.md and its two plots from index_growth.json."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measuring
import plots

HERE = Path(__file__).resolve().parent
Size = dict[str, Any]
Take = Callable[[Size], float]


def main(source: Path = HERE / "index_growth.json") -> None:
    """Read, tabulate, draw; the plots stand beside the source."""
    kept = json.loads(source.read_text(encoding="utf-8"))
    sizes: list[Size] = kept["sizes"]
    notes = HERE / "index_growth.notes.md"
    measuring.write(
        "index_growth.md" if source.parent == HERE else "index_growth.quick.md",
        [
            "# How the index grows",
            "",
            f"Written by `index_growth.py`. {kept['machine']}",
            "",
            "Trees of `corpus.py` (three functions a file, about 3.3 chunks). *Stub*: an encoder that costs nothing, so that the index",
            "is compared and not the model; semble and ChromaDB got such vectors too. Runs of a size took turns (but at the largest size, where the peers ran earlier); medians.",
            "",
            "![Cold sync by number of files](growth_sync.svg)",
            "![Search by number of chunks](growth_search.svg)",
            "",
            "## Sync, seconds",
            "",
            *measuring.table(
                ["files", "chunks", "runs", "ours, stub: searchable", "+ ChromaDB filled", "ours, bundled model: searchable", "+ ChromaDB filled",
                 "semble, stub", "ChromaDB raw add", "share of raw: searchable", "filled", "no change", "one file"],
                [_sync(one) for one in sizes],
            ),
            "",
            f"Growth from {sizes[0]['files']:,} to {sizes[-1]['files']:,} files, as the exponent of the number of files (1 is linear): "
            + ", ".join(f"{name} {_exponent(sizes, take):.2f}" for name, take in EXPONENTS.items() if sum(_has([one], take) for one in sizes) > 1)
            + ".",
            "",
            *_processor(sizes),
            "## semantic_search, milliseconds (in the process, 20 questions, five times each)",
            "",
            *measuring.table(
                ["chunks", "p50", "p95", "raw FTS5 + raw ChromaDB p50", "p95", "p50 ÷ raw", "target p50", "result", "MB server", "MB ChromaDB child", "MB on disk"],
                [_search(one) for one in sizes],
            ),
            "",
            *(notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []),
        ],
    )  # fmt: skip
    by_files: list[tuple[str, Take]] = [
        ("ours, bundled model", lambda one: _median(one, "bundled", "cold")),
        ("ours, ChromaDB too", lambda one: _median(one, "bundled", "filled")),
        ("ours, stub", lambda one: _median(one, "stub", "cold")),
        ("semble, stub", lambda one: _median(one, "semble", "cold")),
        ("ChromaDB raw add", lambda one: _median(one, "raw", "add")),
        ("ours, one file", lambda one: _of(one, "one_file")),
        ("ours, no change", lambda one: _of(one, "no_change")),
    ]
    plots.draw(source.with_name("growth_sync.svg"), "Sync by size of the project", "files", "seconds", [
        plots.Series(name, [(one["files"], take(one)) for one in sizes if _has([one], take)], dashed="ours" not in name)
        for name, take in by_files if any(_has([one], take) for one in sizes)
    ])  # fmt: skip
    plots.draw(source.with_name("growth_search.svg"), "semantic_search by size of the index", "chunks", "milliseconds", [
        plots.Series("ours p95", [(_chunks(one), _quantile(one, 0.95)) for one in sizes]),
        plots.Series("ours p50", [(_chunks(one), _quantile(one, 0.5)) for one in sizes]),
        plots.Series("raw FTS5 + ChromaDB p50", [(_chunks(one), _raw(one, 0.5)) for one in sizes], dashed=True),
    ])  # fmt: skip


def _processor(sizes: list[Size]) -> list[str]:
    """The same without the load of the machine: processor time of the process that does the work."""
    known = [one for one in sizes if "cold_cpu" in one["bundled"][0]]
    if not known:
        return []
    rows = [
        [
            one["files"], _chunks(one), _median(one, "stub", "cold_cpu"), _median(one, "bundled", "cold_cpu"),
            _median(one, "semble", "cold_cpu"), _median(one, "raw", "add_cpu"),
            measuring.median([value for run in one["bundled"] for value in run["search_cpu"]]),
        ]
        for one in known
    ]  # fmt: skip
    header = [
        "files",
        "chunks",
        "ours, stub: s",
        "ours, bundled: s",
        "semble, stub: s",
        "ChromaDB raw add: s",
        "one search: ms",
    ]
    return [
        "## Processor time",
        "",
        "Which the load of the machine does not stretch; without the ChromaDB child.",
        "",
        *measuring.table(header, rows),
        "",
    ]


def _median(one: Size, side: str, key: str) -> float:
    known = [run[key] for run in one[side] if key in run]
    return measuring.median(known) if known else math.nan


def _of(one: Size, key: str) -> float:
    return measuring.median([value for run in one["bundled"] for value in run[key]] or [math.nan])


def _chunks(one: Size) -> int:
    return int(one["bundled"][0]["chunks"])


def _quantile(one: Size, share: float) -> float:
    return measuring.median([measuring.quantile(run["search"], share) for run in one["bundled"]])


def _raw(one: Size, share: float) -> float:
    words = measuring.median([measuring.quantile(run["fts5"], share) for run in one["bundled"]])
    return words + measuring.median([measuring.quantile(run["query"], share) for run in one["raw"]])


def _has(sizes: list[Size], take: Take) -> bool:
    return all(not math.isnan(take(one)) for one in sizes)


EXPONENTS: dict[str, Take] = {
    "ours with the stub": lambda one: _median(one, "stub", "cold"),
    "ours with the bundled model": lambda one: _median(one, "bundled", "cold"),
    "ChromaDB filled too": lambda one: _median(one, "bundled", "filled"),
    "semble": lambda one: _median(one, "semble", "cold"),
    "ChromaDB raw": lambda one: _median(one, "raw", "add"),
    "no change": lambda one: _of(one, "no_change"),
    "one file": lambda one: _of(one, "one_file"),
    "search p50": lambda one: _quantile(one, 0.5),
}


def _exponent(sizes: list[Size], take: Take) -> float:
    known = [one for one in sizes if _has([one], take)]
    first, last = known[0], known[-1]
    return math.log(take(last) / take(first)) / math.log(last["files"] / first["files"])


def _sync(one: Size) -> list[object]:
    semble = _median(one, "semble", "cold")
    return [
        one["files"], _chunks(one), one["repeats"], _median(one, "stub", "cold"), _median(one, "stub", "filled"),
        _median(one, "bundled", "cold"), _median(one, "bundled", "filled"), "" if math.isnan(semble) else semble,
        _median(one, "raw", "add"), _median(one, "raw", "add") / _median(one, "bundled", "cold"),
        _median(one, "raw", "add") / _median(one, "bundled", "filled"), _of(one, "no_change"), _of(one, "one_file"),
    ]  # fmt: skip


def _search(one: Size) -> list[object]:
    chunks = _chunks(one)
    limit = 15.0 if chunks <= 12_000 else 60.0 if chunks <= 120_000 else None
    p50 = _quantile(one, 0.5)
    memory = [measuring.median([run["MB"][at] for run in one["bundled"]]) for at in (0, 1)]
    return [
        chunks, p50, _quantile(one, 0.95), _raw(one, 0.5), _raw(one, 0.95), p50 / _raw(one, 0.5),
        "" if limit is None else limit, "" if limit is None else measuring.verdict(p50, limit), *memory,
        _median(one, "bundled", "MB on disk"),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
