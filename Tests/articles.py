# SPDX-License-Identifier: Apache-2.0
"""Articles, the README and the other documents of the root, taken apart: their code, their prose, and
the errors of the prose.

A figure that was measured stands in a paragraph or table that names the program which prints it:
`Benchmarks/…` or `Tests/…` in backticks. A figure that is a constant of the code is followed by a
comment with the file and the text in it that makes it so:

    A fragment lasts 150 ms. <!-- Sources/Recording/Pipeline/TakeFileWriter.swift: 150 -->

Values of options in backticks, and what stands in code blocks, need neither.

A block `swift manifest` is a part of a Package.swift, which is not compiled.
"""
import dataclasses
import re

import vocabulary

UNITS = r"(?:%|ms|µs|us|ns|ppm|dB|[kMGT]i?B)(?![\w/])|(?:×|times) (?:faster|slower|as )"
FIGURE = re.compile(rf"(?<![\w.])\d[\d .,]*\s?(?:{UNITS})|(?<![\w.])\d+\.\d+ s\b")
PROGRAM = re.compile(r"`(?:Benchmarks|Tests)/[^`]+`")
HIDDEN = re.compile(r"<!-- (?:swift|console)")
COMMENT = re.compile(r"<!--(.*?)-->", re.S)
# Comments between lines, which readers do not see.
HIDDEN_LINES = re.compile(r"^<!--.*?-->\n", re.M | re.S)
CONSTANT = re.compile(r"^\s*(Sources/\S+): (.+?)\s*$", re.S)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)", re.M)
FILTER = re.compile(r"swift test --filter ('[^']+'|[^`\s]+)")
APT_LINE = re.compile(r"^sudo apt-get install (.+)$", re.M)
LIBRARIES = re.compile(r"\b(?:pkg-config|lib[\w.-]+-dev)\b")
REPOSITORY_PATH = re.compile(r"`((?:Benchmarks|Samples|Sources|Tests)/[^`\s]*)")
CATALOG = "Sources/Overcrank/Overcrank.docc"
DIAGRAM_COLUMNS = 96
ARTICLE_LINES = 200
README_LINES = 150


@dataclasses.dataclass
class Block:
    """A fenced block of code, or a hidden one in a comment."""
    language: str
    text: str
    line: int


def split(text):
    """The blocks of code of an article, and its paragraphs as pairs of a line number and a text."""
    blocks, paragraphs, lines = [], [], []
    fence = None
    number = 0

    def end_paragraph():
        if lines:
            paragraphs.append((number - len(lines), "\n".join(lines)))
            lines.clear()

    for number, line in enumerate(text.splitlines() + [""], start=1):
        if fence is None and (line.startswith("```") or HIDDEN.fullmatch(line.rstrip())):
            end_paragraph()
            hidden = line.startswith("<!--")
            fence = "-->" if hidden else "```"
            blocks.append(Block(line[4 if hidden else 3:].strip(), "", number + 1))
        elif fence and line.rstrip() == fence:
            fence = None
        elif fence:
            blocks[-1].text += line + "\n"
        elif line.strip():
            lines.append(line)
        else:
            end_paragraph()
    return blocks, paragraphs


def nested_source(name, text):
    """The Swift blocks of an article as one file: each block sees the names of those above it,
    and may use them again for other values. Nothing if it has none.

    A block that waits is a function that suspends; in others the calls are those that block."""
    blocks = [block for block in split(text)[0] if block.language == "swift"]
    if not blocks:
        return None
    imports, body = ["import Overcrank"], []
    function = re.sub(r"\W", "_", name)
    for block in blocks:
        suspends = "async " if re.search(r"\bawait\b", block.text) else ""
        body += [f"func {function}_{block.line}() {suspends}throws {{",
                 f'#sourceLocation(file: "{name}", line: {block.line})']
        for line in block.text.splitlines():
            if re.match(r"import \w", line):
                imports.append(line)
                line = ""
            body.append(line)
        body += ["#sourceLocation()"]
    return "\n".join([*dict.fromkeys(imports), "", *body, *["}"] * len(blocks), ""])


