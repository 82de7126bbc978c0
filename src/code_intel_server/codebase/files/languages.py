"""The languages we know: how a file's language is known, how its comments look, and which grammar reads it (SPEC 8).

The table is data and costs nothing to import; grammars are loaded by `syntax.grammars` on first use. A language without a
grammar still has its comment markers, for the text rules.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath


class LanguageKind(StrEnum):
    """What a file of the language is for."""

    CODE = "code"
    MARKUP = "markup"
    CONFIG = "config"
    DOCS = "docs"
    STYLE = "style"


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `grammar` is the grammar's name, '' where there is none; `extensions` with their dot, lower case.

    `file_names` are whole names in lower case, `shebangs` the interpreters of a `#!` line without version digits. `tree`:
    the grammar finds its definitions better than ctags does (`benchmarks/definitions.md`). `stubs` are regular expressions of
    whole statements in the place of code not yet written, besides those of any language (`evidence.stubs`).
    """

    name: str
    kind: LanguageKind
    grammar: str
    extensions: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    line_comments: tuple[str, ...] = ()
    block_comments: tuple[tuple[str, str], ...] = ()
    tree: bool = False
    stubs: tuple[str, ...] = ()


_C_BLOCK = (("/*", "*/"),)
_XML_BLOCK = (("<!--", "-->"),)


def _language(
    name: str,
    kind: LanguageKind,
    grammar: str,
    endings: str,
    line: str = "",
    block: tuple[tuple[str, str], ...] = (),
    names: str = "",
    shebangs: str = "",
    *,
    tree: bool = False,
    stubs: tuple[str, ...] = (),
) -> Language:
    """A row: blank-separated lists, file endings written without their dot."""
    return Language(
        name=name,
        kind=kind,
        grammar=grammar,
        extensions=tuple("." + ending for ending in endings.split()),
        file_names=tuple(names.split()),
        shebangs=tuple(shebangs.split()),
        line_comments=tuple(line.split()),
        block_comments=block,
        tree=tree,
        stubs=stubs,
    )


_CODE, _MARKUP, _CONFIG, _DOCS, _STYLE = LanguageKind

