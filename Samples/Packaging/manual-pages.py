#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the manual pages of the command from the same descriptions as its help.

    Samples/Packaging/manual-pages.py PROGRAM DIRECTORY    writes slowmo.1, slowmo-record.1, … to a directory
"""
import json
import pathlib
import re
import subprocess
import sys


def escape(text):
    """Text for roff: no character of it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def paragraphs(text):
    """A text's paragraphs for roff. Lines that begin with spaces keep their line breaks.

    A paragraph that begins with a word in capitals and a colon gets a heading.
    """
    result = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        title = re.match(r"([A-Z]{2,}): ", block)
        if title:
            result.append(f".SS {title[1].capitalize()}")
            block = block[title.end():]
        else:
            result.append(".PP")
        is_plain = True
        for line in block.split("\n"):
            if line.startswith("  ") == is_plain:
                result.append(".RS\n.nf" if is_plain else ".fi\n.RE")
                is_plain = not is_plain
            result.append(escape(line.strip() if is_plain else line[2:]))
        if not is_plain:
            result.append(".fi\n.RE")
    return "\n".join(result)


def names(argument):
    """The names of an option or flag with its value, or the placeholder of an argument."""
    value = f"\\fI{escape(argument.get('valueName', 'value'))}\\fR"
    if argument["kind"] == "positional":
        return value
    spelled = [("--" if name["kind"] == "long" else "-") + name["name"]
               for name in argument["names"]]
    spelled.sort(key=len)
    text = ", ".join(f"\\fB{escape(name)}\\fR" for name in spelled)
    return text if argument["kind"] == "flag" else f"{text} {value}"


def entry(argument):
    """An argument as an entry of a list."""
    text = " ".join(argument.get(key, "") for key in ("abstract", "discussion")).strip()
    if any(name["name"] == "help" for name in argument.get("names", [])):
        text = "Show the most used options (-h), or all options (--help)."
    if argument.get("defaultValue") and argument["kind"] != "flag" and "efault:" not in text:
        text = f"{text} Default: {argument['defaultValue']}.".strip()
    return f".TP\n{names(argument)}\n{escape(' '.join(text.split()))}"


def synopsis(words, command):
    parts = [f"\\fB{escape(' '.join(words))}\\fR"]
    arguments = [one for one in command.get("arguments", []) if one["shouldDisplay"]]
    if command.get("subcommands"):
        parts.append("\\fIverb\\fR")
    if any(one["kind"] != "positional" for one in arguments):
        parts.append("[\\fIoptions\\fR]")
    for one in arguments:
        if one["kind"] == "positional":
            text = names(one) + (" ..." if one["isRepeating"] else "")
            parts.append(f"[{text}]" if one["isOptional"] else text)
    return " ".join(parts)


def page(words, command, pages, version, exit_codes):
    """The manual page of a command. `pages` are the names of all pages."""
    name = "-".join(words)
    examples, rest = [], []
    # After MANUAL come further examples and details, which --help does not show.
    for part in re.split(r"^MANUAL$", command.get("discussion", ""), flags=re.M):
        part = part.strip("\n").removeprefix("EXAMPLES\n")
        lines = part.split("\n")
        count = next((index for index, line in enumerate(lines) if not line.startswith("  ")),
                     len(lines))
        examples += lines[:count]
        rest.append("\n".join(lines[count:]).strip("\n"))
    rest = re.sub(r"EXIT CODES:.*", "", "\n\n".join(rest), flags=re.S)
    abstract = command["abstract"].rstrip(".")
    lines = [
        f'.TH "{name.upper()}" 1 "" "Overcrank {version}" "User Commands"',
        ".nh\n.ad l", ".SH NAME",
        f"{escape(name)} \\- {escape(abstract[0].lower() + abstract[1:])}",
        ".SH SYNOPSIS", synopsis(words, command), ".SH DESCRIPTION", escape(command["abstract"]),
    ]
    if rest.strip():
        lines.append(paragraphs(rest))
    verbs = [one for one in command.get("subcommands", []) if one["commandName"] != "help"]
    if verbs:
        lines.append(".SH VERBS")
        for verb in verbs:
            lines.append(f".TP\n\\fB{escape(' '.join(words + [verb['commandName']]))}\\fR\n"
                         + escape(verb["abstract"]))
    shown = [one for one in command.get("arguments", []) if one["shouldDisplay"]]
    for title, kinds in (("ARGUMENTS", ["positional"]), ("OPTIONS", ["option", "flag"])):
        chosen = [one for one in shown if one["kind"] in kinds]
        if chosen:
            lines += [f".SH {title}"] + [entry(one) for one in chosen]
    if examples:
        lines += [".SH EXAMPLES", paragraphs("\n".join(examples))]
    lines.append(".SH EXIT STATUS")
    lines += [f".TP\n\\fB{numbers}\\fR\n{escape(meaning)}" for numbers, meaning in exit_codes]
    others = [other for other in pages if other != name]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {escape(other)} (1)" for other in others)]
    return "\n".join(lines) + "\n"


def main(program, directory):
    def output(*arguments):
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL).stdout

    root = json.loads(output("--experimental-dump-help"))["command"]
    version = output("--version").split()[1]
    found = re.search(r"EXIT CODES:\s*(.*)", root["discussion"], flags=re.S)
    exit_codes = re.findall(
        r"(\d+(?: and \d+)?) ([^,]+)", " ".join(found.group(1).split()).rstrip("."))
    commands = []

    def collect(words, command):
        commands.append((words, command))
        for verb in command.get("subcommands", []):
            if verb["commandName"] != "help":
                collect(words + [verb["commandName"]], verb)

    collect([root["commandName"]], root)
    pages = ["-".join(words) for words, _ in commands]
    target = pathlib.Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for words, command in commands:
        text = page(words, command, pages, version, exit_codes)
        (target / f"{'-'.join(words)}.1").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
