"""A report is taken apart: title, prose, frames, names and paths, whatever it holds."""

import time

import pytest

from code_intel_server.codebase.issue_report import MAX_REPORT_CHARACTERS, Frame, matching, read_report

REPORT = """`Basket.pay` charges twice
### Description
When an order has a voucher, `Basket.pay()` charges the card twice, e.g. in shop/basket.py.
<!-- Please fill in. -->
```python
from shop import make_order
basket.pay_later(order)
```
Traceback (most recent call last):
  File "/home/me/site-packages/shop/api.py", line 12, in handle
    basket.pay(order)
  File "C:\\\\src\\\\shop\\\\basket.py", line 40, in pay
    raise TwiceError
shop.TwiceError: twice
### Versions
numpy 1.2.3
see https://github.com/me/shop/blob/abc123/shop/money.py#L7
"""


def test_a_report_is_taken_apart() -> None:
    report = read_report(REPORT)
    assert report.title == "`Basket.pay` charges twice"
    assert report.prose.startswith("When an order has a voucher")
    assert "Please fill in" not in report.prose
    assert "numpy" not in report.prose
    assert report.names[:2] == ("Basket.pay", "shop.TwiceError")
    assert {"make_order", "basket.pay_later"} <= set(report.code_names)
    assert report.paths == ("shop/basket.py",)


def test_frames_begin_where_the_traceback_ended() -> None:
    frames = [frame for frame in read_report(REPORT).frames if frame.function]
    assert [(frame.path.rpartition("/")[2], frame.line, frame.function) for frame in frames] == [
        ("basket.py", 40, "pay"),
        ("api.py", 12, "handle"),
    ]


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("src/_pytest/skipping.py:238: in evaluate", Frame("src/_pytest/skipping.py", 238, "evaluate")),
        ("~/code/wcs/wcs.py in convert(func, sky)", Frame("~/code/wcs/wcs.py", 0, "convert")),
        ("    at pay (/app/src/basket.ts:40:11)", Frame("/app/src/basket.ts", 40, "pay")),
        ("\tat shop.Basket.pay(Basket.java:40)", Frame("Basket.java", 40, "shop.Basket.pay")),
        ("\t/go/src/shop/basket.go:40 +0x1b", Frame("/go/src/shop/basket.go", 40)),
        ("   --> src/basket.rs:40:5", Frame("src/basket.rs", 40)),
    ],
)
def test_frames_of_many_languages_are_read(line: str, frame: Frame) -> None:
    assert read_report(f"It fails\n\n{line}\n").frames == (frame,)


def test_a_path_of_another_machine_means_the_file_that_shares_most_of_its_end() -> None:
    known = ["src/shop/util.py", "src/api/util.py", "one.py"]
    assert matching("/usr/lib/python3/site-packages/shop/util.py", known) == "src/shop/util.py"
    assert matching("/elsewhere/util.py", known) == ""
    assert matching("/elsewhere/one.py", known) == "one.py"
    assert matching("/elsewhere/two.py", known) == ""


@pytest.mark.parametrize("text", [
    "", "\n\n", "word " * 100_000, "a.b" * 100_000, "`" * MAX_REPORT_CHARACTERS, "```\n" * 60_000, "x/" * 120_000,
    "2026-01-01 10:00:00 INFO shop: paid\n" * 5_000, "設定を読み込むときにエラーが発生します。\n" * 5_000,
    '  File "/a/b.py", line 3, in f\n' * 5_000, "<!--" * 50_000, "\x00\ud800\u202e",
])  # fmt: skip
def test_no_report_takes_long(text: str) -> None:
    began = time.process_time()
    report = read_report(text)
    assert time.process_time() - began < 2
    assert len(report.prose) <= 2_000 + 400
    assert len(report.names) + len(report.code_names) + len(report.frames) + len(report.paths) <= 100


def test_a_log_says_nothing_of_the_place_but_what_stands_around_it() -> None:
    log = "2026-01-01 10:00:00 INFO worker_pool: started\n" * 5_000
    report = read_report(f"Payment hangs\n\nIt hangs in `pay_all`.\n{log}Only with vouchers.\n")
    assert report.prose == "It hangs in `pay_all`.\nOnly with vouchers."
    assert report.names == ("pay_all",)


def test_no_part_of_a_word_that_is_written_as_a_header_is_a_name() -> None:
    """Found by real agents: a request that speaks of `Sec-WebSocket-Accept` and SHA-1 named no symbol."""
    text = "Sec-WebSocket-Accept is wrong\n\n`If-Range` beside UTF-8 and X-MyHeader-ID, not MyHeader-like words\n"
    assert read_report(text).names == ("MyHeader",)
