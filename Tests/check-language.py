#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on names and sentences that need a dictionary of this project.

* Names: no public symbol, no declaration of Swift, no identifier of a script or of C, and no file has
  a word for which the field has another (vocabulary.py).
* Files: a file in Sources is named after a type, or an extension of a type, that it declares:
  `Type.swift` or `Type+Topic.swift`. No library imports all of Foundation.
* Comments, and messages of scripts and samples: none of these words. No sentence begins with What,
  Who, Where, Of or Nobody.
* Messages and help of Sources: no "is no X" and no "there is".
* Names of tests: a plain claim of at most 60 characters, without commas, quotes and backslashes.
* Documents: articles.py.

Public symbols are read from the symbol graphs of the modules that were built.

    Tests/check-language.py BUILD-DIRECTORY    checks all; the directory is that of `swift build`
    Tests/check-language.py --self-test        shows that each kind of mistake is found, and
                                               checks all that needs no build
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import articles
import source_text
import symbol_graphs
import vocabulary

DECLARATION = re.compile(
    r"^\s*(?:(?:@\w+(?:\([^)]*\))?|public|package|internal|fileprivate|private|final|indirect|"
    r"nonisolated)\s+)*(?:struct|class|enum|protocol|actor|extension|typealias)\s+([\w.]+)", re.M)
FOUNDATION = re.compile(r"^\s*(?:\w+\s+)?import\s+Foundation\s*$", re.M)
SUFFIXES = (".swift", *source_text.C_SUFFIXES, ".py", ".sh")
TEST_NAME_LENGTH = 60
PROSE_RULES = (vocabulary.word_problems, vocabulary.opening_problems)
# The files with the words themselves.
VOCABULARY = ("vocabulary.py", "articles.py", "check-language.py")


def file_problems(path, text):
    """The errors of a source file's name and imports."""
    declared = {part for name in DECLARATION.findall(text) for part in name.split(".")}
    if path.stem != "main" and not text.count("@_exported") and (
            path.stem.split("+")[0] not in declared):
        yield "it declares no type of its name, and extends none"
    if "slowmo" not in path.parts and FOUNDATION.search(text):
        yield "a library imports FoundationEssentials, or nothing of it"


def name_problems(path, text, tokens):
    """The errors of a file's name, and of the names that the file declares."""
    for part in re.split(r"\W+", path.stem):
        yield from ((1, problem) for problem in vocabulary.name_problems(part))
    if path.suffix == ".swift":
        table = vocabulary.WORDS
        names = source_text.declared_names([token for _, token in tokens])
    else:
        table = vocabulary.PROSE_WORDS
        names = source_text.script_names(path, text, tokens)
    lines = {token.strip("`"): line for line, token in reversed(tokens)}
    for name in sorted(set(names)):
        for problem in vocabulary.name_problems(name, table):
            yield lines.get(name, 1), f"{name}: {problem}"


def prose_problems(line, prose, *rules):
    """The errors of a text that begins on a line."""
    for rule in rules:
        for offset, problem in rule(prose):
            yield line + prose.count("\n", 0, offset), problem


def test_name_problems(line, name):
    """The errors of a test's name."""
    if len(name) > TEST_NAME_LENGTH:
        yield line, f"a test's name has at most {TEST_NAME_LENGTH} characters: {name}"
    if re.search(r"[,\"'“”‘’\\]", name):
        yield line, f"a test's name has no comma, quote or backslash: {name}"
    yield from prose_problems(line, name, *PROSE_RULES)


def problems(path, text):
    """The errors of a file below Sources, Tests or Samples, each with its line."""
    comments, strings, tokens = source_text.parts(path, text)
    isSwift, isSource = path.suffix == ".swift", path.parts[0] == "Sources"
    yield from name_problems(path, text, tokens)
    for line, comment in comments:
        yield from prose_problems(
            line, re.sub(r"`[^`\n]+`", vocabulary.blank, comment), *PROSE_RULES)
    if isSource and isSwift:
        yield from ((1, problem) for problem in file_problems(path, text))
        for line, string in strings:
            yield from ((line, problem) for problem in vocabulary.message_problems(string))
    elif path.parts[0] == "Samples" or not isSwift:
        for line, string in strings:
            if " " in string:
                yield from prose_problems(line, string, vocabulary.word_problems)
    if path.parts[0] == "Tests" and isSwift:
        for line, name in source_text.test_names(text):
            yield from test_name_problems(line, name)


def is_checked(path):
    """Whether a file has code of this project: also a script without a suffix."""
    if path.suffix == "" and path.is_file():
        return path.read_bytes()[:2] == b"#!"
    return path.suffix in SUFFIXES and path.name not in VOCABULARY


def file_paths(repo):
    """The files of Sources, Tests and Samples with code of this project."""
    return sorted(
        path.relative_to(repo) for name in ("Sources", "Tests", "Samples")
        for path in (repo / name).rglob("*") if is_checked(path))


def public_names(graph):
    """The names of a module's public symbols, and the labels of their arguments."""
    for symbol in graph["symbols"]:
        if symbol["accessLevel"] in ("public", "open"):
            for part in symbol["pathComponents"]:
                yield from (name for name in re.split(r"[(:)]", part) if name not in ("", "_"))


def modules_of(repo):
    """The names of the Swift modules below Sources but for the programs."""
    description = json.loads(subprocess.run(
        ["swift", "package", "--package-path", str(repo), "describe", "--type", "json"],
        check=True, capture_output=True, text=True).stdout)
    return [
        target["name"] for target in description["targets"]
        if target["path"].startswith("Sources/") and target["type"] == "library"
        and target["module_type"] == "SwiftTarget"]


