"""The table of faults names tests that exist, and the page is the summary's."""

import json
import re
from pathlib import Path

import pytest
from benchmarks.faults.mutants import MUTANTS, Mutant
from benchmarks.faults.report import PAGE, SUMMARY, page
from benchmarks.faults.rows import ROWS, Row

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "code_intel_server"


def test_all_sixty_rows_are_there_in_order() -> None:
    assert [row.number for row in ROWS] == list(range(1, 61))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_every_test_that_a_row_names_exists(row: Row) -> None:
    for name in row.tests:
        file, *within = name.split("::")
        source = (TESTS / file).read_text(encoding="utf-8")
        for part in within:
            assert re.search(rf"^\s*(?:def|class) {part}\b", source, re.MULTILINE), name


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.device)
def test_the_text_that_each_mutant_replaces_is_there(mutant: Mutant) -> None:
    assert mutant.text in (SOURCE / mutant.file).read_text(encoding="utf-8")


def test_the_page_is_written_from_the_summary() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(SUMMARY.read_text(encoding="utf-8")))
