#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an import that points against the way of a frame.

The table is the picture in the README; the manifest must declare no more than it allows, and no
source file may import one of our rooms that its own target does not declare. SwiftPM alone lets
a target import what it depends on only through others.

    Tests/check-imports.py              checks the sources
    Tests/check-imports.py --self-test  shows that a wrong import is found
"""
import json
import pathlib
import re
import subprocess
import sys

# Rooms in the order in which media flows; each may import what stands beside it.
ROOMS = {
    "CVideo4Linux": [],
    "CFFmpeg": [],
    "CRubberBand": [],
    "CALSA": [],
    "CLinuxSystem": [],
    "MediaTiming": [],
    "LinuxSystem": ["CLinuxSystem"],
    "V4L2": ["CVideo4Linux", "LinuxSystem", "MediaTiming"],
    "ALSA": ["CALSA", "V4L2"],
    "LibAV": ["CFFmpeg", "LinuxSystem", "MediaTiming"],
    "FormatDiscovery": ["V4L2", "ALSA", "LibAV", "MediaTiming"],
    "Capture": ["FormatDiscovery", "V4L2", "ALSA", "LibAV", "MediaTiming"],
    "Recording": ["Capture", "FormatDiscovery", "LibAV", "LinuxSystem", "MediaTiming"],
    "Assets": ["LibAV", "LinuxSystem", "MediaTiming"],
    "Editing": ["LinuxSystem", "MediaTiming"],
    "Retiming": ["LibAV", "CRubberBand", "MediaTiming"],
    "Export": ["Editing", "Assets", "Retiming", "LibAV", "LinuxSystem", "MediaTiming"],
    "Overcrank": [
        "MediaTiming", "FormatDiscovery", "Capture", "Recording", "Assets", "Editing", "Retiming",
        "Export",
    ],
    "slowmo": ["Overcrank", "LinuxSystem"],
}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?(\w+)",
    re.MULTILINE,
)


def imports_of(text):
    """The modules that Swift source text imports."""
    return IMPORT.findall(text)


def wrong_imports(room, text):
    """The rooms that a file of `room` imports and may not."""
    return [name for name in imports_of(text) if name in ROOMS and name not in ROOMS[room]]


def check(repo):
    problems = []
    description = json.loads(
        subprocess.run(
            ["swift", "package", "--package-path", str(repo), "describe", "--type", "json"],
            check=True, capture_output=True, text=True,
        ).stdout
    )
    targets = [t for t in description["targets"] if t["path"].startswith("Sources/")]
    if not targets:
        problems.append("the manifest names no target below Sources")
    order = list(ROOMS)
    for target in targets:
        name = target["name"]
        if name not in ROOMS:
            problems.append(f"{name} is no room of the picture: add it to this table and the README")
            continue
        for dependency in target.get("target_dependencies", []):
            if dependency not in ROOMS[name]:
                problems.append(f"Package.swift: {name} may not depend on {dependency}")
            if order.index(dependency) >= order.index(name):
                problems.append(f"Package.swift: {name} depends on {dependency}, which comes later")
        files = sorted((repo / target["path"]).rglob("*.swift"))
        for file in files:
            for wrong in wrong_imports(name, file.read_text()):
                problems.append(f"{file.relative_to(repo)}: {name} may not import {wrong}")
    return problems


def self_test():
    assert wrong_imports("Capture", "import Recording\n") == ["Recording"]
    assert wrong_imports("Editing", "public import LibAV\n") == ["LibAV"]
    assert wrong_imports("Capture", "@testable package import Export\n") == ["Export"]
    assert wrong_imports("Capture", "import struct Assets.Asset\n") == ["Assets"]
    assert wrong_imports("slowmo", "import Overcrank\nimport ArgumentParser\n") == []
    assert wrong_imports("Capture", "// import Recording\n") == []


if __name__ == "__main__":
    self_test()
    if "--self-test" not in sys.argv:
        found = check(pathlib.Path(__file__).resolve().parent.parent)
        for problem in found:
            print(f"check-imports: {problem}", file=sys.stderr)
        if found:
            sys.exit(1)
        print("check-imports: every import points with the flow")