LANGUAGES: tuple[Language, ...] = (
    _language("python", _CODE, "python", "py pyi pyw", "#", names="sconstruct sconscript", shebangs="python pypy",
              stubs=(r"pass", r"\.\.\.", r"Ellipsis", r"return\s+\.\.\.")),
    _language("javascript", _CODE, "javascript", "js jsx mjs cjs", "//", _C_BLOCK, shebangs="node deno bun", tree=True),
    _language("typescript", _CODE, "typescript", "ts mts cts", "//", _C_BLOCK, shebangs="ts-node tsx", tree=True),
    _language("tsx", _CODE, "tsx", "tsx", "//", _C_BLOCK, tree=True),
    _language("java", _CODE, "java", "java", "//", _C_BLOCK),
    _language("kotlin", _CODE, "kotlin", "kt kts", "//", _C_BLOCK, shebangs="kotlin",
              tree=True, stubs=(r"(?:return\s+)?TODO\s*\(.*\)",)),
    _language("scala", _CODE, "scala", "scala sc sbt", "//", _C_BLOCK, shebangs="scala",
              tree=True, stubs=(r"(?:return\s+)?\?\?\?",)),
    _language("groovy", _CODE, "groovy", "groovy gradle gvy", "//", _C_BLOCK, names="jenkinsfile", shebangs="groovy",
              tree=True),
    _language("c", _CODE, "c", "c h", "//", _C_BLOCK,
              stubs=(r"#\s*error\s+\"?<NOT YET>\"?",)),
    _language("cpp", _CODE, "cpp", "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp", "//", _C_BLOCK,
              stubs=(r"#\s*error\s+\"?<NOT YET>\"?",)),
    _language("cuda", _CODE, "cuda", "cu cuh", "//", _C_BLOCK),
    _language("objective-c", _CODE, "objc", "m mm", "//", _C_BLOCK,
              stubs=(r"\[self\s+doesNotRecognizeSelector:\s*_cmd\s*\]",)),
    _language("csharp", _CODE, "csharp", "cs csx", "//", _C_BLOCK),
    _language("fsharp", _CODE, "fsharp", "fs fsx fsi", "//", (("(*", "*)"),),
              stubs=(r"raise\s*\(?\s*(?:new\s+|System\.)*<EXCEPTION>.*",)),
    _language("go", _CODE, "go", "go", "//", _C_BLOCK),
    _language("rust", _CODE, "rust", "rs", "//", _C_BLOCK, shebangs="rust-script",
              tree=True, stubs=(r"(?:\w+::)*(?:todo|unimplemented)!\s*[({\[].*",)),
    _language("swift", _CODE, "swift", "swift", "//", _C_BLOCK, shebangs="swift", tree=True),
    _language("dart", _CODE, "dart", "dart", "//", _C_BLOCK, shebangs="dart",
              tree=True, stubs=(r"throw\s+UnimplementedError.*",)),
    _language("zig", _CODE, "zig", "zig zon", "//",
              tree=True, stubs=(r"unreachable",)),
    _language("d", _CODE, "d", "d di", "//", (*_C_BLOCK, ("/+", "+/"))),
    _language("solidity", _CODE, "solidity", "sol", "//", _C_BLOCK, tree=True),
    _language("gdscript", _CODE, "gdscript", "gd", "#",
              stubs=(r"pass",)),
    _language("glsl", _CODE, "glsl", "glsl vert frag geom comp tesc tese", "//", _C_BLOCK),
    _language("ruby", _CODE, "ruby", "rb rake gemspec ru podspec", "#", (("=begin", "=end"),),
              names="rakefile gemfile vagrantfile guardfile podfile fastfile capfile", shebangs="ruby jruby", tree=True),
    _language("php", _CODE, "php", "php phtml php3 php4 php5 phps inc", "// #", _C_BLOCK, shebangs="php", tree=True),
    _language("perl", _CODE, "perl", "pl pm t psgi", "#", (("=pod", "=cut"),), shebangs="perl",
              stubs=(r"\.\.\.",)),
    _language("lua", _CODE, "lua", "lua rockspec", "--", (("--[[", "]]"),), shebangs="lua luajit", tree=True),
    _language("luau", _CODE, "luau", "luau", "--", (("--[[", "]]"),)),
    _language("elixir", _CODE, "elixir", "ex exs", "#", shebangs="elixir",
              tree=True, stubs=(r"nil",)),
    _language("erlang", _CODE, "erlang", "erl hrl escript", "%", names="rebar.config", shebangs="escript",
              stubs=(r"(?:erlang:)?(?:error|exit|throw)\(\s*\{?\s*(?:not_implemented|todo|undef)\b.*\)",)),
    _language("haskell", _CODE, "haskell", "hs", "--", (("{-", "-}"),), shebangs="runhaskell runghc",
              stubs=(r"undefined", r"error\s+\$?\s*\"[^\"]*\"")),
    _language("ocaml", _CODE, "ocaml", "ml", "", (("(*", "*)"),), shebangs="ocaml",
              stubs=(r"assert\s+false", r"raise\s+Not_implemented.*", r"failwith\s+\"TODO.*")),
    _language("ocaml-interface", _CODE, "ocaml_interface", "mli", "", (("(*", "*)"),)),
    _language("elm", _CODE, "elm", "elm", "--", (("{-", "-}"),),
              stubs=(r"Debug\.todo.*",)),
    _language("clojure", _CODE, "clojure", "clj cljs cljc edn bb", ";", names="", shebangs="clojure bb",
              tree=True, stubs=(r"\(throw\s+\((?:new\s+)?[\w.]*<EXCEPTION>.*", r"\(throw\s+\((?:ex-info|Exception\.|Error\.)\s*<QUOTED>.*")),
    _language("commonlisp", _CODE, "commonlisp", "lisp cl lsp asd", ";", (("#|", "|#"),), shebangs="sbcl",
              stubs=(r"\(error\s+<QUOTED>.*\)", r"nil")),
    _language("emacs-lisp", _CODE, "elisp", "el", ";", names=".emacs",
              stubs=(r"\(error\s+<QUOTED>.*\)", r"nil")),
    _language("scheme", _CODE, "scheme", "scm ss sld", ";", (("#|", "|#"),), shebangs="guile",
              stubs=(r"\(error\s+.*<QUOTED>.*\)",)),
    _language("racket", _CODE, "racket", "rkt", ";", (("#|", "|#"),), shebangs="racket",
              stubs=(r"\(error\s+.*<QUOTED>.*\)",)),
    _language("julia", _CODE, "julia", "jl", "#", (("#=", "=#"),), shebangs="julia",
              stubs=(r"nothing",)),
    _language("r", _CODE, "r", "r", "#", names=".rprofile", shebangs="rscript"),
    _language("matlab", _CODE, "matlab", "matlab", "%", (("%{", "%}"),)),
    _language("fortran", _CODE, "fortran", "f90 f95 f03 f08 f for", "!",
              stubs=(r"(?:error\s+)?stop\s+<QUOTED>",)),
    _language("ada", _CODE, "ada", "adb ads", "--"),
    _language("pascal", _CODE, "pascal", "pas pp dpr lpr", "//", (("{", "}"), ("(*", "*)"))),
    _language("verilog", _CODE, "verilog", "v vh sv svh", "//", _C_BLOCK),
    _language("vhdl", _CODE, "vhdl", "vhd vhdl", "--"),
    _language("tcl", _CODE, "tcl", "tcl tk", "#", shebangs="tclsh wish"),
    _language("nim", _CODE, "nim", "nim nims", "#", (("#[", "]#"),),
              stubs=(r"discard",)),
    _language("odin", _CODE, "odin", "odin", "//", _C_BLOCK),
    _language("haxe", _CODE, "haxe", "hx", "//", _C_BLOCK),
    _language("actionscript", _CODE, "actionscript", "as", "//", _C_BLOCK),
    _language("gleam", _CODE, "gleam", "gleam", "//",
              stubs=(r"todo\b.*",)),
    _language("starlark", _CODE, "starlark", "bzl star", "#", names="build build.bazel workspace workspace.bazel module.bazel",
              stubs=(r"pass", r"\.\.\.")),
    _language("bash", _CODE, "bash", "sh bash zsh ksh ebuild", "#",
              names=".bashrc .bash_profile .profile .zshrc pkgbuild", shebangs="sh bash zsh dash ksh ash",
              stubs=(r":", r"return 0|true")),
    _language("fish", _CODE, "fish", "fish", "#", shebangs="fish",
              stubs=(r":",)),
    _language("powershell", _CODE, "powershell", "ps1 psm1 psd1", "#", (("<#", "#>"),), shebangs="pwsh"),
    _language("vim", _CODE, "vim", "vim", '"', names=".vimrc vimrc"),
    _language("awk", _CODE, "", "awk", "#", shebangs="awk gawk mawk"),
    _language("batch", _CODE, "", "bat cmd", ":: REM rem"),
    _language("assembly", _CODE, "asm", "asm s", "; # //", _C_BLOCK),
    _language("sql", _CODE, "sql", "sql ddl dml", "--", _C_BLOCK,
              stubs=(r"RAISE\s+EXCEPTION\s+<QUOTED>.*", r"NULL")),
    _language("graphql", _CODE, "graphql", "graphql gql graphqls", "#", tree=True),
    _language("protobuf", _CODE, "proto", "proto", "//", _C_BLOCK),
    _language("thrift", _CODE, "thrift", "thrift", "// #", _C_BLOCK),
    _language("prisma", _CODE, "prisma", "prisma", "//"),
    _language("smithy", _CODE, "smithy", "smithy", "//"),
    _language("html", _MARKUP, "html", "html htm xhtml", "", _XML_BLOCK),
    _language("vue", _MARKUP, "vue", "vue", "", _XML_BLOCK, tree=True),
    _language("svelte", _MARKUP, "svelte", "svelte", "", _XML_BLOCK, tree=True),
    _language("astro", _MARKUP, "astro", "astro", "", _XML_BLOCK, tree=True),
    _language("erb", _MARKUP, "embeddedtemplate", "erb ejs", "", (("<%#", "%>"), *_XML_BLOCK)),
    _language("jinja", _MARKUP, "html", "j2 jinja jinja2", "", (("{#", "#}"), *_XML_BLOCK)),
    _language("twig", _MARKUP, "html", "twig", "", (("{#", "#}"), *_XML_BLOCK)),
    _language("handlebars", _MARKUP, "html", "hbs handlebars mustache", "", (("{{!", "}}"), *_XML_BLOCK)),
    _language("razor", _MARKUP, "html", "cshtml razor", "", (("@*", "*@"), *_XML_BLOCK)),
    _language("xml", _MARKUP, "xml", "xml xsd xsl xslt svg plist csproj vbproj fsproj props targets xaml pom wsdl", "", _XML_BLOCK),
    _language("css", _STYLE, "css", "css", "", _C_BLOCK, tree=True),
    _language("scss", _STYLE, "scss", "scss", "//", _C_BLOCK, tree=True),
    _language("less", _STYLE, "scss", "less", "//", _C_BLOCK, tree=True),
    _language("sass", _STYLE, "", "sass styl", "//", _C_BLOCK),
    _language("json", _CONFIG, "json", "json jsonc json5 webmanifest ipynb geojson", "//", _C_BLOCK,
              names=".babelrc .eslintrc .prettierrc composer.lock pipfile.lock"),
    _language("yaml", _CONFIG, "yaml", "yaml yml", "#", names=".clang-format .clang-tidy"),
    _language("toml", _CONFIG, "toml", "toml", "#", names="cargo.lock pipfile poetry.lock uv.lock"),
    _language("ini", _CONFIG, "ini", "ini cfg conf editorconfig desktop service", "# ;", names=".gitconfig .editorconfig .npmrc .flake8 .pylintrc"),
    _language("properties", _CONFIG, "properties", "properties env", "# !", names=".env"),
    _language("hcl", _CONFIG, "hcl", "hcl nomad", "# //", _C_BLOCK, tree=True),
    _language("terraform", _CONFIG, "terraform", "tf tfvars", "# //", _C_BLOCK, tree=True),
    _language("bicep", _CONFIG, "bicep", "bicep", "//", _C_BLOCK),
    _language("nix", _CONFIG, "nix", "nix", "#", _C_BLOCK),
    _language("jsonnet", _CONFIG, "jsonnet", "jsonnet libsonnet", "// #", _C_BLOCK),
    _language("puppet", _CONFIG, "puppet", "", "#"),
    _language("rego", _CONFIG, "rego", "rego", "#"),
    _language("dockerfile", _CONFIG, "dockerfile", "dockerfile containerfile", "#", names="dockerfile containerfile"),
    _language("makefile", _CONFIG, "make", "mk mak make", "#", names="makefile gnumakefile"),
    _language("cmake", _CONFIG, "cmake", "cmake", "#", (("#[[", "]]"),), names="cmakelists.txt"),
    _language("meson", _CONFIG, "meson", "", "#", names="meson.build meson_options.txt"),
    _language("ninja", _CONFIG, "ninja", "ninja", "#"),
    _language("go-module", _CONFIG, "gomod", "", "//", names="go.mod go.work"),
    _language("requirements", _CONFIG, "requirements", "", "#", names="requirements.txt"),
    _language("gitignore", _CONFIG, "gitignore", "", "#", names=".gitignore .dockerignore .ignore .rgignore .npmignore"),
    _language("markdown", _DOCS, "markdown", "md markdown mdx mkd mdown qmd rmd", "", _XML_BLOCK, names=""),
    _language("rst", _DOCS, "rst", "rst rest", ".."),
    _language("latex", _DOCS, "latex", "tex sty cls ltx", "%"),
    _language("org", _DOCS, "org", "org", "#"),
    _language("typst", _DOCS, "typst", "typ", "//", _C_BLOCK),
    _language("asciidoc", _DOCS, "", "adoc asciidoc", "//", (("////", "////"),)),
    _language("text", _DOCS, "", "txt text log pod rdoc textile wiki mediawiki creole", "",
              names="readme license licence unlicense copying authors notice changelog changes contributing "
              "contributors credits history install news thanks todo"),
)  # fmt: skip

