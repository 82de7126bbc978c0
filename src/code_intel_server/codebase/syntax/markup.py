"""Names that style sheets, pages and scripts share: CSS classes and ids, and where each side speaks of them (SPEC 8).

Three dialects: a *style* declares `.name` and `#name` in selectors; a *page* (HTML, Jinja, ERB, PHP, Vue, Svelte, JSX)
bears them in `class` and `id` attributes, a template's own expressions included; a *script* asks for them by selector
string or by `classList` and `getElementById`. Text is read by patterns, not by grammars: templates are valid in none.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from code_intel_server.common.word_set import word_set


class Side(StrEnum):
    """Which dialect a mention speaks."""

    STYLE = "style"
    PAGE = "page"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Mention:
    """A class ('.name') or id ('#name') on a 1-based line."""

    name: str
    line: int
    side: Side


STYLE_SUFFIXES = frozenset({".css", ".scss", ".sass", ".less", ".styl", ".pcss"})
PAGES = word_set(
    ".html .htm .xhtml .jinja .jinja2 .j2 .erb .ejs .hbs .mustache .twig .njk .liquid .php .phtml .vue .svelte "
    ".astro .jsx .tsx .haml .slim .pug .cshtml .razor .heex"
)
SCRIPTS = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".jsx", ".tsx", ".vue", ".svelte", ".astro", ".coffee"})
GLOBS = tuple(sorted(f"*{suffix}" for suffix in STYLE_SUFFIXES | PAGES | SCRIPTS))

_NAME = r"-?[A-Za-z_][\w-]*"
_SELECTOR_NAME = re.compile(rf"([.#])({_NAME})")
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b")
_BLANKED = re.compile(r"/\*.*?(?:\*/|\Z)|(?<![:\"'(])//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|url\([^)]*(?:\)|\Z)", re.DOTALL)
_SELECTOR_LINE = re.compile(r"(?<![^{};])[^{};]++(?=\{)")
_STYLE_BLOCK = (re.compile(r"<style\b", re.IGNORECASE), re.compile(r"</style>", re.IGNORECASE))
_SCRIPT_BLOCK = (re.compile(r"<script\b", re.IGNORECASE), re.compile(r"</script>", re.IGNORECASE))

# The value up to the closing quote, where a template's own quotes inside `{{ }}`, `{% %}`, `<% %>`, `<? ?>` close nothing.
# None begins within one of its kind: what is never closed would else be looked through from each of its beginnings.
_TEMPLATE = r"\{\{(?:(?!\{\{).)*?\}\}|\{%(?:(?!\{%).)*?%\}|<%(?:(?!<%).)*?%>|<\?(?:(?!<\?).)*?\?>|\$?\{[^{}]*\}"
_ATTRIBUTE = re.compile(
    r"(?<![\w-])(?P<bound>:|v-bind:|\[)?(?P<attribute>class(?:Name|List)?|ng-?class|id)\]?\s*+(?:=>?|:)\s*+(?:\{\s*+)?"
    r"(?P<quote>[\"'`])",
    re.IGNORECASE,
)
_VALUE = {quote: re.compile(rf"((?>{_TEMPLATE}|[^{quote}])*?){quote}") for quote in "\"'`"}
_OBJECT_ATTRIBUTE = re.compile(
    r"(?<![\w-])(?::|v-bind:)?class(?:Name|:list)?\s*=\s*(?:\"\s*(?=[{\[])(?P<double>[^\"]*)\"|\{(?!\s*[\"'`])(?P<braces>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\})",
    re.IGNORECASE,
)
_SVELTE_CLASS = re.compile(rf"(?<![\w-])class:({_NAME})")
_HAML_TAG = re.compile(rf"^[ \t]*(?:[%]?\w[\w-]*)?((?:[.#]{_NAME})+)", re.MULTILINE)
_QUOTED_WORDS = re.compile(r"[\"'`]([^\"'`\n]*)[\"'`]")
_OBJECT_KEY = re.compile(rf"(?:[{{,]\s*)({_NAME})\s*:")
_TEMPLATE_PART = re.compile(_TEMPLATE, re.DOTALL)
_CLASS_NAME = re.compile(rf"(?<![\w./#-]){_NAME}(?![\w./(-])")

_BY_SELECTOR = re.compile(
    r"(?:querySelector(?:All)?|closest|matches|\$|jQuery|find|children|parents?|siblings|filter|is|not|on|locator|get|cy\.get)"
    r"\(\s*(?:[\"'][\w ]+[\"']\s*,\s*)?(?P<quote>[\"'`])(?P<selector>[^\"'`\n.#]*+[.#][^\"'`\n]*+)(?P=quote)"
)
_BY_CLASS = re.compile(
    r"(?:getElementsByClassName|classList\.(?:add|remove|toggle|contains|replace)|addClass|removeClass|toggleClass|hasClass)\(([^)]{0,1000})\)"
)
_BY_ID = re.compile(rf"getElementById\(\s*[\"'`]({_NAME})[\"'`]")
_CLASS_PROPERTY = re.compile(r"\.className\s*\+?=\s*(?P<quote>[\"'`])(?P<value>[^\"'`\n]*)(?P=quote)")

_MIXIN_CALL = re.compile(rb"[\s\w>.#-]*+(?:\((?:[^(){}]++|\([^(){}]*+\))*\)\s*+)?(?:!important\s*+)?[;}]")
_MIXIN_CALL_BYTES = 400
_EXTENDED = re.compile(r":extend\([^)\n]{0,1000}\)")
_PARAMETERS = re.compile(r"\([^(){};\n]*;[^(){}\n]*\)")
_LESS_VARIABLE = re.compile(r"(?:^|\{)[ \t]*(@(?!page\b)[\w-]+)[ \t]*:", re.MULTILINE)


def is_mixin_call(text: bytes, end: int) -> bool:
    """Whether the Less class or id whose name ends at this byte is called as a mixin (`.name();`), not declared."""
    return _MIXIN_CALL.match(text, end, end + _MIXIN_CALL_BYTES) is not None


def less_names(text: str) -> tuple[tuple[str, int], ...]:
    """(name, 1-based line) of the classes (`.name`), ids (`#name`) and variables (`@name`) that Less declares, read by patterns."""
    plain = _EXTENDED.sub(lambda part: " " * len(part[0]), text)
    plain = _PARAMETERS.sub(lambda part: part[0].replace(";", ","), plain)
    found = [(mention.name, mention.line) for mention in mentions("x.less", plain)]
    variables = {
        match.start(1): match[1]
        for match in _LESS_VARIABLE.finditer(_BLANKED.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text))
    }
    lines = _line_numbers(text, set(variables))
    return (*found, *((name, lines[at]) for at, name in variables.items()))


def mentions(path: str, text: str) -> tuple[Mention, ...]:
    """Every class and id that a file speaks of, in order of lines; none for a file of another kind."""
    suffix = PurePosixPath(path).suffix.lower()
    found: set[tuple[str, int, Side]] = set()
    if suffix in STYLE_SUFFIXES:
        found |= {(name, offset, Side.STYLE) for name, offset in _styled(text)}
    if suffix in PAGES:
        found |= {(name, offset, Side.PAGE) for name, offset in _borne(text, suffix)}
        found |= {(name, offset, Side.STYLE) for name, offset in _within(_STYLE_BLOCK, text, _styled)}
    if suffix in SCRIPTS:
        found |= {(name, offset, Side.SCRIPT) for name, offset in _asked(text)}
    elif suffix in PAGES:
        found |= {(name, offset, Side.SCRIPT) for name, offset in _within(_SCRIPT_BLOCK, text, _asked)}
    lines = _line_numbers(text, {offset for _, offset, _ in found})
    return tuple(
        sorted(
            {Mention(name, lines[offset], side) for name, offset, side in found}, key=lambda m: (m.line, m.name, m.side)
        )
    )


_Found = Iterator[tuple[str, int]]


def _styled(text: str) -> _Found:
    """Selectors of a style sheet; comments, strings and colours say nothing."""
    plain = _BLANKED.sub(lambda part: re.sub(r"[^\n]", " ", part[0]), text)
    for selector in _SELECTOR_LINE.finditer(plain):
        written = selector[0]  # once: it is copied each time
        if written.lstrip().startswith("@") and "." not in written:
            continue
        for name in _SELECTOR_NAME.finditer(written):
            if not (_COLOUR.fullmatch(name[0]) and _follows_a_colon(written, name.start())):
                yield name[0], selector.start() + name.start()


def _follows_a_colon(text: str, at: int) -> bool:
    while at and text[at - 1].isspace():
        at -= 1
    return text[at - 1 : at] == ":"


def _borne(text: str, suffix: str) -> _Found:
    """Classes and ids that elements of a page bear."""
    for attribute, value in _attributes(text):
        sign = "#" if attribute["attribute"].lower() == "id" else "."
        # A bound attribute holds an expression: bare words in it are variables.
        for name, offset in (_conditional if attribute["bound"] else _words)(value[1]):
            yield sign + name, value.start(1) + offset
    for expression in _OBJECT_ATTRIBUTE.finditer(text):
        group = "double" if expression["double"] is not None else "braces"
        for name, offset in _conditional(expression[group]):
            yield f".{name}", expression.start(group) + offset
    for directive in _SVELTE_CLASS.finditer(text):
        yield f".{directive[1]}", directive.start(1)
    if suffix in {".haml", ".slim", ".pug"}:
        for tag in _HAML_TAG.finditer(text):
            for part in _SELECTOR_NAME.finditer(tag[1]):
                yield part[0], tag.start(1) + part.start()


def _attributes(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Each attribute with its value; a quote that one of them left open is looked for no more."""
    at, never_closed = 0, set[str]()
    while attribute := _ATTRIBUTE.search(text, at):
        quote, at = attribute["quote"], attribute.end()
        value = None if quote in never_closed else _VALUE[quote].match(text, at)
        if value is None:
            never_closed.add(quote)
        else:
            at = value.end()
            yield attribute, value


