#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an import against the direction in which frames flow.

The table is the diagram in the README. The manifest must declare no more than it allows, and no
source file may import a module of this package that its own target does not declare. SwiftPM alone
lets a target import its indirect dependencies too. A dependency that no file of the target imports
fails too, and so does a type name that two modules share.

    Tests/check-imports.py              checks the sources
    Tests/check-imports.py --self-test  shows that a wrong import is found
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

# Modules in the order in which media flows; each may import the modules listed next to it.
MODULES = {
    "CVideo4Linux": [],
    "CFFmpeg": [],
    "CRubberBand": [],
    "CALSA": [],
    "CTurboJPEG": [],
    "CLinuxSystem": [],
    "COpticalFlow": [],
    "CLibraryGuard": [],
    "CSDL2": [],
    "CHEIF": [],
    "CFaceDetector": [],
    "CCodeReader": [],
    "CGLES": [],
    "OvercrankMediaCore": [],
    "OvercrankRaster": [],
    "OvercrankLinuxSystem": ["CLinuxSystem", "OvercrankMediaCore"],
    "OvercrankFrameAccounting": ["OvercrankMediaCore"],
    "OvercrankMovieFormat": [
        "OvercrankFrameAccounting", "OvercrankLinuxSystem", "OvercrankMediaCore",
    ],
    "OvercrankV4L2": ["CVideo4Linux", "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankRaster"],
    "OvercrankALSA": ["CALSA", "OvercrankLinuxSystem", "OvercrankMediaCore"],
    "OvercrankLibAV": [
        "CFFmpeg", "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankMovieFormat",
        "OvercrankRaster",
    ],
    "OvercrankTurboJPEG": ["CTurboJPEG"],
    "OvercrankDeviceDiscovery": [
        "OvercrankV4L2", "OvercrankALSA", "OvercrankLibAV", "OvercrankMediaCore",
        "OvercrankLinuxSystem", "OvercrankMovieFormat", "OvercrankRaster",
    ],
    "OvercrankCameraControls": [
        "OvercrankDeviceDiscovery", "OvercrankV4L2", "OvercrankLinuxSystem", "OvercrankMediaCore",
        "OvercrankRaster",
    ],
    "OvercrankSimulatedCameras": [
        "OvercrankDeviceDiscovery", "OvercrankFrameAccounting", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankRaster",
    ],
    "OvercrankCapture": [
        "OvercrankCameraControls", "OvercrankSimulatedCameras", "OvercrankDeviceDiscovery",
        "OvercrankFrameAccounting", "OvercrankV4L2", "OvercrankALSA", "OvercrankLibAV",
        "OvercrankMediaCore", "OvercrankLinuxSystem", "OvercrankMovieFormat", "OvercrankRaster",
    ],
    "OvercrankPreview": [
        "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankFrameAccounting", "OvercrankLibAV",
        "OvercrankMediaCore", "OvercrankRaster",
    ],
    "OvercrankRecording": [
        "OvercrankCameraControls", "OvercrankSimulatedCameras", "OvercrankCapture", "OvercrankFrameAccounting", "OvercrankDeviceDiscovery",
        "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankMovieFormat",
    ],
    "OvercrankPhotos": [
        "OvercrankCameraControls", "OvercrankRecording", "OvercrankCapture", "OvercrankFrameAccounting",
        "OvercrankDeviceDiscovery", "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore",
        "OvercrankMovieFormat", "OvercrankTurboJPEG",
    ],
    "OvercrankAssets": [
        "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankFrameAccounting",
        "OvercrankMovieFormat",
    ],
    "OvercrankEditing": ["OvercrankLinuxSystem", "OvercrankMediaCore"],
    "OvercrankRetiming": [
        "COpticalFlow", "OvercrankLibAV", "CRubberBand", "OvercrankMediaCore",
    ],
    "OvercrankExport": [
        "OvercrankEditing", "OvercrankAssets", "OvercrankRetiming", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankMovieFormat", "OvercrankRaster",
    ],
    "OvercrankAnalysis": [
        "OvercrankAssets", "OvercrankEditing", "OvercrankExport", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankMovieFormat", "OvercrankRaster",
        "OvercrankRetiming",
    ],
    "OvercrankPlayback": [
        "OvercrankALSA", "OvercrankEditing", "OvercrankAssets", "OvercrankRetiming",
        "OvercrankLibAV", "OvercrankLinuxSystem", "OvercrankMediaCore",
    ],
    "OvercrankDisplay": [
        "CSDL2", "OvercrankAssets", "OvercrankEditing", "OvercrankLibAV", "OvercrankLinuxSystem",
        "OvercrankMediaCore", "OvercrankPlayback", "OvercrankPreview", "OvercrankRaster",
    ],
    "OvercrankHEIF": ["CHEIF", "OvercrankMediaCore", "OvercrankPhotos"],
    "OvercrankFonts": ["OvercrankExport"],
    "OvercrankRecognition": [
        "CCodeReader", "CFaceDetector", "OvercrankAssets", "OvercrankCameraControls",
        "OvercrankCapture", "OvercrankDeviceDiscovery", "OvercrankFrameAccounting", "OvercrankLibAV",
        "OvercrankLinuxSystem", "OvercrankMediaCore", "OvercrankPreview", "OvercrankRaster",
    ],
    "OvercrankTextures": [
        "CGLES", "OvercrankCapture", "OvercrankLibAV", "OvercrankMediaCore", "OvercrankV4L2",
    ],
    "Overcrank": [
        "OvercrankFrameAccounting", "OvercrankMediaCore", "OvercrankRaster",
        "OvercrankDeviceDiscovery", "OvercrankCameraControls", "OvercrankCapture",
        "OvercrankPreview", "OvercrankRecording", "OvercrankPhotos", "OvercrankAssets",
        "OvercrankEditing", "OvercrankRetiming", "OvercrankExport", "OvercrankAnalysis",
        "OvercrankPlayback",
    ],
    "SlowmoCommands": ["CLibraryGuard", "Overcrank", "OvercrankLinuxSystem"],
    "slowmo": ["SlowmoCommands"],
    "slowmo-full": [
        "Overcrank", "OvercrankDisplay", "OvercrankHEIF", "OvercrankRecognition", "SlowmoCommands",
    ],
}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?(\w+)",
    re.MULTILINE,
)


