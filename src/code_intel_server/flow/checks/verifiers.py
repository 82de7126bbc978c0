"""Which of the packaged verifiers fit a change: by the kinds of the files it touched (SPEC 4, POST_IMPL_VERIFY)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable

from code_intel_server.codebase.files.roles import Role, role

GENERIC = "generic"
AT_MOST = 2

_DATABASE = re.compile(r"\.sql$|(^|/)(migrations?|alembic|schema|db)/|\.prisma$", re.IGNORECASE)
_API = re.compile(
    r"\.(proto|graphql|gql)$|(^|/)(openapi|swagger)[^/]*$|(^|/)(api|apis|routes|controllers|endpoints)(/|\.)",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\.(html?|css|s[ac]ss|less|jsx|tsx|vue|svelte|astro|hbs|ejs|pug|j2|jinja2?|erb)$", re.IGNORECASE)
_DOCS = re.compile(r"\.(md|mdx|rst|adoc|txt)$", re.IGNORECASE)
_CODE = re.compile(
    r"\.(py|pyi|js|mjs|cjs|ts|go|rs|java|kt|kts|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|ex|exs|erl|hs|ml|lua|dart|pl|r|jl)$",
    re.IGNORECASE,
)
_KINDS = ((_DATABASE, "database"), (_API, "api"), (_MARKUP, "frontend_markup"), (_DOCS, "docs"), (_CODE, "backend"))
PACKAGED = frozenset({"tests", GENERIC, *(name for _, name in _KINDS)})
"""The verifiers that come with the server; every other one is the project's own."""


def fitting_verifiers(paths: Iterable[str], available: Collection[str]) -> tuple[str, ...]:
    """The one or two of `available` that fit most of the changed `paths`; the generic one where none does."""
    counted = Counter(_kind(path) for path in paths)
    chosen = [name for name, _ in counted.most_common() if name in available][:AT_MOST]
    return tuple(chosen) or tuple(name for name in (GENERIC,) if name in available)


def _kind(path: str) -> str:
    if role(path) is Role.TESTS:
        return "tests"
    return next((name for pattern, name in _KINDS if pattern.search(path)), GENERIC)
