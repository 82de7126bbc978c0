"""Resolution of Rust: which definition a name means where it stands."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer
from tests.codebase.resolution.meanings import bindings, meaning

SHOP = """\
pub struct Basket { pub till: Option<Till>, items: Vec<Till> }
pub struct Till(pub u8);
pub enum Kind { Small, Many(Till), Named { till: Till } }
pub trait Pay { fn pay(&self) -> Till; fn twice(&self) -> Till { self.pay() } }
impl Basket {
    pub const unsafe fn raw() -> Self { todo!() }
    pub fn new() -> Result<Self, String> { todo!() }
    pub fn each(&self) -> std::slice::Iter<'_, Till> { self.items.iter() }
}
impl Pay for Basket { fn pay(&self) -> Till { Till(1) } }
impl Till { pub fn ring(&self) {} }
pub const LIMIT: usize = 3;
macro_rules! sum { () => {} }
pub mod inner { pub fn deep() {} }
"""
FILES = {
    "Cargo.toml": '[package]\nname = "my-shop"\n',
    "src/lib.rs": "pub mod shop;\npub mod use_it;\npub use shop::Basket as Bag;\n",
}


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("let b: §Basket;", 1),
        ("let b = Basket::§new();", 7),
        ("let b = Basket::new().unwrap(); b.§each();", 8),
        ("let b = Basket::new()?; for t in b.each() { t.§ring() }", 11),
        ("if let Some(t) = b().till { t.§ring(); }", 11),
        ("if let Some(t) = &b().till.as_ref() { t.§ring(); }", 11),
        ("b().§pay().ring();", 10),
        ("b().§twice();", 4),
        ("b().pay().§ring();", 11),
        ("let Basket { §till, .. } = b();", 1),
        ("match k() { Kind::§Small => {} _ => {} }", 3),
        ("match k() { Kind::Many(t) => t.§ring(), _ => {} }", 11),
        ("match k() { Kind::Named { till } => till.§ring(), _ => {} }", 11),
        ("b().each().map(|t| t.§ring());", 11),
        ("let t = crate::shop::§Till(1);", 2),
        ("let _ = super::shop::§LIMIT;", 12),
        ("crate::Bag::§new();", 7),
        ("shop::inner::§deep();", 14),
        ('println!("{}", b().till); vec![x.§ring()];', 11),
    ],
)
def test_a_name_means_what_modules_and_types_say(tmp_path: Path, code: str, line: int) -> None:
    use = f"use crate::shop::{{self, Basket, Kind, Pay, Till}};\nfn b() -> Basket {{ todo!() }}\nfn k() -> Kind {{ todo!() }}\nfn f(x: &Till) {{ {code} }}\n"
    found = meaning(tmp_path, {**FILES, "src/shop.rs": SHOP, "src/use_it.rs": use})
    assert f"src/shop.rs:{line}" in found


def test_a_method_of_a_trait_and_what_implements_it_are_one_in_references(tmp_path: Path) -> None:
    use = "use my_shop::{shop::Pay, Bag};\nfn f(b: &Bag, p: impl Pay) { b.pay(); p.pay(); }\n"
    found = bindings(tmp_path, {**FILES, "src/shop.rs": SHOP, "tests/it.rs": use}, "Pay.pay")
    assert found == {"src/shop.rs:4": "certain", "src/shop.rs:10": "certain", "tests/it.rs:2": "certain"}


def test_a_module_within_a_file_sees_only_its_own_names_and_what_it_uses(tmp_path: Path) -> None:
    text = "fn helper() {}\nmod tests { use super::*; fn t() { §helper(); } }\n"
    assert meaning(tmp_path, {**FILES, "src/shop.rs": text}) == ["src/shop.rs:1"]


def test_a_field_and_a_method_of_one_name_are_two(tmp_path: Path) -> None:
    text = "pub struct A { size: u8 }\nimpl A {\n  pub fn size(&self) -> u8 {\n    self.size\n  }\n}\nfn f(a: A) { a.size(); }\n"
    found = explorer(tmp_path, {**FILES, "src/shop.rs": text})
    for at, lines in (("src/shop.rs:1:16", [1, 4]), ("src/shop.rs:3:10", [3, 7])):
        assert [row.start_line for row in found.find_references(at=at).results] == lines
