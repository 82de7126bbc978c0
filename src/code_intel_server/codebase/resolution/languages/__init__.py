"""The resolvers, one a language: a table of node types and the way its imports find a file."""

from code_intel_server.codebase.resolution.language import LanguageRules
from code_intel_server.codebase.resolution.languages.go import Go
from code_intel_server.codebase.resolution.languages.java import Java
from code_intel_server.codebase.resolution.languages.python import Python
from code_intel_server.codebase.resolution.languages.rust import Rust
from code_intel_server.codebase.resolution.languages.typescript import JavaScript, TypeScript, TypeScriptX

RESOLVERS: dict[str, LanguageRules] = {
    language.name: language for language in (Python(), TypeScript(), TypeScriptX(), JavaScript(), Go(), Java(), Rust())
}
"""By the language's name."""