# A type at the top level of a file that other files can use.
TYPE = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|open|final|indirect)\s+)*"
    r"(?:struct|class|enum|protocol|actor|typealias)\s+(\w+)",
    re.MULTILINE,
)


def imports_of(text):
    """The modules that Swift source text imports."""
    return IMPORT.findall(text)


def wrong_imports(module, text):
    """The modules that a file of `module` imports without permission."""
    return [name for name in imports_of(text) if name in MODULES and name not in MODULES[module]]


def shared_names(types_of):
    """The names of types that several modules declare, each with these modules."""
    modules = collections.defaultdict(list)
    for module, names in types_of.items():
        for name in sorted(set(names)):
            modules[name].append(module)
    return {name: owners for name, owners in modules.items() if len(owners) > 1}


def check(repo):
    problems = []
    types_of = {}
    description = json.loads(
        subprocess.run(
            ["swift", "package", "--package-path", str(repo), "describe", "--type", "json"],
            check=True, capture_output=True, text=True,
        ).stdout
    )
    targets = [t for t in description["targets"] if t["path"].startswith("Sources/")]
    if not targets:
        problems.append("the manifest names no target below Sources")
    order = list(MODULES)
    for target in targets:
        name = target["name"]
        if name not in MODULES:
            problems.append(f"the module {name} is missing: add it to this table and to the diagram in the README")
            continue
        for dependency in target.get("target_dependencies", []):
            if dependency not in MODULES[name]:
                problems.append(f"Package.swift: {name} may not depend on {dependency}")
            if order.index(dependency) >= order.index(name):
                problems.append(f"Package.swift: {name} depends on {dependency}, which comes later")
        texts = {file: file.read_text() for file in sorted((repo / target["path"]).rglob("*.swift"))}
        for file, text in texts.items():
            for wrong in wrong_imports(name, text):
                problems.append(f"{file.relative_to(repo)}: {name} may not import {wrong}")
        types_of[name] = [type for text in texts.values() for type in TYPE.findall(text)]
        imported = {module for text in texts.values() for module in imports_of(text)}
        for dependency in target.get("target_dependencies", []):
            if texts and dependency not in imported:
                problems.append(f"Package.swift: no file of {name} imports {dependency}")
    for type, modules in shared_names(types_of).items():
        problems.append(f"{' and '.join(modules)} declare a type {type}: rename one of them")
    return problems


def self_test():
    assert wrong_imports("OvercrankCapture", "import OvercrankRecording\n") == ["OvercrankRecording"]
    assert wrong_imports("OvercrankEditing", "public import OvercrankLibAV\n") == ["OvercrankLibAV"]
    assert wrong_imports("OvercrankCapture", "@testable package import OvercrankExport\n") == ["OvercrankExport"]
    assert wrong_imports("OvercrankCapture", "import struct OvercrankAssets.Asset\n") == ["OvercrankAssets"]
    assert wrong_imports("SlowmoCommands", "import Overcrank\nimport ArgumentParser\n") == []
    assert wrong_imports("OvercrankCapture", "// import OvercrankRecording\n") == []
    assert TYPE.findall("package final class A {\n  struct B {}\n}\nprivate enum C {}\n") == ["A"]
    assert shared_names({"X": ["A", "B"], "Y": ["A", "C"]}) == {"A": ["X", "Y"]}


if __name__ == "__main__":
    self_test()
    if "--self-test" not in sys.argv:
        found = check(pathlib.Path(__file__).resolve().parent.parent)
        for problem in found:
            print(f"check-imports: {problem}", file=sys.stderr)
        if found:
            sys.exit(1)
        print("check-imports: every import points with the flow, and every name has one module")