LANGUAGES_BY_NAME: dict[str, Language] = {language.name: language for language in LANGUAGES}
_BY_EXTENSION = {ending: language for language in LANGUAGES for ending in language.extensions}
_BY_FILE_NAME = {name: language for language in LANGUAGES for name in language.file_names}
_BY_SHEBANG = {program: language for language in LANGUAGES for program in language.shebangs}

# Templates carry the ending of what they produce before their own: `page.html.erb`, `app.conf.j2`.
_CPP_HEADER = re.compile(
    rb"^[^\S\n]*+(?:class\s+\w|namespace\b|template\s*<|using\s|public:|private:|#include\s*<[a-z_]+>)", re.M
)
_OBJC_HEADER = re.compile(rb"^[^\S\n]*+(?:@interface|@protocol|@class|#import)\b", re.M)
_MATLAB_SOURCE = re.compile(rb"\A\s*(?:%|function\b|classdef\b|clear\b|clc\b|close all)")
_CAPITALS = re.compile(r"[A-Z]+(?![A-Za-z])")
_LATEX_CLASS = re.compile(rb"^[^\S\n]*+\\[A-Za-z@]|\A\s*%", re.M)
_PROLOG_OR_TEXT = re.compile(rb"\A\s*:-")


def language_of(path: str, first_line: bytes = b"") -> Language | None:
    """The language of a file by its name, else by its shebang; None where neither tells.

    `first_line` may be the whole head of the file: the more of it, the surer the shared endings (`.h` is C, C++ or
    Objective-C, `.m` Objective-C or MATLAB) are distinguished.
    """
    written = path.rstrip("/").rpartition("/")[2]  # for every file of a project: pathlib would take ten times as long
    name = written.lower()
    if named := _BY_FILE_NAME.get(name):
        # A program may be called `install`.
        return (named.kind is LanguageKind.DOCS and _by_shebang(first_line)) or named
    ending = _ending(name)
    if ending in _BY_EXTENSION:
        return _shared_ending(ending, _BY_EXTENSION[ending], first_line)
    return _by_stem(written) or _by_shebang(first_line)


