#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a stored property that is used in another file than its own, although it is state.

A type that owns state keeps it private to its file. A type owns state if it is a class, an actor or
noncopyable, or if another file extends it and the extension uses the property. Not counted are
`private` and `fileprivate` properties, constants that are `public` or `package`, public fields of a
value, and all fields of a plain value, which is one that no other file extends.

Tests/open-state.txt lists the exceptions of today, and the number of files named `Type+Topic`, which
are for conformances and bridges. A new exception fails, and so does a line that is no longer needed,
so that the list only becomes shorter.

    Tests/check-state.py               checks the sources
    Tests/check-state.py --shorten     removes from the list what is no longer needed
    Tests/check-state.py --table [N]   prints the N types with the most open properties
    Tests/check-state.py --self-test   checks the sources, and that planted properties are found
"""
import collections
import dataclasses
import pathlib
import re
import sys

from source_text import TOKEN

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "Tests/open-state.txt"
TOPIC_FILES = "Type+Topic files: "
TYPES = ("struct", "class", "actor", "enum")
MODIFIERS = {
    "public", "package", "internal", "private", "fileprivate", "open", "static", "class", "final", "lazy",
    "weak", "unowned", "nonisolated", "override", "borrowing", "mutating", "consuming", "indirect",
    "required", "convenience", "dynamic",
}


@dataclasses.dataclass
class Property:
    """A stored property that is visible outside its file."""
    owner: str
    name: str
    file: pathlib.Path


@dataclasses.dataclass
class Module:
    """The declarations of a directory in Sources."""
    owners: set = dataclasses.field(default_factory=set)
    properties: list = dataclasses.field(default_factory=list)
    # The names that each extension of a type uses, by type and file.
    extended: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(set))
    # The names that follow a dot, by file.
    members: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(set))


def code_of(text):
    """The tokens of the code, without comments; the code inside a string is read too."""
    result = []
    for match in TOKEN.finditer(text):
        if match["comment"]:
            continue
        if match["string"]:
            # Only what a string interpolates is code.
            for part in re.findall(r"\\\(([^\n]*)", match[0]):
                result += [""] + re.findall(r"[A-Za-z_]\w*|\.", part)
            result.append('""')
        else:
            result.append(match[0].strip("`"))
    return result


def skipped(tokens, index, opening, closing):
    """The index after the bracket that closes the one at `index`."""
    depth = 0
    while index < len(tokens):
        depth += (tokens[index] == opening) - (tokens[index] == closing)
        index += 1
        if depth == 0:
            return index
    return index


def modifiers_before(tokens, index):
    """The modifiers and attributes in front of a keyword."""
    found = set()
    index -= 1
    while index >= 0:
        token = tokens[index]
        if token in MODIFIERS:
            found.add(token)
        elif token == ")" and tokens[index - 3:index - 1] != [] and tokens[index - 2] == "(":
            # private(set), unowned(unsafe), nonisolated(unsafe)
            found.add(f"{tokens[index - 3]}({tokens[index - 1]})")
            index -= 3
        elif index > 0 and tokens[index - 1] == "@":
            index -= 1
        else:
            break
        index -= 1
    return found


def is_computed(tokens, index):
    """Whether the property whose type or value starts at `index` has only accessors."""
    depth = 0
    while index < len(tokens):
        token = tokens[index]
        if token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
        elif depth == 0 and token == "=":
            return False
        elif depth == 0 and token == "{":
            return tokens[index + 1] not in ("didSet", "willSet")
        elif depth == 0 and (token in ("}", "let", "var", "func", "init", "static", "case", "@")
                             or token in MODIFIERS or token in TYPES):
            return False
        index += 1
        if depth < 0:
            return False
    return False


def read(module, file, text):
    """Adds the declarations of a file to a module."""
    tokens = code_of(text)
    # The open braces: the type that each declares members of, and whether it is an extension.
    scopes, pending, index = [], None, 0
    while index < len(tokens):
        token = tokens[index]
        if token == "." and index + 1 < len(tokens):
            module.members[file].add(tokens[index + 1])
        isMember = not scopes or scopes[-1] is not None
        if (token in TYPES or token == "extension" or token == "protocol") and isMember \
                and index + 1 < len(tokens) and tokens[index + 1].isidentifier() \
                and tokens[index - 1] not in (".", ":", ",") \
                and tokens[index + 1] not in ("func", "var", "let", "subscript"):
            end = index + 1
            name = tokens[end]
            while tokens[end + 1] == ".":
                end += 2
                name = tokens[end] if token != "extension" else f"{name}.{tokens[end]}"
            outer = next((scope[0] for scope in reversed(scopes) if scope), None)
            full = name if token == "extension" or not outer else f"{outer}.{name}"
            if token in ("class", "actor"):
                module.owners.add(full)
            head = end
            while head < len(tokens) and tokens[head] not in ("{", "}"):
                if tokens[head] == "~" and tokens[head + 1] == "Copyable" and token == "struct":
                    module.owners.add(full)
                head += 1
            pending = (full, token == "extension", token == "protocol",
                       modifiers_before(tokens, index))
            index = head
            continue
        if token == "{":
            scopes.append(pending)
            pending = None
        elif token == "}" and scopes:
            scopes.pop()
        elif token in ("let", "var") and scopes and scopes[-1] and not scopes[-1][1] \
                and not scopes[-1][2] and tokens[index + 1].isidentifier():
            marks = modifiers_before(tokens, index)
            visible = not marks & {"private", "fileprivate", "static"} \
                and not any(scope and scope[3] & {"private", "fileprivate"} for scope in scopes)
            isConstant = token == "let" and marks & {"public", "package", "open"}
            name, following = tokens[index + 1], index + 2
            # A public property that only its own file sets is not open.
            isReadable = marks & {"public", "package", "open"} \
                and marks & {"private(set)", "fileprivate(set)"}
            # A public field of a value is for every user to set.
            isField = "public" in marks and scopes[-1][0] not in module.owners
            if visible and not isConstant and not isReadable and not isField \
                    and not (token == "var" and is_computed(tokens, following)):
                module.properties.append(Property(scopes[-1][0], name, file))
        for scope in scopes:
            if scope and scope[1] and token.isidentifier():
                module.extended[scope[0], file].add(token)
        index += 1


def modules(sources):
    """The modules of a list of files with their text."""
    result = collections.defaultdict(Module)
    for file, text in sources:
        read(result[file.relative_to(ROOT / "Sources").parts[0]], file, text)
    return result


def open_properties(sources):
    """The properties that are state and used in another file, as `Module.Type.name`."""
    found = collections.defaultdict(list)
    for name, module in modules(sources).items():
        for property in module.properties:
            slices = [file for (owner, file), names in module.extended.items()
                      if owner == property.owner and file != property.file
                      and property.name in names]
            isOwner = property.owner in module.owners
            users = [file for file, names in module.members.items()
                     if file != property.file and property.name in names]
            if slices or (isOwner and users):
                found[f"{name}.{property.owner}"].append(property.name)
    return found


def swift_files():
    return [(file, file.read_text()) for file in sorted((ROOT / "Sources").rglob("*.swift"))]


def topic_files(sources):
    return sum("+" in file.name for file, _ in sources)


def exceptions():
    """The properties that may be open, and the number of files that may be named Type+Topic."""
    lines = [line for line in EXCEPTIONS.read_text().splitlines() if line and line[0] != "#"]
    numbers = [int(line.removeprefix(TOPIC_FILES)) for line in lines if line.startswith(TOPIC_FILES)]
    return {line for line in lines if not line.startswith(TOPIC_FILES)}, min(numbers, default=0)


def shorten(sources):
    """Removes from the list what is no longer needed; adds nothing."""
    (allowed, maximum), names = exceptions(), names_of(open_properties(sources))
    head = [line for line in EXCEPTIONS.read_text().splitlines() if line.startswith("#")]
    EXCEPTIONS.write_text("\n".join([
        *head, f"{TOPIC_FILES}{min(maximum, topic_files(sources))}", *sorted(allowed & names)]) + "\n")


def names_of(found):
    return {f"{owner}.{name}" for owner, names in found.items() for name in names}


def check(sources):
    """The faults of the sources, one line each."""
    allowed, maximum = exceptions()
    names = names_of(open_properties(sources))
    faults = [f"{name} is used in another file: make it private, or split the type"
              for name in sorted(names - allowed)]
    faults += [f"{name} is no longer open: run check-state.py --shorten"
               for name in sorted(allowed - names)]
    topics = topic_files(sources)
    if topics > maximum:
        faults.append(f"{topics} files are named Type+Topic, {maximum} are allowed")
    elif topics < maximum:
        faults.append(f"only {topics} files are named Type+Topic: run check-state.py --shorten")
    return faults


PLANTED = {
    "a class": ("final class Planted { let plantedState = 1 }",
                "func look(_ x: Planted) { _ = x.plantedState }", True),
    "a slice of a value": ("struct Planted { var plantedState: [Int] = [] }",
                           "extension Planted { func look() { plantedState.first } }", True),
    "a noncopyable value": ("struct Planted: ~Copyable { var plantedState: Int }",
                            "func look(_ x: Planted) { _ = x.plantedState }", True),
    "an observed property": ("final class Planted { var plantedState = 1 { didSet { } } }",
                             "func look(_ x: Planted) { _ = x.plantedState }", True),
    "a private property": ("final class Planted { private let plantedState = 1 }",
                           "func look(_ x: Other) { _ = x.plantedState }", False),
    "a field of a value": ("struct Planted { let plantedState: Int }",
                           "func look(_ x: Planted) { _ = x.plantedState }", False),
    "a public field": ("public struct Planted { public var plantedState: Int }",
                       "extension Planted { func look() { plantedState } }", False),
    "a computed property": ("final class Planted { var plantedState: Int { 1 } }",
                            "func look(_ x: Planted) { _ = x.plantedState }", False),
}


def self_test():
    """Whether the check sees planted properties, and only those."""
    directory = ROOT / "Sources/Planted"
    for what, (first, second, isFault) in PLANTED.items():
        sources = [(directory / "First.swift", first), (directory / "Second.swift", second)]
        found = names_of(open_properties(sources))
        if found != ({"Planted.Planted.plantedState"} if isFault else set()):
            sys.exit(f"check-state: {what} gave {sorted(found)}")


def main():
    sources = swift_files()
    if "--shorten" in sys.argv:
        shorten(sources)
        return
    if "--table" in sys.argv:
        rest = sys.argv[sys.argv.index("--table") + 1:]
        found = open_properties(sources)
        rows = sorted(found.items(), key=lambda row: (-len(row[1]), row[0]))
        for owner, names in rows[:int(rest[0]) if rest else len(rows)]:
            print(f"{len(names):4} {owner}: {', '.join(names)}")
        print(f"{sum(map(len, found.values()))} properties of {len(found)} types, "
              f"{topic_files(sources)} files Type+Topic")
        return
    if "--self-test" in sys.argv:
        self_test()
    faults = check(sources)
    for fault in faults:
        print(f"check-state: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
