"""Resolution of Python: which definition a name means where it stands."""

from pathlib import Path

import pytest
from tests.codebase.resolution.meanings import bindings, meaning

SHOP = """\
class Base:
    def pay(self): ...
    @property
    def owner(self) -> "Till": ...
    def copy(self): return self
class Basket(Base):
    limit: int = 3
    def __init__(self, till: "Till"):
        self.till = till
    def total(self) -> int: ...
    def __enter__(self): return self
class Till:
    def ring(self): ...
    def pay(self): ...
def made() -> Basket: ...
baskets: dict[str, list[Basket]] = {}
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from shop import Basket\n§Basket", 6),
        ("from shop import Basket as B\n§B()", 6),
        ("import shop\nshop.§made()", 15),
        ("import shop as s\ns.made().§total()", 10),
        ("from shop import *\n§made()", 15),
        ("from shop import made\nx = made()\nx.§pay()", 2),
        ("from shop import made\nmade().till.§ring()", 13),
        ("from shop import Basket\ndef f(b: Basket): b.§limit", 7),
        ("from shop import Basket\ndef f(b: 'Basket | None'): b.§total()", 10),
        ("from shop import Basket\ndef f(b: list[Basket]):\n  for one in b: one.§total()", 10),
        ("from shop import baskets\nfor k, v in baskets.items(): v[0].§total()", 10),
        ("from shop import made\nwith made() as m: m.§total()", 10),
        ("from shop import made\nmade().owner.§pay()", 14),
        ("from shop import made\nmade().copy().§total()", 10),
        ("from shop import Basket\nclass Rich(Basket):\n  def total(self): return super().§total()", 10),
        ("from shop import Basket\ndef f(x):\n  if isinstance(x, Basket): x.§total()", 10),
        ("from shop import Basket\nBasket(§till=1)", 8),
        ("from shop import Basket\n[b.§total() for b in [Basket(1)]]", 10),
        ("import typing\nfrom shop import Till\ntyping.cast(Till, 1).§ring()", 13),
        ("from shop import Basket\nT = type[Basket]\ndef f(t: T): t(1).§total()", 10),
    ],
)
def test_a_name_means_what_scope_imports_and_annotations_say(tmp_path: Path, code: str, line: int) -> None:
    assert meaning(tmp_path, {"shop.py": SHOP, "use.py": code + "\n"}) == [f"shop.py:{line}"]


def test_a_package_gives_on_what_it_imports(tmp_path: Path) -> None:
    files = {"src/shop/__init__.py": "from .till import Till as Desk\n", "src/shop/till.py": "class Till: ...\n"}
    assert meaning(tmp_path, {**files, "tests/test_it.py": "from shop import Desk\n§Desk()\n"}) == [
        "src/shop/till.py:1"
    ]


@pytest.mark.parametrize("code", ["import os\nos.path.§join('a')", "§print(1)", "'a'.§upper()", "from x import §y"])
def test_what_the_project_does_not_define_is_said_to_be_outside(tmp_path: Path, code: str) -> None:
    [said] = meaning(tmp_path, {"use.py": code + "\n", "shop.py": "def join(): ...\ndef upper(): ...\ndef y(): ...\n"})
    assert said.startswith("outside of the project: ")


@pytest.mark.parametrize(
    "code",
    [
        "def f(x): x.§total()",
        "from a import §total\n",
        "import shop\ngetattr(shop, 'x').§total()",
        "class C:\n  def __getattr__(self, name): ...\nC().§total()",
    ],
)
def test_what_the_text_does_not_tell_is_every_definition_of_the_name(tmp_path: Path, code: str) -> None:
    """A cycle of imports, too."""
    files = {"shop.py": SHOP, "use.py": code, "a.py": "from b import total\n", "b.py": "from a import total\n"}
    assert meaning(tmp_path, files) == ["which total is meant there is not known: all of that name"]


def test_of_one_method_only_its_own_uses_are_certain_and_the_others_are_counted(tmp_path: Path) -> None:
    use = "from shop import Basket, Till\ndef f(b: Basket, t: Till, x):\n  b.pay()\n  t.pay()\n  x.pay()\n"
    assert bindings(tmp_path, {"shop.py": SHOP, "use.py": use}, "Base.pay") == {
        "shop.py:2": "certain",
        "use.py:3": "certain",
        "use.py:5": "possible",
    }


@pytest.mark.parametrize("asked", ["Basket.pay", "shop.Basket.pay", "shop.Base.pay"])
def test_an_inherited_member_is_one_symbol_whatever_it_is_called(tmp_path: Path, asked: str) -> None:
    use = "from shop import Basket\nBasket(1).pay()\n"
    found = bindings(tmp_path, {"shop.py": SHOP, "use.py": use}, asked)
    assert found == {"shop.py:2": "certain", "use.py:2": "certain"}


def test_a_place_names_one_symbol(tmp_path: Path) -> None:
    use = "from shop import made\nmade().pay()\n"
    for at in ("use.py:2:8", "shop.py:2"):
        assert bindings(tmp_path, {"shop.py": SHOP, "use.py": use}, at=at) == {
            "shop.py:2": "certain",
            "use.py:2": "certain",
        }


def test_a_local_variable_is_looked_for_where_it_can_be_used(tmp_path: Path) -> None:
    files = {"a.py": "def f(till):\n  return till\ndef g(till): ...\n", "b.py": "till = 1\n"}
    assert bindings(tmp_path, files, at="a.py:2:10") == {"a.py:1": "certain", "a.py:2": "certain"}


def test_a_field_that_a_method_only_sets_is_the_one_declared_above(tmp_path: Path) -> None:
    files = {"a.py": "class A:\n  x: int = 0\nclass B(A):\n  def f(self):\n    self.x = 1\n"}
    assert bindings(tmp_path, files, "A.x") == {"a.py:2": "certain", "a.py:5": "certain"}


def test_a_fixture_is_what_it_returns(tmp_path: Path) -> None:
    files = {
        "shop.py": SHOP,
        "tests/conftest.py": "import pytest\nfrom shop import Basket\n@pytest.fixture\ndef basket():\n  yield Basket(1)\n",
        "tests/test_it.py": "def test_it(basket): basket.§total()\n",
    }
    assert meaning(tmp_path, files) == ["shop.py:10"]