def commands(block):
    """The commands of a block of a terminal, each with its line and the lines that it prints."""
    found = []
    continues = False
    for offset, line in enumerate(block.text.splitlines()):
        if continues:
            found[-1][1] += "\n" + line
        elif line.startswith("$ "):
            found.append([block.line + offset, line[2:], []])
        elif found:
            found[-1][2].append(line)
        continues = (continues or line.startswith("$ ")) and line.endswith("\\")
    return found


def words_problems(paragraph):
    """Words and phrases to avoid, and sentences that open with a relative clause."""
    prose = re.sub(r"`+[^`]*`+|\]\([^)]*\)|<[^>]*>", " ", COMMENT.sub(" ", paragraph))
    rules = [vocabulary.word_problems, vocabulary.phrase_problems]
    if not prose.startswith(("#", "|")):
        rules.append(vocabulary.opening_problems)
    for rule in rules:
        yield from (problem for _, problem in rule(prose))


def figure_problems(repo, paragraph):
    """Figures for which no program and no line of the code answers."""
    constants = [match for match in map(CONSTANT.match, COMMENT.findall(paragraph)) if match]
    for match in constants:
        path = repo / match[1]
        if not path.is_file() or match[2] not in path.read_text():
            yield f"{match[1]} does not have: {match[2]}"
    if constants or PROGRAM.search(paragraph):
        return
    prose = re.sub(r"`+[^`]*`+", " ", COMMENT.sub(" ", paragraph))
    for figure in FIGURE.findall(prose):
        yield (f"{figure.strip()}: name the program that prints it, `Benchmarks/…` or `Tests/…`, "
               "or the line that makes it so, <!-- Sources/FILE: TEXT -->")


def link_problems(repo, path, paragraph):
    """Links to files, and names of files of the repository, that are not there."""
    for inline, reference in LINK.findall(paragraph):
        target = inline or reference
        # DocC names an image by its name in the resources of the catalog.
        image = any((repo / CATALOG / "Resources").glob(f"{target}.*"))
        if not image and not re.match(r"[a-z]+:|#|/", target) and not (
                path.parent / target.split("#")[0]).exists():
            yield f"no such file: {target}"
    for name in REPOSITORY_PATH.findall(paragraph):
        if not re.search(r"[*…]|\b[A-Z]+\b$", name) and not (repo / name).exists():
            yield f"no such file: {name}"


def option_problems(options, text):
    """Options of `slowmo` that it does not have, in the code of an article."""
    named = [span for span in re.findall(r"`([^`\n]+)`", text)
             if span.startswith(("--", "slowmo "))]
    for block in split(text)[0]:
        if block.language in ("console", "sh"):
            named += [line for line in block.text.replace("\\\n", " ").splitlines()
                      if line.removeprefix("$ ").startswith("slowmo ")]
    for option in sorted({option for line in named for option in OPTION.findall(line)}):
        if option not in options:
            yield f"slowmo has no option {option}"


def filter_problems(repo, text):
    """Filters of `swift test` that choose no test: the parts around `.*` must stand in one file."""
    for found in FILTER.findall(text):
        parts = found.strip("'").split(".*")
        if not any(all(part in f"{path.relative_to(repo)}\n{path.read_text()}" for part in parts)
                   for path in (repo / "Tests").glob("*Tests/**/*.swift")):
            yield f"no test for the filter {found}"


def package_problems(repo, text):
    """A line that installs the libraries, but not those of the scripts."""
    script = (repo / "Samples/install-packages.sh").read_text()
    for line in APT_LINE.findall(text):
        if set(line.split()) != set(LIBRARIES.findall(script)):
            yield f"Samples/install-packages.sh has other libraries than: {line}"


def area_problems(repo, text):
    """Modules that CONTRIBUTING.md does not list as areas of commits."""
    for path in sorted((repo / "Sources").iterdir()):
        # Those of C have the area of the module that imports them.
        if path.is_dir() and not re.match(r"C[A-Z]|slowmo|DeviceDiscovery$", path.name) and (
                f"`{path.name.lower()}`" not in text):
            yield f"the module {path.name} is no area of commits"


