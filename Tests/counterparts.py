# SPDX-License-Identifier: Apache-2.0
"""The tables of the articles for people who come from AVFoundation.

A row has two cells: names of AVFoundation, and their counterparts here. Each code span of the second
cell is a type, or a member behind its owner: `Owner.property`, `Owner.case`, `Owner.method(label:)`. A
Swift file is made in which every one of them is used on its owner, so that a name that belongs to
another type does not compile.

A comment below each table names the test of each row, which readers of the articles do not see. It has
one line for each row, in the same order: the first counterpart, and the name of a test function.

    <!-- tests
    CaptureSession.isRunning: `An input comes back when its device does`
    -->

Sections whose heading begins with "Not supported" have no counterparts, and are not read.
"""
import dataclasses
import re

ARTICLES = "Sources/Overcrank/Overcrank.docc/Articles/*FromAVFoundation.md"
SPAN = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Z]\w*(?:\.\w+)*(?:\((?:\w+:)*\))?")
# Tests alone have names that are sentences.
TEST = re.compile(r"\bfunc `([^`]+)`\(")
COMMENT = "<!-- tests"
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
    """A row of a table: where it is, and the names of its second cell."""
    article: str
    line: int
    cells: list
    names: list


@dataclasses.dataclass
class Table:
    """A table's rows, and the lines of its comment: where each is, a counterpart and a test."""
    rows: list
    tests: list


def tables(article, text):
    """The tables of an article that have counterparts."""
    heading, found, in_comment, in_table = "", [], False, False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line == COMMENT and found:
            in_comment = True
        elif line == "-->":
            in_comment = False
        elif in_comment:
            name, _, test = line.partition(": ")
            found[-1].tests.append((number, name, test.strip("`")))
        elif not line.startswith("|"):
            in_table = False
        elif not heading.startswith("Not supported"):
            if not in_table:
                found.append(Table([], []))
            in_table = True
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| ") and cells[0] != "AVFoundation":
                found[-1].rows.append(Row(
                    article, number, cells, SPAN.findall(cells[1]) if len(cells) > 1 else []))
    return found


def rows(article, text):
    """The rows of all tables of an article that have counterparts."""
    return [row for table in tables(article, text) for row in table.rows]


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


def row_problems(row):
    """The errors of a row that a compiler does not report."""
    if len(row.cells) != 2:
        yield "a row has the names of AVFoundation, and ours"
        return
    if not row.names:
        yield "no counterpart is named"
    for name in row.names:
        if not NAME.fullmatch(name):
            yield f"`{name}` is neither a type nor a member after its owner"


def problems(texts, test_names):
    """The errors of the tables and their comments that a compiler does not report."""
    for article, text in texts:
        for table in tables(article, text):
            named = iter(table.tests)
            for row in table.rows:
                place = f"{article}:{row.line}"
                yield from (f"{place}: {problem}" for problem in row_problems(row))
                line, name, test = next(named, (row.line, None, None))
                if name is None:
                    yield f"{place}: no test is named in the comment below the table"
                elif name not in row.names[:1]:
                    yield f"{article}:{line}: `{name}` is not the first counterpart of line {row.line}"
                elif test not in test_names:
                    yield f"{article}:{line}: no such test: `{test}`"
            for line, name, _ in named:
                yield f"{article}:{line}: the table has no row for `{name}`"


def self_test():
    """Shows that each mistake in a table and its comment is found, at its line."""
    def found(*lines):
        text = "| AVFoundation | Overcrank |\n|---|---|\n" + "".join(f"{line}\n" for line in lines)
        return list(problems([("a.md", text)], {"It runs", "It stops"}))

    row, other = "| `run()` | `A.run()`, `A` |", "| `stop()` | `A.stop(at:)` |"
    comment = ("", COMMENT, "A.run(): `It runs`", "A.stop(at:): `It stops`", "-->")
    assert found(row, other, *comment) == []
    assert found(row, other, *comment, "", "## Not supported", "", "| `a` | nothing |") == []
    # Two tables have a comment each.
    assert found(row, other, *comment, "", row, "", COMMENT, "A.run(): `It runs`", "-->") == []
    for lines, words in [
            ((row, other), "a.md:3: no test is named"),
            ((row, other, "", *comment[1:3], "-->"), "a.md:4: no test is named"),
            ((row, *comment), "a.md:7: the table has no row for `A.stop(at:)`"),
            ((other, row, *comment), "a.md:7: `A.run()` is not the first counterpart of line 3"),
            ((row, *comment[:2], "A.run(): `It does not`", "-->"), "a.md:6: no such test"),
            ((row, *comment[:2], "A.run()", "-->"), "a.md:6: no such test"),
            (("| `run()` | it runs |",), "a.md:3: no counterpart is named"),
            (("| `run()` | `run()` |",), "a.md:3: `run()` is neither"),
            (("| `run()` | `A.run()` | `It runs` |",), "a.md:3: a row has the names")]:
        assert found(*lines) and found(*lines)[0].startswith(words), (lines, found(*lines))


def read(repo):
    """The articles, as pairs of a path and a text."""
    return [(str(path.relative_to(repo)), path.read_text())
            for path in sorted(repo.glob(ARTICLES))]
