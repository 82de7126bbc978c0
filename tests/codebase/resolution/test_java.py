"""Resolution of Java: which definition a name means where it stands."""

from pathlib import Path

import pytest
from tests.codebase.resolution.meanings import bindings, meaning

SHOP = """\
package com.shop;
import java.util.*;
public class Shop extends Base<Till> implements Paying {
  private int size; public Till till = new Till();
  public int size() { return size; }
  public List<Till> tills() { return null; }
  public Map<String, Till> named() { return null; }
  public enum Kind { SMALL, LARGE }
  public record Price(int cents) {}
  public static Shop make() { return new Shop(); }
  public void pay() {}
}
class Base<T> { T first; T first() { return first; } }
class Till { void ring() {} Till self() { return this; } }
interface Paying { void pay(); }
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("§Shop s;", 3),
        ("new Shop().§size();", 5),
        ("Shop.§make();", 10),
        ("var s = Shop.make(); s.till.§ring();", 14),
        ("new Shop().first().§ring();", 14),
        ("new Shop().§first.ring();", 13),
        ("for (Till t : new Shop().tills()) t.§ring();", 14),
        ("new Shop().tills().get(0).self().§ring();", 14),
        ("new Shop().tills().forEach(t -> t.§ring());", 14),
        ("new Shop().tills().stream().map(t -> t.self()).forEach(t -> t.§ring());", 14),
        ("for (var e : new Shop().named().entrySet()) e.getValue().§ring();", 14),
        ("Shop.Kind k = Shop.Kind.§SMALL;", 8),
        ("switch (kind()) { case §LARGE: }", 8),
        ("new Shop.Price(1).§cents();", 9),
        ("Object o = 1; if (o instanceof Till t) t.§ring();", 14),
        ("((Till) null).§ring();", 14),
        ("new Till() { void x() { §ring(); } };", 14),
        ("Runnable r = new Shop()::§pay;", 11),
    ],
)
def test_a_name_means_what_packages_and_types_say(tmp_path: Path, code: str, line: int) -> None:
    use = f"package com.shop;\nclass Use {{ Shop.Kind kind() {{ return null; }} void f() {{ {code} }} }}\n"
    files = {"src/main/java/com/shop/Shop.java": SHOP, "src/test/java/com/shop/Use.java": use}
    assert meaning(tmp_path, files) == [f"src/main/java/com/shop/Shop.java:{line}"]


def test_a_field_and_a_method_of_one_name_are_two(tmp_path: Path) -> None:
    found = bindings(tmp_path, {"com/shop/Shop.java": SHOP}, at="com/shop/Shop.java:5:14")
    assert found == {"com/shop/Shop.java:5": "certain"}


def test_imports_of_classes_and_static_members_are_followed(tmp_path: Path) -> None:
    use = "package x;\nimport com.shop.Shop;\nimport static com.shop.Shop.make;\nclass Use { Shop s = §make(); }\n"
    assert meaning(tmp_path, {"a/com/shop/Shop.java": SHOP, "b/x/Use.java": use}) == ["a/com/shop/Shop.java:10"]
