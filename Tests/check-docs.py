#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the documentation, and compiles the Swift blocks of every article and other document.

Every public symbol stands under `Overcrank`, the module that users import. A warning of `docc`
(a link that leads nowhere, a parameter without a name) fails, in articles and doc comments alike.
The blocks of an article become one file, in which each sees the names of those above it. Blocks of a
terminal (`console`) in which every command is `slowmo` are run in a new directory for each document;
the lines shown must be among what is printed, in their order; a command that shows none must exit with
0. `…` stands for other lines. Blocks that need a camera, and `sh` blocks, are not run. Parts of a
Package.swift (`swift manifest`) are not compiled.
The tables for people who come from AVFoundation are compiled too, and each row has a test
(counterparts.py).

    Tests/check-docs.py BUILD-DIRECTORY    the directory of `swift build`, which has the modules and
                                           both programs; the archive is .build/docs
    Tests/check-docs.py BUILD-DIRECTORY --self-test    shows that wrong calls and links are found
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import articles
import counterparts
import symbol_graphs

REPO = pathlib.Path(__file__).resolve().parent.parent
CATALOG = REPO / articles.CATALOG
NEEDS_CAMERA = re.compile(r"\bcam\d|/dev/video")


def docc():
    """The documentation compiler: that of the toolchain, where it is not on the path."""
    return shutil.which("docc") or str(
        pathlib.Path(shutil.which("swiftc")).resolve().parent / "docc")


def convert(catalog, graphs, output):
    """The warnings of `docc` about a catalog; empty if it has none."""
    result = subprocess.run(
        [docc(), "convert", str(catalog), "--additional-symbol-graph-dir", str(graphs),
         "--fallback-display-name", "Overcrank", "--fallback-bundle-identifier", "com.overcrank",
         "--warnings-as-errors", "--output-path", str(output)],
        capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def compile_sources(build, sources, warnings="-warnings-as-errors"):
    """The errors of the compiler in source files; empty if they compile."""
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for source in filter(None, sources):
            files.append(pathlib.Path(directory) / f"{len(files)}.swift")
            files[-1].write_text(source)
        result = subprocess.run(
            ["swiftc", "-emit-sil", "-wmo", "-o", "/dev/null", "-swift-version", "6",
             "-module-name", "Articles", "-parse-as-library", warnings,
             *symbol_graphs.compiler_options(REPO, build), *map(str, files)],
            capture_output=True, text=True)
        return "" if result.returncode == 0 else result.stdout + result.stderr


def compile_blocks(build, texts):
    """The errors of the compiler in the Swift blocks of articles; empty if they compile."""
    return compile_sources(build, [articles.nested_source(name, text) for name, text in texts])


def check_counterparts(build, graphs, texts):
    """The errors of the tables for people who come from AVFoundation."""
    symbols = counterparts.kinds(graph for _, graph in symbol_graphs.load(graphs))
    found = "".join(
        f"{problem}\n" for problem in counterparts.problems(texts, counterparts.tests(REPO)))
    # A call of a function that does not suspend or throw is marked as one that does.
    return found + compile_sources(
        build, [counterparts.source(texts, symbols)], "-suppress-warnings")


def missing_line(shown, printed):
    """The first line of a block that was not printed behind those before it; nothing if all were."""
    rest = iter(printed)
    for line in shown:
        if line.strip() != "…" and line.rstrip() not in rest:
            return line
    return None


# In the documents cameras keep their own pace. Here they wait, so that no machine loses a frame.
LIVE = re.compile(r"(?<=record )synthetic(?::[\w@/]+)?(?= )")


def run_commands(build, name, text):
    """The errors of the commands in a document's terminal blocks, as sentences."""
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", COLUMNS="80")
    with tempfile.TemporaryDirectory() as directory:
        for block in articles.split(text)[0]:
            commands = articles.commands(block)
            if block.language != "console" or not all(
                    command.startswith("slowmo ") and not NEEDS_CAMERA.search(command)
                    for _, command, _ in commands):
                continue
            for line, command, shown in commands:
                command = LIVE.sub(lambda found: f"'{found[0]}?pace=max'", command)
                # One that waits for a trigger would wait for ever.
                result = subprocess.run(
                    ["timeout", "3600", "bash", "-c", command], cwd=directory, env=environment,
                    text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT)
                printed = [other.rstrip() for other in result.stdout.splitlines()]
                missing = missing_line(shown, printed)
                if missing is None and not shown and result.returncode:
                    missing = f"exit code 0, but {result.returncode}"
                if missing is not None:
                    return [f"{name}:{line}: $ {command}\nprints no line\n{missing}\nbut\n"
                            + "\n".join(printed[:40])]
    return []


def run_documents(build, texts):
    """The errors of the commands of documents."""
    problems = [problem for name, text in texts for problem in run_commands(build, name, text)]
    return "\n".join(problems)


def self_test(build, graphs, directory):
    """Shows that a call that does not exist and a link that leads nowhere are found."""
    right = "```swift\nlet speed = Speed(1, over: 8)\nprint(speed)\n```\n"
    wrong = "```swift\nprint(speed.missing)\n```\n"
    assert not compile_blocks(build, [("right.md", right)])
    message = compile_blocks(build, [("right.md", right), ("wrong.md", right + wrong)])
    assert "wrong.md:6" in message and "missing" in message, message
    shown = "```console\n$ slowmo --help\n…\nEXIT CODES{}\n```\n"
    assert missing_line(["b", "…", "d"], ["a", "b", "c", "d"]) is None
    assert missing_line(["d", "b"], ["a", "b", "c", "d"]) == "b"
    assert run_documents(build, [("wrong.md", shown.format(" none"))])
    assert run_documents(build, [("wrong.md", "```console\n$ slowmo info none.mov\n```\n")])
    counterparts.self_test()
    table = ("| AVFoundation | Overcrank |\n|---|---|\n| `startRunning()` | `{0}.startRunning()` |\n\n"
             "<!-- tests\n{0}.startRunning(): `{1}`\n-->\n")
    test = "A session without inputs fails to start"
    for owner, named, words in [
            ("CaptureSession", test, ""), ("CaptureSession", "No test", "a.md:6: no such test"),
            ("CaptureDevice", test, "no member 'startRunning'")]:
        message = check_counterparts(build, graphs, [("a.md", table.format(owner, named))])
        assert words in message and bool(words) == bool(message), message
        assert not message or re.search(r"a\.md:[36]:", message), message
    catalog = directory / "Wrong.docc"
    catalog.mkdir()
    (catalog / "Wrong.md").write_text("# Wrong\n\nA link: ``CaptureSession/missing``.\n")
    assert "missing" in convert(catalog, graphs, directory / "wrong")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        graphs = directory / "graphs"
        graphs.mkdir()
        symbol_graphs.extract_umbrella(REPO, build, graphs)
        if "--self-test" in sys.argv:
            self_test(build, graphs, directory)
        texts = [(str(path.relative_to(REPO)), path.read_text()) for path in articles.paths(REPO)]
        problems = convert(CATALOG, graphs, REPO / ".build/docs")
        problems += check_counterparts(build, graphs, counterparts.read(REPO))
        problems += compile_blocks(build, texts) + run_documents(build, texts)
        if problems:
            sys.exit(problems)
        print(f"check-docs: {len(texts)} documents, without a warning; .build/docs has the archive")


if __name__ == "__main__":
    main()
