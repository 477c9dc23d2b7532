# SPDX-License-Identifier: Apache-2.0
"""Source files and scripts, taken apart: their comments, their strings and the names they declare."""
import re

# Comments, literals and what else a file of Swift or C consists of. Code between the quotation marks
# of a string declares nothing that others see.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)|"""
    r"""(?P<string>(?P<hash>\#*)\"{3}.*?\"{3}(?P=hash)|\#+"[^\n]*?"\#+|"""
    r""""(?:\\\((?:[^()"]|"[^"\n]*"|\((?:[^()]|\([^()]*\))*\))*\)|\\.|[^"\\\n])*")|"""
    r"""'(?:\\.|[^'\\\n])'|`[^`\n]+`|[A-Za-z_]\w*|[0-9][\w.]*|\S""", re.S)
# The same of Python and shell scripts, where docstrings are comments.
SCRIPT_TOKEN = re.compile(
    r'''(?P<comment>""".*?"""|(?<![^\s])\#[^\n]*(?:\n[ \t]*\#[^\n]*)*)|'''
    r'''(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|[\w.$-]*/[\w./$-]*|[A-Za-z_]\w*''', re.S)
SHELL_NAME = re.compile(r"\b(\w+)(?=\+?=|\(\))|\bfor (\w+) in")
MARKERS = re.compile(r'^[ \t]*(?:///?|#!?|/\*|\*/?|""")[ \t]?', re.M)
TEST_NAME = re.compile(r'\bfunc\s+`([^`\n]+)`|@(?:Test|Suite)\(\s*"((?:\\.|[^"\\\n])*)"')
TYPES = {"struct", "class", "enum", "protocol", "actor", "extension"}
MEMBERS = {"var", "let", "case", "typealias", "associatedtype"}
C_SUFFIXES = (".c", ".h", ".cpp")


def tokens(path, text):
    """The tokens of a file, as matches."""
    return (TOKEN if path.suffix in (".swift", *C_SUFFIXES) else SCRIPT_TOKEN).finditer(text)


def parts(path, text):
    """The comments, the strings and the other tokens of a file, each with its line."""
    comments, strings, others = [], [], []
    line, position = 1, 0
    for match in tokens(path, text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match["comment"]:
            comments.append((line, MARKERS.sub("", match[0])))
        elif match["string"]:
            strings.append((line, re.sub(r"\\\n\s*", "", match[0])))
        else:
            others.append((line, match[0]))
    return comments, strings, others


def script_names(path, text, tokens):
    """The names of a script or of a file of C; words of a shell script may be data."""
    if path.suffix in (".py", *C_SUFFIXES):
        return [token for _, token in tokens if token.isidentifier()]
    return [name for pair in SHELL_NAME.findall(text) for name in pair]


def test_names(text):
    """The names of tests and suites that are sentences, each with its line."""
    for match in TEST_NAME.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1] or match[2] or ""


def parameters(tokens, start):
    """The labels and names between a parenthesis and its end, and where that is."""
    names, depth, index = [], 0, start
    while index < len(tokens):
        token = tokens[index]
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth == 0:
            break
        # `label name: Type` or `name: Type`; in an inner parenthesis those of a tuple.
        if token == ":" and tokens[index - 1].isidentifier():
            before = index - 1
            while before > start and tokens[before].isidentifier():
                names.append(tokens[before])
                before -= 1
        index += 1
    return names, index


def pattern(tokens, start, isCase):
    """The names of a declaration, `name`, `(one, two)` or `one(label: Type)`, and its end."""
    if tokens[start] == "(":
        end = tokens.index(")", start)
        return [name for name in tokens[start:end] if name.isidentifier()], end + 1
    names, index = [tokens[start].strip("`")], start + 1
    if isCase and tokens[index:index + 1] == ["("]:
        labels, index = parameters(tokens, index)
        names, index = names + labels, index + 1
    if isCase and tokens[index:index + 1] == ["="]:
        # A raw value; one that is text is no token.
        index += 1 if tokens[index + 1] in (",", "case", "}") else 2
    return names, index


def declared_names(tokens):
    """The names of types, members and parameters that Swift tokens declare; no local names."""
    # For each brace that is open, whether members are declared in it.
    scopes, opensType, index = [True], False, 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].strip("`") if index + 1 < len(tokens) else ""
        isMember = scopes[-1]
        if token in TYPES and following.isidentifier() and following not in ("func", "var", "let"):
            opensType = True
            if token != "extension":
                yield following
        elif token in ("func", "init", "subscript") and tokens[index - 1] != ".":
            if token == "func" and following.isidentifier():
                yield following
            while index < len(tokens) and tokens[index] not in ("(", "{", "}"):
                index += 1
            names, index = parameters(tokens, index)
            yield from (name for name in names if name != "_")
        elif isMember and token in MEMBERS:
            index += 1
            while True:
                names, index = pattern(tokens, index, token == "case")
                yield from names
                if index >= len(tokens) or tokens[index] != ",":
                    break
                index += 1
            continue
        elif token == "{":
            scopes.append(opensType)
            opensType = False
        elif token == "}" and len(scopes) > 1:
            scopes.pop()
        index += 1