def known_options(repo):
    """The options of all verbs, from the frozen help."""
    help_text = "".join(
        path.read_text() for path in sorted((repo / "Tests/Fixtures/help").glob("*.txt")))
    return set(OPTION.findall(help_text))


def problems(repo, path, text, most_lines):
    """The errors of an article or the README, each with its line."""
    blocks, paragraphs = split(text)
    yield from option_problems(known_options(repo), text)
    yield from filter_problems(repo, text)
    yield from package_problems(repo, text)
    if path.name == "CONTRIBUTING.md":
        yield from area_problems(repo, text)
    lines = len(HIDDEN_LINES.sub("", text).splitlines())
    if lines > most_lines:
        yield f"{lines}: a document of this kind has at most {most_lines} lines"
    for block in blocks:
        if block.language in ("", "text"):
            for offset, line in enumerate(block.text.splitlines()):
                if len(line) > DIAGRAM_COLUMNS:
                    yield f"{block.line + offset}: a diagram has at most {DIAGRAM_COLUMNS} columns"
    for line, paragraph in paragraphs:
        for problem in (*words_problems(paragraph), *figure_problems(repo, paragraph),
                        *link_problems(repo, path, paragraph)):
            yield f"{line}: {problem}"


def paths(repo):
    """The documents of the root, that of the samples, and the articles."""
    return [*sorted(repo.glob("*.md")), repo / "Samples/README.md",
            *sorted((repo / CATALOG).rglob("*.md"))]


def all_problems(repo):
    """The errors of the documents of a checkout."""
    return [
        f"{path.relative_to(repo)}:{problem}" for path in paths(repo)
        for problem in problems(
            repo, path, path.read_text(),
            README_LINES if path == repo / "README.md" else ARTICLE_LINES)]


def self_test(repo):
    """Shows that a mistake of each kind is found, and that right prose passes."""
    path = repo / "README.md"

    def found(text):
        return list(problems(repo, path, text, README_LINES))

    assert not found("A frame of 240 fps. `--min-free 1GiB` ends a take. See [it](LICENSE).\n")
    assert not found("```swift\nlet picture = 5 // 12 ms\n```\n")
    assert not found("It took 12 ms, says `Tests/run.sh`.\n")
    assert not found("A line.\n<!-- tests\n" + "A: `One picture`\n" * README_LINES + "-->\n")
    assert not found("A sound card. A light goes on or off. It is longer than that of A.\n")
    assert not found("| `picture` | a frame |\n| --- | --- |\n| 12 % | `Tests/run.sh` |\n")
    for wrong in [
            "The picture is whole.", "A grey frame.", "What is lost stays lost.",
            "It is beside the file.", "The take goes\non.", "The rate in force.", "He sees that of B.",
            "It shows what became of the take.", "It tells the rate.", "It lets go of the device.",
            "It takes 12 ms.", "It is 3 times faster.", "It costs 0.89 of it, or 12 %.",
            "It syncs every 0.3 s.", "It takes 150 ms. <!-- Sources/None.swift: 150 -->",
            "Use `--none`.", "```sh\nslowmo record cam0 \\\n  --none\n```", "See [it](NONE.md).",
            "[it]: NONE.md", "Run `Tests/none.sh`.", "```\n" + "-" * 97 + "\n```",
            "Run `swift test --filter 'PaceTests.*No such words'`.",
            "```sh\nsudo apt-get install pkg-config\n```", "Line\n" * (README_LINES + 1)]:
        assert len(found(wrong + "\n")) == 1, (wrong, found(wrong + "\n"))
    assert "the module Capture is no area of commits" in area_problems(repo, "`assets`")
    source = nested_source("a.md", "```swift\nimport A\nlet a = 1\n```\n<!-- swift\nlet a = 2\n-->\n")
    assert source.splitlines()[:2] == ["import Overcrank", "import A"]
    assert source.count("let a") == 2 and source.count("{") == source.count("}") == 2
    assert nested_source("a.md", "```console\n$ a\n```\n") is None
    assert commands(Block("console", "$ a \\\n  b\nc\n$ d\n", 5)) == [
        [5, "a \\\n  b", ["c"]], [8, "d", []]]
