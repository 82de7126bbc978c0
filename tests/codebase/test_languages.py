"""A file's language is told by its name, then its shebang, then what it says (SPEC 8)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.files.languages import LANGUAGES, LANGUAGES_BY_NAME, LanguageKind, language_of
from code_intel_server.codebase.syntax.structure import has_queries

KNOWN = {
    "a/b.py": "python", "A.JAVA": "java", "x.tsx": "tsx", "x.d.ts": "typescript", "Dockerfile": "dockerfile",
    "Dockerfile.dev": "dockerfile", "build/Makefile": "makefile", "CMakeLists.txt": "cmake", "page.html.erb": "erb",
    "go.mod": "go-module", ".env.local": "properties", ".gitignore": "gitignore", "README": "text", "README.md": "markdown",
    "Rakefile": "ruby", "a.jinja2": "jinja",
}  # fmt: skip


@pytest.mark.parametrize(("path", "name"), KNOWN.items())
def test_the_name_of_a_file_tells_its_language(path: str, name: str) -> None:
    found = language_of(path)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(("first_line", "name"), [
    (b"#!/bin/sh\n", "bash"), (b"#!/usr/bin/env -S python3.11 -u\n", "python"),
    (b"#!/usr/bin/env FOO=1 node\n", "javascript"), (b"#! /usr/local/bin/ruby2.7 -w", "ruby"),
])  # fmt: skip
def test_the_shebang_tells_where_the_name_does_not(first_line: bytes, name: str) -> None:
    found = language_of("bin/run", first_line)
    assert found is not None
    assert found.name == name


def test_endings_that_languages_share_are_told_apart_by_the_head() -> None:
    heads = {
        ("a.h", b"class Shop {\n"): "cpp",
        ("a.h", b"struct shop;\n"): "c",
        ("a.h", b"@interface Shop\n"): "objective-c",
        ("a.m", b"function f()\n"): "matlab",
        ("a.m", b"#import <A.h>\n"): "objective-c",
    }
    assert {key: found.name for key in heads if (found := language_of(*key))} == heads
    assert language_of("rules.pl", b":- module(a).\n") is None


def test_only_what_is_no_program_is_a_document_by_its_name_alone() -> None:
    documents = ("INSTALL", "TODO", "LICENSE-MIT", "COPYING.LESSER", "README.de", "notes.pod")
    assert {language_of(name, b"Text.\n") for name in documents} == {LANGUAGES_BY_NAME["text"]}
    assert language_of("bin/install", b"#!/bin/sh\n") == LANGUAGES_BY_NAME["bash"]
    for name in ("license.cr", "history.vb", "src/install.xyz", "Readme2", "LICENSEs"):
        assert language_of(name) is None, name


def test_a_class_file_is_latex_where_it_speaks_latex() -> None:
    assert language_of("a.cls") == language_of("a.cls", b"% class\n\\ProvidesClass{a}\n") == LANGUAGES_BY_NAME["latex"]
    assert language_of("A.cls", b"public with sharing class A {\n}\n") is None


def test_unknown_names_have_no_language() -> None:
    assert language_of("data.bin") is None
    assert language_of("run", b"#!/opt/own\n") is None
    assert language_of("") is None


@given(st.text(), st.binary(max_size=200))
def test_any_name_and_head_are_borne(path: str, head: bytes) -> None:
    assert language_of(path, head) in {None, *LANGUAGES}


def test_no_ending_or_name_belongs_to_two_languages() -> None:
    keys = Counter(
        key for item in LANGUAGES for key in {*item.extensions, *item.file_names, *("!" + s for s in item.shebangs)}
    )
    assert {key for key, count in keys.items() if count > 1} <= {".editorconfig", ".env"}


def test_languages_have_unique_names_and_code_has_comments() -> None:
    assert len(LANGUAGES_BY_NAME) == len(LANGUAGES) >= 40
    assert not [
        item.name
        for item in LANGUAGES
        if item.kind is LanguageKind.CODE and not (item.line_comments or item.block_comments)
    ]


def test_no_row_sends_files_to_a_syntax_tree_without_a_query_file() -> None:
    assert [language.name for language in LANGUAGES if language.tree and not has_queries(language)] == []
