"""CSS names in styles, pages and scripts of every dialect, each on its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_intel_server.codebase.syntax.markup import Side, mentions


def names(path: str, text: str) -> set[tuple[str, int, str]]:
    return {(found.name, found.line, found.side.value) for found in mentions(path, text)}


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.css", ".btn,\na.go:hover > #main { color: #fff }", {(".btn", 1), (".go", 2), ("#main", 2)}),
        ("a.css", "/* .no */ a::before { content: '.no'; background: url(x.png) } // .no", set()),
        ("a.css", "@media (min-width: 3.5em) {\n.in { }\n}", {(".in", 2)}),
        ("a.scss", ".card {\n  .title { color: red; }\n  &.open { }\n}", {(".card", 1), (".title", 2), (".open", 3)}),
        ("a.less", ".a { .b; }\n#c { }", {(".a", 1), ("#c", 2)}),
    ],
)
def test_styles_declare_names_in_selectors(path: str, text: str, expected: set[tuple[str, int]]) -> None:
    assert names(path, text) == {(*found, Side.STYLE.value) for found in expected}


@pytest.mark.parametrize(("path", "text", "expected"), [
    ("a.html", '<p class="a b-c"\n id="d">', {(".a", 1), (".b-c", 1), ("#d", 2)}),
    ("a.html", "<p class='a'><p CLASS = \"b\">", {(".a", 1), (".b", 1)}),
    ("a.html", '<p data-class="no" subclass="no" data-id="no">', set()),
    ("a.jinja2", "<p class=\"x {{ 'on' if a == 1 else 'off' }} {% if b %}y{% endif %}\">", {(".x", 1), (".on", 1), (".off", 1), (".y", 1)}),
    ("a.erb", '<p class="<%= a ? "one" : "two" %> three"><%= link_to x, class: "four" %>',
     {(".one", 1), (".two", 1), (".three", 1), (".four", 1)}),
    ("a.php", "<p class=\"<?= $a ? 'one' : 'two' ?> three\">", {(".one", 1), (".two", 1), (".three", 1)}),
    ("a.vue", '<p :class="{ on: isOn, \'is-off\': x }" class="y">', {(".on", 1), (".is-off", 1), (".y", 1)}),
    ("a.vue", "<p :class=\"[a ? 'one' : 'two']\">", {(".one", 1), (".two", 1)}),
    ("a.svelte", "<p class:active={x} class=\"a {c ? 'b' : ''}\">", {(".active", 1), (".a", 1), (".b", 1)}),
    ("a.jsx", '<p className={`card ${open ? "open" : ""}`} id="root">', {(".card", 1), (".open", 1), ("#root", 1)}),
    ("a.tsx", '<p className={clsx("a", { b: on })}>', {(".a", 1), (".b", 1)}),
    ("a.haml", "%p.a.b#c\n  .d", {(".a", 1), (".b", 1), ("#c", 1), (".d", 2)}),
])  # fmt: skip
def test_pages_bear_names_in_attributes_and_in_their_expressions(
    path: str, text: str, expected: set[tuple[str, int]]
) -> None:
    assert {found for found in names(path, text) if found[2] == Side.PAGE.value} == {
        (*found, Side.PAGE.value) for found in expected
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('document.querySelector(".a > #b")', {".a", "#b"}),
        ("$('.a').find('.b')", {".a", ".b"}),
        ('el.classList.add("a", "b-c")', {".a", ".b-c"}),
        ("document.getElementById('main')", {"#main"}),
        ('el.className = "a b"', {".a", ".b"}),
        ("$(el).toggleClass('on')", {".on"}),
        ('import x from "./a.css"; object.property; "1.5em"', set()),
    ],
)
def test_scripts_ask_for_names(text: str, expected: set[str]) -> None:
    assert {found.name for found in mentions("a.js", text)} == expected


def test_styles_and_scripts_inside_a_page_are_read_on_their_lines() -> None:
    text = '<div class="a">\n<style>\n.b { }\n</style>\n<script>\nquerySelector("#c")\n</script>'
    assert names("a.html", text) == {(".a", 1, "page"), (".b", 3, "style"), ("#c", 6, "script")}


def test_other_files_say_nothing() -> None:
    assert mentions("a.py", 'class="a" .b { }') == ()


@given(
    st.sampled_from(["a.css", "a.html", "a.vue", "a.jsx", "a.erb", "a.js", "a.haml"]),
    st.text(st.sampled_from("ab.#{}\"'`<>=%$ \n:class(),[]"), max_size=80),
)
def test_any_text_is_read_and_every_name_is_on_its_line(path: str, text: str) -> None:
    lines = text.split("\n")
    for found in mentions(path, text):
        assert found.name[1:] in lines[found.line - 1]
