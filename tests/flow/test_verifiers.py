"""Which packaged verifiers are sent as text."""

import pytest

from code_intel_server.flow.checks.verifiers import fitting_verifiers

ALL = {"api", "backend", "database", "docs", "frontend_markup", "generic", "tests"}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["src/app.py"], ("backend",)),
        (["src/app.py", "tests/test_app.py", "src/lib.py"], ("backend", "tests")),
        (["README.md"], ("docs",)),
        (["web/index.html", "web/site.css", "README.md"], ("frontend_markup", "docs")),
        (["db/migrations/001.sql", "db/migrations/002.py"], ("database",)),
        (["src/api/users.py", "proto/users.proto"], ("api",)),
        (["Makefile"], ("generic",)),
        ([], ("generic",)),
    ],
)
def test_the_verifiers_fit_the_changed_files(paths: list[str], expected: tuple[str, ...]) -> None:
    assert fitting_verifiers(paths, ALL) == expected


def test_a_verifier_that_the_project_has_itself_is_not_sent() -> None:
    assert fitting_verifiers(["src/app.py"], ALL - {"backend"}) == ("generic",)


def test_at_most_two_are_sent() -> None:
    assert len(fitting_verifiers(["a.py", "b.md", "c.html", "d.sql"], ALL)) == 2
