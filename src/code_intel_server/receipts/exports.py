"""A verdict as JUnit XML (for CI's test views) and as SARIF 2.1.0 (for code scanning) (SPEC 4, Receipts)."""

import re
import shlex
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

from code_intel_server.receipts.compare import WHY
from code_intel_server.receipts.notary import Verdict
from code_intel_server.receipts.results import Case, CaseOutcome

UNEXPLAINED: Mapping[str, str] = {"failing": "fails with this change", **WHY}
"""The lists of a receipt that refuse a verdict, with what they mean."""

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdict: Verdict) -> bytes:
    """The tests of the new suite, then one suite for each list of unexplained tests, as JUnit XML."""
    root = Xml.Element("testsuites", name="code-intel verify-commit")
    for run in verdict.runs.get("new", ()):
        suite = _suite(root, shlex.join(run.argv))
        for case in run.suite.cases:
            _case(suite, case, verdict)
        _count(suite)
    for name, meaning in UNEXPLAINED.items():
        if name != "failing" and (ids := getattr(verdict.receipt, name)):
            suite = _suite(root, name)
            for id_ in ids:
                _fail(_element(suite, id_), meaning)
            _count(suite)
    if verdict.problems:
        suite = _suite(root, "runs")
        for problem in verdict.problems:
            _fail(_element(suite, problem.partition(":")[0]), problem)
        _count(suite)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def sarif(verdict: Verdict, version: str, files: frozenset[str]) -> dict[str, Any]:
    """What refuses a verdict, as SARIF; a test is placed in its file where `files` has that."""
    units = {case.id: case.unit for runs in verdict.runs.values() for run in runs for case in run.suite.cases}
    results = [
        _result(name, f"{id_} {meaning}", units.get(id_, ""), files)
        for name, meaning in UNEXPLAINED.items()
        for id_ in getattr(verdict.receipt, name)
    ]
    results += [_result("problem", problem, "", files) for problem in verdict.problems]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in UNEXPLAINED.items()]
    rules.append({"id": "problem", "shortDescription": {"text": "a run that proves nothing"}})
    driver = {"name": "code-intel-server", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(rule: str, text: str, unit: str, files: frozenset[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"ruleId": rule, "level": "error", "message": {"text": text}}
    if unit in files:
        made["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": unit}, "region": {"startLine": 1}}}]
    return made


def _suite(root: Xml.Element, name: str) -> Xml.Element:
    return Xml.SubElement(root, "testsuite", name=_text(name))


def _element(suite: Xml.Element, id_: str, unit: str = "", seconds: float = 0.0) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", name=_text(id_), classname=_text(unit), time=f"{seconds:.3f}")


def _case(suite: Xml.Element, case: Case, verdict: Verdict) -> None:
    element = _element(suite, case.id, case.unit, case.seconds)
    if case.outcome is CaseOutcome.SKIPPED:
        Xml.SubElement(element, "skipped")
    elif case.outcome is not CaseOutcome.PASSED:
        excused = case.id in {*verdict.receipt.flaky, *verdict.receipt.failing_before}
        if excused:
            why = "flaky" if case.id in verdict.receipt.flaky else "failing before"
            Xml.SubElement(element, "skipped", message=why)
        else:
            _fail(element, case.outcome.value, case.message)


def _fail(element: Xml.Element, message: str, text: str = "") -> None:
    Xml.SubElement(element, "failure", message=_text(message)).text = _text(text)


def _count(suite: Xml.Element) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
