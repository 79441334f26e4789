"""A report of ``orderkit kit test`` as JUnit XML, which every CI shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from orderkit_workshop.stories.test_kits import ScenarioResult, Tested, TestReport

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: TestReport) -> bytes:
    """Return the report: one suite per kit, one case per scenario."""
    root = ET.Element("testsuites", name="orderkit kit test", time=f"{report.seconds:.3f}")
    for kit in dict.fromkeys(case.kit for case in report.cases):
        cases = [case for case in report.cases if case.kit == kit]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=kit,
            tests=str(len(cases)),
            failures=str(sum(case.result is ScenarioResult.FAILED for case in cases)),
            errors=str(sum(case.result is ScenarioResult.BROKEN for case in cases)),
            time=f"{sum(case.seconds for case in cases):.3f}",
        )
        for case in cases:
            _case(suite, case)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(suite: ET.Element, case: Tested) -> None:
    testcase = ET.SubElement(
        suite, "testcase", classname=case.kit, name=case.case, time=f"{case.seconds:.3f}"
    )
    if case.ok:
        return
    tag = "error" if case.result is ScenarioResult.BROKEN else "failure"
    message = case.message or "what came out differs from what is expected"
    problem = ET.SubElement(testcase, tag, message=_NOT_XML.sub("?", message))
    text = "\n".join([f"why it matters: {case.reason}", *(d.diff() for d in case.differences)])
    problem.text = _NOT_XML.sub("?", text)