def _words(value: str) -> _Found:
    """Names in an attribute's value: its own words, and quoted words in a template's expressions."""
    plain = _TEMPLATE_PART.sub(lambda part: " " * len(part[0]), value)
    for word in _CLASS_NAME.finditer(plain):
        yield word[0], word.start()
    for expression in _TEMPLATE_PART.finditer(value):
        for name, offset in _conditional(expression[0]):
            yield name, expression.start() + offset


def _conditional(code: str) -> _Found:
    """Names in an expression: words in quotes, and bare keys of an object."""
    for quoted in _QUOTED_WORDS.finditer(code):
        for name in _CLASS_NAME.finditer(quoted[1]):
            yield name[0], quoted.start(1) + name.start()
    for key in _OBJECT_KEY.finditer(code):
        yield key[1], key.start(1)


def _asked(text: str) -> _Found:
    """Classes and ids that a script looks for or sets."""
    for call in _BY_SELECTOR.finditer(text):
        for part in _SELECTOR_NAME.finditer(call["selector"]):
            yield part[0], call.start("selector") + part.start()
    for call in _BY_CLASS.finditer(text):
        for name, offset in _conditional(call[1]):
            yield f".{name}", call.start(1) + offset
    for call in _BY_ID.finditer(text):
        yield f"#{call[1]}", call.start(1)
    for call in _CLASS_PROPERTY.finditer(text):
        for word in _CLASS_NAME.finditer(call["value"]):
            yield f".{word[0]}", call.start("value") + word.start()


def _within(block: tuple[re.Pattern[str], re.Pattern[str]], text: str, reader: Callable[[str], _Found]) -> _Found:
    """What `reader` finds between the tags; from a tag that nothing closes on there is no block."""
    opening, closing = block
    at = 0
    while opened := opening.search(text, at):
        start = text.find(">", opened.end()) + 1
        closed = closing.search(text, start) if start else None
        if closed is None:
            return
        at = closed.end()
        yield from ((name, start + offset) for name, offset in reader(text[start : closed.start()]))


def _line_numbers(text: str, offsets: set[int]) -> Mapping[int, int]:
    numbers: dict[int, int] = {}
    line, position = 1, 0
    for offset in sorted(offsets):
        line += text.count("\n", position, offset)
        position = offset
        numbers[offset] = line
    return numbers
