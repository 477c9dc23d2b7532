#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the documentation, and compiles the Swift blocks of every article and of the README.

Every public symbol stands under `Overcrank`, the module that users import. A warning of `docc`
(a link that leads nowhere, a parameter without a name) fails, in articles and doc comments alike.
The blocks of an article become one file, in which each sees the names of those above it.

    Tests/check-docs.py BUILD-DIRECTORY    the directory of `swift build`; the archive is .build/docs
    Tests/check-docs.py BUILD-DIRECTORY --self-test    shows that wrong calls and links are found
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import articles
import symbol_graphs

REPO = pathlib.Path(__file__).resolve().parent.parent
CATALOG = REPO / articles.CATALOG


def docc():
    """The documentation compiler: that of the toolchain, where it is not on the path."""
    return shutil.which("docc") or str(
        pathlib.Path(shutil.which("swiftc")).resolve().parent / "docc")


def convert(catalog, graphs, output):
    """What `docc` says about a catalog; nothing if it has no complaint."""
    result = subprocess.run(
        [docc(), "convert", str(catalog), "--additional-symbol-graph-dir", str(graphs),
         "--fallback-display-name", "Overcrank", "--fallback-bundle-identifier", "com.overcrank",
         "--warnings-as-errors", "--output-path", str(output)],
        capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def compile_blocks(build, texts):
    """What the compiler says about the Swift blocks of articles; nothing if they compile."""
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for name, text in texts:
            source = articles.nested_source(name, text)
            if source:
                files.append(pathlib.Path(directory) / f"{len(files)}.swift")
                files[-1].write_text(source)
        result = subprocess.run(
            ["swiftc", "-emit-sil", "-wmo", "-o", "/dev/null", "-swift-version", "6", "-module-name",
             "Articles", "-parse-as-library", "-suppress-warnings",
             *symbol_graphs.compiler_options(REPO, build), *map(str, files)],
            capture_output=True, text=True)
        return "" if result.returncode == 0 else result.stdout + result.stderr


def self_test(build, graphs, directory):
    """Shows that a call that does not exist and a link that leads nowhere are found."""
    right = "```swift\nlet speed = Speed(1, over: 8)\n```\n"
    wrong = "```swift\nprint(speed.missing)\n```\n"
    assert not compile_blocks(build, [("right.md", right)])
    message = compile_blocks(build, [("right.md", right), ("wrong.md", right + wrong)])
    assert "wrong.md:5" in message and "missing" in message, message
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
        problems = (convert(CATALOG, graphs, REPO / ".build/docs") + compile_blocks(build, texts))
        if problems:
            sys.exit(problems)
        print(f"check-docs: {len(texts)} documents, without a warning; .build/docs has the archive")


if __name__ == "__main__":
    main()