def _ending(name: str) -> str:
    _, dot, ending = name.rpartition(".")
    return dot + ending


def _shared_ending(ending: str, usual: Language, head: bytes) -> Language | None:
    """Distinguish the languages that share an ending."""
    if ending == ".h":
        if _OBJC_HEADER.search(head):
            return LANGUAGES_BY_NAME["objective-c"]
        return LANGUAGES_BY_NAME["cpp"] if _CPP_HEADER.search(head) else usual
    if ending == ".m" and _MATLAB_SOURCE.match(head):
        return LANGUAGES_BY_NAME["matlab"]
    if ending == ".cls" and head and not _LATEX_CLASS.search(head):
        return None
    if ending == ".pl" and _PROLOG_OR_TEXT.match(head):
        return None
    return usual


def _by_stem(name: str) -> Language | None:
    """`Dockerfile.dev`, `Makefile.am`, `.env.local`: the name before its suffix tells; of documents where it is in capitals (`LICENSE-MIT`)."""
    stem = name.lstrip(".").partition(".")[0]
    dotted = "." + stem if name.startswith(".") else stem
    found = _BY_FILE_NAME.get(dotted.lower())
    if found and found.kind is not LanguageKind.DOCS:
        return found
    capitals = _CAPITALS.match(name)
    document = _BY_FILE_NAME.get(capitals[0].lower()) if capitals else None
    return document if document and document.kind is LanguageKind.DOCS else None


def _by_shebang(first_line: bytes) -> Language | None:
    """`#!/usr/bin/env -S python3.11 -u` → python."""
    if not first_line.startswith(b"#!"):
        return None
    words = first_line.partition(b"\n")[0][2:].decode("utf-8", "replace").split()
    for word in words:
        program = PurePosixPath(word).name.lower()
        if program == "env" or word.startswith("-") or "=" in word:
            continue
        return _BY_SHEBANG.get(program.rstrip("0123456789.")) or _BY_SHEBANG.get(program)
    return None
