"""The resolvers, one a language: a table of node types and the way its imports find a file."""

from code_intel_server.codebase.resolution.language import Language
from code_intel_server.codebase.resolution.languages.python import Python

LANGUAGES: dict[str, Language] = {"python": Python()}
"""By the language's name."""
