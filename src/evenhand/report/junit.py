"""A gate as JUnit XML, the form in which build servers show tests."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from evenhand.errors import InputError
from evenhand.report.chart_specs.labels import plain
from evenhand.report.gate import Gate, GateCheck


def write_junit(gate: Gate, path: Path) -> None:
    """Over a file that is there already, as test runners do."""
    try:
        path.write_bytes(junit_xml(gate))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be written: {said.lower()}; check the disk, the path and its "
            "permissions"
        ) from None


def junit_xml(gate: Gate) -> bytes:
    """One test for each judge and model pair. `fail` is a failure of the type "fail"; `undecided`
    an error of the type "undecided", as of a test that could not tell."""
    failures = sum(check.ruling == "fail" for check in gate.checks)
    errors = sum(check.ruling == "undecided" for check in gate.checks) + (not gate.checks)
    counts = {
        "tests": str(max(1, len(gate.checks))),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": "0",
    }
    name = plain(f"evenhand gate {gate.run}")
    root = ET.Element("testsuites", {"name": "evenhand gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "time": "0"})
    settings = ET.SubElement(suite, "properties")
    for key, value in (
        ("minWinRate", f"{gate.min_win_rate:g}"),
        ("alpha", f"{gate.alpha:g}"),
        ("side", gate.side),
        ("ties", gate.ties),
    ):
        ET.SubElement(settings, "property", {"name": key, "value": value})
    for check in gate.checks:
        _add_test(suite, check, of=name)
    if not gate.checks:
        case = ET.SubElement(
            suite, "testcase", {"classname": name, "name": plain(gate.run), "time": "0"}
        )
        reason = plain(gate.reason or "")
        ET.SubElement(case, "error", {"type": "undecided", "message": reason}).text = reason
    ET.indent(root)
    whole: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _add_test(suite: ET.Element, check: GateCheck, *, of: str) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": of, "name": plain(f"{check.sides}, by {check.judge}"), "time": "0"},
    )
    line = plain(check.line)
    if check.ruling == "pass":
        ET.SubElement(case, "system-out").text = line
    else:
        kind = "failure" if check.ruling == "fail" else "error"
        ET.SubElement(case, kind, {"type": check.ruling, "message": line}).text = line
