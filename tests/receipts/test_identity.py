"""Ids mean the same test in every run (SPEC 4, Receipts)."""

from code_intel_server.receipts.identity import distinct, normal_id, template


def test_the_place_of_a_checkout_an_address_and_a_uuid_are_no_part_of_an_id() -> None:
    id_ = "tests/t.py::t[/tmp/x1/tests/data-0x7f3a9c-123e4567-e89b-12d3-a456-426614174000]"
    assert normal_id(id_, ["/tmp/x1/"]) == "tests/t.py::t[tests/data-0x-uuid]"


def test_the_line_of_a_rust_doctest_is_no_part_of_its_id() -> None:
    assert normal_id("src/lib.rs - add (line 12)") == "src/lib.rs - add"


def test_several_tests_of_one_name_stay_several() -> None:
    assert distinct(["a", "b", "a"]) == ["a", "b", "a #2"]


def test_a_template_leaves_parameters_and_numbers_out() -> None:
    assert template("t.py::t3[x-1]") == template("t.py::t4[y]")