def symbol_problems(repo, build):
    """The errors of the public symbols of a build."""
    found = set()
    with tempfile.TemporaryDirectory() as directory:
        for module in modules_of(repo):
            symbol_graphs.extract(repo, build, module, directory)
        for module, graph in symbol_graphs.load(directory):
            for name in public_names(graph):
                found |= {
                    f"{module}: {name}: {problem}" for problem in vocabulary.name_problems(name)}
    return sorted(found)


def found_in(name, text):
    return [problem for _, problem in problems(pathlib.Path(name), text)]


def test_names():
    """Shows that wrong names are found, and right ones pass."""
    assert found_in("Sources/Capture/Room.swift", "struct Room {}\n") == [
        "room: write module, or space", "Room: room: write module, or space"]
    assert found_in("Sources/A/Pace.swift", "struct Pace {}\n") == []
    assert found_in("Sources/A/Pace+Text.swift", "extension Pace {}\n") == []
    assert len(found_in("Sources/A/Pace.swift", "struct Speed {}\n")) == 1
    assert len(found_in("Sources/A/Pace.swift", "import Foundation\nenum Pace {}\n")) == 1
    graph = {"symbols": [
        {"accessLevel": "public", "pathComponents": ["Take", "soundTrack(of:)", "inFolder"]},
        {"accessLevel": "internal", "pathComponents": ["Room"]}]}
    assert [bool(vocabulary.name_problems(name)) for name in public_names(graph)] == [
        False, True, False, True]
    # In comments, in strings and for local names, the words of names are allowed.
    text = """
      /// The way of var place: Int.
      struct Room<Element> where Element: Sendable {
        private let (told, other): (Int, Int)
        var pictures: [Int] { let place = 1; return [place] }
        case lamp(sound: Int), voice
        static func turn<T>(_ folder: T, at place: (words: Int, Int)) -> Int {
          let means = "let ways = \\(of(room: 1))"
          return means.count
        }
        @Test func `A name with var room`() {}
        init?(mend value: Int) { for way in [value] { _ = way } }
      }
      """
    _, _, tokens = source_text.parts(pathlib.Path("a.swift"), text)
    names = source_text.declared_names([token for _, token in tokens])
    assert [name for name in names if vocabulary.name_problems(name)] == [
        "Room", "told", "pictures", "lamp", "sound", "voice", "turn", "folder", "place", "words",
        "mend"]
    assert vocabulary.name_problems("StampClock")
    assert not any(map(vocabulary.name_problems, ("pictureSets", "mushroom", "soundness")))


def test_prose():
    """Shows that each planted mistake is the only one that is found in its file."""
    comment = "// A take ends here. {}\nlet a = 1\n"
    planted = {
        "Sources/A/Pace.swift": [
            'enum Pace { static let a = "the file is no movie" }',
            'enum Pace { static let a = "there are 2 files" }',
            'enum Pace {\n  static let a = """\n    it is \\\n    no movie\n    """\n}',
            "// What is left.\nenum Pace {}", "// A frame.\n//\n// Of two, the last.\nenum Pace {}",
            "enum Pace {}  // The folder."],
        "Tests/ATests/PaceTests.swift": [
            "@Test func `What is lost stays lost`() {}", "@Test func `A frame, and more`() {}",
            "@Test func `The frame's time`() {}", "@Test func `A \\ path`() {}",
            f"@Test func `{'A frame ' * 8}`() {{}}", "@Test func `The picture is gray`() {}",
            '@Test("Nobody is here") func a() {}', "let a = 1  // Who waits.", "func a(folder: Int) {}"],
        "Tests/Tools/a.py": [
            "def folder():\n    pass\n", '"""Of two frames the last."""\n', "# A grey frame.\n",
            'fail("the picture is wrong")\n'],
        "Tests/Tools/a.sh": ["#!/bin/sh\n# Where it is.\n", "folder=1\n", 'echo "no picture"\n'],
        "Tests/Tools/a.c": ["int tell_all(void);", "/// Nobody reads.\nint a;", 'f("a folder");'],
        "Samples/A/main.swift": [
            comment.format("Who waits."), "func a(sound: Int) {}", 'print("no picture")'],
        "Samples/a.py": ["folder = 1\n", "# The sound ends.\n"],
    }
    for name, texts in planted.items():
        for text in texts:
            assert len(found_in(name, text)) == 1, (name, text, found_in(name, text))
    right = {
        "Sources/A/Pace.swift": 'enum Pace { static let a = "it is no larger, is not a movie" }',
        "Tests/ATests/PaceTests.swift": "@Test func `A frame keeps its time`() { let folder = 1 }",
        "Tests/Tools/a.sh": "# The place of a frame.\nsound/folder/a.sh $# # An IDR picture.\n",
        "Samples/A/main.swift": comment.format("The text says what is left.")}
    for name, text in right.items():
        assert found_in(name, text) == [], (name, found_in(name, text))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage:\n    " + __doc__.partition("\n\n    ")[2])
    repo = pathlib.Path(__file__).resolve().parent.parent
    test_names()
    test_prose()
    articles.self_test(repo)
    found = articles.all_problems(repo)
    for path in file_paths(repo):
        found += [
            f"{path}:{line}: {problem}"
            for line, problem in problems(path, (repo / path).read_text())]
    if "--self-test" not in sys.argv:
        found += symbol_problems(repo, pathlib.Path(sys.argv[1]).resolve())
    for problem in found:
        print(f"check-language: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("check-language: every word is the field's")


if __name__ == "__main__":
    main()
