# SPDX-License-Identifier: Apache-2.0
"""The tables of the articles for people who come from AVFoundation.

A row has three cells: names of AVFoundation, their counterparts here, and the test that proves it. Each
code span of the second cell is a type, or a member behind its owner: `Owner.property`, `Owner.case`,
`Owner.method(label:)`. A Swift file is made in which every one of them is used on its owner, so that a
name that belongs to another type does not compile. The third cell has the name of a test function.
Sections whose heading begins with "Not here" have no counterparts, and are not read.
"""
import dataclasses
import re

ARTICLES = "Sources/Overcrank/Overcrank.docc/Articles/*FromAVFoundation.md"
SPAN = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Z]\w*(?:\.\w+)*(?:\((?:\w+:)*\))?")
# Tests alone have names that are sentences.
TEST = re.compile(r"\bfunc `([^`]+)`\(")
TYPES = {"swift.class", "swift.struct", "swift.enum", "swift.typealias"}
# Calls with closures, or with an argument that is changed.
CALLS = {
    "SampleBuffer.withBytes(_:)": "withBytes { _ in }",
    "SampleBuffer.withMutableBytes(_:)": "withMutableBytes { _ in }",
    "VideoDataOutput.withNextFrame(_:)": "withNextFrame { _ in }",
    "SampleBuffer.convert(into:)": "convert(into: &buffer)",
    "CameraControls.rampToVideoZoomFactor(_:withRate:clock:)":
        "rampToVideoZoomFactor(2, withRate: 1, clock: ContinuousClock())",
    "AssetWriterInput.append(_:)": "append(value() as SampleBuffer)",
    "Composition.insertTimeRange(_:of:at:)":
        "insertTimeRange(value(), of: value() as MediaSource, at: value())",
    "CaptureDevice.fastestFormat(where:)": "fastestFormat { _ in true }",
}


@dataclasses.dataclass
class Row:
    """A row of a table: where it is, the names of its second cell, and the tests of its third."""
    article: str
    line: int
    cells: list
    names: list
    tests: list


def rows(article, text):
    """The rows of an article's tables that have counterparts."""
    heading = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("| ") or heading.startswith("Not here"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0] == "AVFoundation":
            continue
        yield Row(article, number, cells, SPAN.findall(cells[1]) if len(cells) > 1 else [],
                  SPAN.findall(cells[2]) if len(cells) > 2 else [])


def tests(repo):
    """The names of all test functions."""
    return {name for path in (repo / "Tests").rglob("*.swift")
            for name in TEST.findall(path.read_text())}


def kinds(graphs):
    """The kind of each public symbol, by its path; a case is found without its values, too."""
    found = {}
    for graph in graphs:
        for symbol in graph["symbols"]:
            path = ".".join(symbol["pathComponents"])
            kind = symbol["kind"]["identifier"]
            found.setdefault(path, kind)
            if kind == "swift.enum.case":
                found.setdefault(path.split("(")[0], kind)
    return found


def function(number, row, name, kind):
    """A function that uses a name on its owner, on the line on which the article has it."""
    owner, member = name, ""
    if kind not in TYPES and kind != "swift.protocol":
        path, parenthesis, labels = name.partition("(")
        owner, _, member = path.rpartition(".")
    parameter = ""
    if not member:
        use = f"_ = (any {name}).self" if kind == "swift.protocol" else f"_ = {name}.self"
    elif kind in ("swift.enum.case", "swift.type.property"):
        use = f"_ = {owner}.{member}"
    else:
        call = CALLS.get(name)
        if call is None:
            arguments = ", ".join(
                "value()" if label == "_" else f"{label}: value()"
                for label in labels.rstrip(")").split(":") if label)
            call = f"{member}({arguments})" if parenthesis else member
        if kind == "swift.init":
            use = f"_ = try await {owner}({call.partition('(')[2]}"
        elif kind == "swift.type.method":
            use = f"_ = try await {owner}.{call}"
        else:
            use = f"_ = try await owner.{call}"
            parameter = f"_ owner: consuming {owner}"
    return [f"func use{number}({parameter}) async throws {{",
            f'#sourceLocation(file: "{row.article}", line: {row.line})',
            ("var buffer: PixelBuffer = value(); " if "&buffer" in use else "") + use,
            "#sourceLocation()", "}"]


def source(texts, symbols):
    """A Swift file that uses each name of the tables on its owner."""
    lines = ["import Overcrank", "func value<Value: ~Copyable>() -> Value { fatalError() }"]
    uses = [(row, name) for article, text in texts for row in rows(article, text)
            for name in row.names]
    for number, (row, name) in enumerate(uses):
        lines += function(number, row, name, symbols.get(name))
    return "\n".join(lines) + "\n"


def problems(texts, test_names):
    """The errors of the rows that a compiler does not report."""
    for row in (row for article, text in texts for row in rows(article, text)):
        place = f"{row.article}:{row.line}"
        if len(row.cells) != 3:
            yield f"{place}: a row has the names of AVFoundation, ours, and the test"
            continue
        for name in row.names:
            if not NAME.fullmatch(name):
                yield f"{place}: `{name}` is neither a type nor a member after its owner"
        if not row.names:
            yield f"{place}: no counterpart is named"
        if not row.tests:
            yield f"{place}: no test is named"
        for name in row.tests:
            if name not in test_names:
                yield f"{place}: no such test: `{name}`"


def read(repo):
    """The articles, as pairs of a path and a text."""
    return [(str(path.relative_to(repo)), path.read_text())
            for path in sorted(repo.glob(ARTICLES))]
