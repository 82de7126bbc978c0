"""Resolution of Go: which definition a name means where it stands."""

from pathlib import Path

import pytest
from tests.codebase.lookup_project import explorer
from tests.codebase.resolution.meanings import bindings, meaning

SHOP = """\
package shop
type Base struct { Owner *Till }
func (b *Base) Pay() (*Till, error) { return b.Owner, nil }
type Basket struct { Base; items []Till; byName map[string]*Till }
type Till struct { Open bool }
func (t Till) Ring() int { return 1 }
type Payer interface { Pay() (*Till, error) }
func New() *Basket { return &Basket{} }
type Hook func(t *Till) Basket
const Limit = 3
"""
FILES = {"go.mod": "module example.com/m\n", "shop/shop.go": SHOP}


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("b := shop.§New()", 8),
        ("b := shop.New(); b.§Pay()", 3),
        ("b := shop.New(); t, err := b.Pay(); t.§Ring(); _ = err", 6),
        ("b := shop.New(); b.Owner.§Open = true", 5),
        ("b := &shop.Basket{}; b.§Base.Pay()", 4),
        ("b := shop.Basket{§Base: shop.Base{}}", 4),
        ("t := []shop.Till{{§Open: true}}", 5),
        ("var p shop.Payer; p.§Pay()", 7),
        ("var h shop.Hook; b := h(nil); b.§Pay()", 3),
        ("m := map[string]*shop.Till{}; for _, t := range m { t.§Ring() }", 6),
        ("m := map[string]*shop.Till{}; if t, ok := m[`a`]; ok { t.§Ring() }", 6),
        ("var x any; switch t := x.(type) { case *shop.Till: t.§Ring() }", 6),
        ("x := func() *shop.Till { return nil }; x().§Ring()", 6),
        ("t := new(shop.Till); c := make(chan *shop.Till); c <- t; (<-c).§Ring()", 6),
        ("_ = shop.§Limit", 10),
    ],
)
def test_a_name_means_what_packages_and_types_say(tmp_path: Path, code: str, line: int) -> None:
    use = f'package use\nimport "example.com/m/shop"\nfunc f() {{ {code} }}\n'
    assert meaning(tmp_path, {**FILES, "use/use.go": use}) == [f"shop/shop.go:{line}"]


def test_the_files_of_a_package_share_their_names_and_methods(tmp_path: Path) -> None:
    more = "package shop\nfunc (b *Basket) Clear() { §helper(b) }\n"
    files = {**FILES, "shop/more.go": more, "shop/help.go": "package shop\nfunc helper(b *Basket) {}\n"}
    assert meaning(tmp_path, files) == ["shop/help.go:2"]


def test_an_interface_may_mean_what_has_its_methods(tmp_path: Path) -> None:
    use = 'package use\nimport s "example.com/m/shop"\nfunc f(p s.Payer, b *s.Basket) { p.Pay()\n b.Pay() }\n'
    found = bindings(tmp_path, {**FILES, "use/use.go": use}, "Base.Pay")
    assert found == {"shop/shop.go:3": "certain", "use/use.go:4": "certain"}
    notes = explorer(tmp_path, {}).find_references("Base.Pay").notes
    assert "may be this one when it runs: 1 row of Payer.Pay" in notes


def test_another_module_is_outside(tmp_path: Path) -> None:
    use = 'package use\nimport "net/http"\nfunc f() { http.§New() }\n'
    assert meaning(tmp_path, {**FILES, "use/use.go": use}) == ["outside of the project: net/http.New"]
