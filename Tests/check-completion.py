#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Presses the tab key in bash, zsh and fish, and in bash within tmux, and compares the line with
the expected one. No shell may run or expand a hostile name, neither when it is completed nor
when the line is run.

    Tests/check-completion.py USR [COUNT]    the directory `usr` of the unpacked packages, and the
                                             number of hostile names; 20 by default
"""
import os
import pathlib
import pty
import random
import re
import subprocess
import sys
import tempfile
import time

# The text typed before the tab key, and the expected start of the completed line.
LINES = [
    ("slowmo doct", "slowmo doctor"),
    ("slowmo modes synth", "slowmo modes synthetic"),
    ("slowmo record synthetic:1920", "slowmo record synthetic:1920x1080@"),
    ("slowmo record synthetic --mode 1280x720@240/m",
     "slowmo record synthetic --mode 1280x720@240/mjpg"),
    ("slowmo controls file:/dev/nul", "slowmo controls file:/dev/null"),
    ("slowmo retime a.mov --preset fr", "slowmo retime a.mov --preset freeze"),
]
# The script that builds the simulated driver.
DRIVER = pathlib.Path(__file__).resolve().parent / "Tools/FakeVideo4Linux/build.sh"
# How a shell loads the completion, and prints and empties the line when ^G is pressed.
BEGINNINGS = {
    "bash": """source '{usr}/share/bash-completion/completions/slowmo'
bind 'set bell-style none'
bind -x '"\\C-g": printf "<%s>\\n" "$READLINE_LINE"; READLINE_LINE='
""",
    "zsh": """fpath=('{usr}/share/zsh/vendor-completions' $fpath)
autoload -Uz compinit && compinit -u -D
bindkey -e
show() {{ zle -I; print -r -- "<$BUFFER>"; BUFFER= }}
zle -N show
bindkey '^G' show
""",
    "fish": """source '{usr}/share/fish/vendor_completions.d/slowmo.fish'
function show; printf '<%s>\\n' (commandline); commandline -r ''; end
bind \\cg show
""",
}
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>()][0-9A-B]?|\x1b\][^\x07]*\x07|\x0f|\x07")


class Shell:
    """A shell on its own pseudo-terminal."""

    def __init__(self, command, environment):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execvpe(command[0], command, environment)

    def read_until(self, marker):
        """The output of the shell up to a marker. The wait has no limit, because the marker always comes."""
        text = b""
        while marker not in ESCAPES.sub(b"", text):
            text += os.read(self.terminal, 65536)
        return ESCAPES.sub(b"", text).decode(errors="replace")

    def write(self, text):
        os.write(self.terminal, text.encode())

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def line_after_tab(name, usr, environment, typed):
    """The line after the tab key in a shell at a terminal."""
    command = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"],
               "fish": ["fish", "--no-config", "-i"]}[name]
    shell = Shell(command, environment)
    shell.write(BEGINNINGS[name].format(usr=usr) + "echo rea''dy\n")
    shell.read_until(b"ready\r\n")
    shell.write(f"{typed}\t\x07")
    line = re.findall(r"<(slowmo.*?)>", shell.read_until(b">\r\n"))[-1]
    shell.close()
    return line


def screen_after_tab(usr, environment, typed, wanted):
    """The screen of tmux after the tab key in bash, as soon as it shows a line, or after half an hour."""
    # A server that is shutting down may still listen, and would end a new session too.
    socket = pathlib.Path(tempfile.mkdtemp(dir=environment["HOME"]), "tmux")
    server = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def tmux(*command):
        return subprocess.run(
            [*server, *command], env=environment, check=True, text=True,
            stdout=subprocess.PIPE).stdout

    beginning = pathlib.Path(environment["HOME"], "beginning")
    beginning.write_text(
        f"source '{usr}/share/bash-completion/completions/slowmo'\nPS1='> '\n"
        "tmux wait-for -S begun\n")
    tmux("new-session", "-d", "-x", "100", "-y", "24",
         f"bash --noprofile --rcfile '{beginning}' -i")
    try:
        tmux("wait-for", "begun")
        tmux("send-keys", "-l", typed)
        tmux("send-keys", "Tab")
        # tmux does not report when it has drawn the output of bash.
        deadline = time.monotonic() + 1800
        while wanted not in (screen := tmux("capture-pane", "-p")) and time.monotonic() < deadline:
            time.sleep(0.1)
        return screen
    finally:
        tmux("kill-server")


def hostile_names(count):
    """Names that a shell could run or expand, each with a beginning of its own."""
    parts = ["$(touch owned)", "`touch owned`", ";touch owned;", "&touch owned&", "|touch owned",
             "'$(touch owned)'", '"$(touch owned)"', "\\$(touch owned)", "${IFS}owned", "$HOME",
             "!!", "!touch", "~", "*", "?", "[a-z]", "{a,b}", "<owned", ">owned", "#owned", "\\",
             "\\n", "%s%n", "=owned", ":owned", "@owned", "ü", "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m",
             "\n$(touch owned)", "\t$(touch owned)", "\u202eowned", "$(>owned)", "(touch owned)", "^a^b"]
    chosen = random.Random(1)
    for number in range(count):
        yield f"h{number:03}" + "".join(
            chosen.choice(parts).replace(" ", chosen.choice(["${IFS}", "\u00a0x", "<"]))
            for _ in range(1 + number % 3))


def is_offered(name, kind):
    """Whether a name may be offered: no name with a control character, and no mark with a space."""
    return not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", name) and not (
        kind == "marks" and re.search(r"\s", name))


def movie(path, names):
    """A movie whose chapters have these names."""
    text = ";FFMETADATA1\n"
    for number, name in enumerate(names):
        title = re.sub(r"([=;#\\\n])", r"\\\1", name)
        text += (f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={number * 10}\nEND={number * 10 + 10}\n"
                 f"title={title}\n")
    path.with_suffix(".txt").write_text(text)
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=s=64x48:r=25:d=4", "-i",
         str(path.with_suffix(".txt")), "-map_metadata", "1", "-c:v", "mjpeg", str(path)], check=True)


# The text typed before the hostile name, for each kind of candidate, and the words of that line.
KINDS = {
    "marks": ("slowmo frames clip.mov --at @", ["slowmo", "frames", "clip.mov", "--at", "@"]),
    "devices": ("slowmo modes file:", ["slowmo", "modes", "file:"]),
    "paths": ("slowmo modes {home}/names/", ["slowmo", "modes", "{home}/names/"]),
    "files": ("slowmo info names/", ["slowmo", "info", "names/"]),
}


def check_hostile(name, usr, environment, count):
    """Completes hostile names in a shell, and reads each line as the shell would read it."""
    home = pathlib.Path(environment["HOME"])
    names = list(hostile_names(count))
    clip = home / "clip.mov"
    if not clip.exists():
        movie(clip, names)
        (home / "names").mkdir()
        for text in names:
            for directory in [home, home / "names"]:
                (directory / text).write_text("")
    command = {"bash": ["bash", "--norc", "--noprofile"], "zsh": ["zsh", "-f"],
               "fish": ["fish", "--no-config"]}[name]

    def words(line):
        """The words that the shell reads in a line."""
        return subprocess.run(
            [*command, "-c", "printf '%s\\0' " + line], env=environment, cwd=home, text=True,
            stdout=subprocess.PIPE, check=True).stdout.split("\0")[:-1]

    shell = Shell([*command, "-i"], environment)
    shell.write(BEGINNINGS[name].format(usr=usr) + "echo rea''dy\n")
    shell.read_until(b"ready\r\n")
    for offset, (kind, (before, wanted)) in enumerate(KINDS.items()):
        for number, text in enumerate(names):
            # The kinds share code, so all names are marks, and the other kinds have a third each.
            if offset > 0 and number % (len(KINDS) - 1) != offset - 1:
                continue
            typed = f"{before.format(home=home)}h{number:03}"
            shell.write(f"{typed}\t\x07")
            shown = shell.read_until(b">\r\n")
            line = shown[shown.rindex("<slowmo") + 1:shown.rindex(">\r\n")]
            # The shells complete other files by themselves, also those with control characters, and
            # the terminal shows such a line changed.
            if not is_offered(text, kind):
                assert kind == "files" or line.strip() == typed, f"{name}: {text!r} was offered as {line!r}"
                continue
            read = words(line)
            expected = [word.format(home=home) for word in wanted]
            expected[-1] += text
            assert read == expected, f"{name}: {kind}: {text!r} is {line!r}: {read!r}"
    shell.close()
    check_controls(name, usr, environment, words)
    assert not (home / "owned").exists(), f"{name} ran a name"


def check_controls(name, usr, environment, words):
    """Completes the controls of a simulated camera with hostile names."""
    camera = environment | {
        "LD_PRELOAD": environment["FAKEVIDEO_LIBRARY"], "FAKEVIDEO": "hfr-usb",
        "FAKEVIDEO_NAME": "h$(touch owned)`touch owned`"}
    before = "slowmo controls /dev/fakevideo0 "
    line = line_after_tab(name, usr, camera, before + "h_t")
    assert words(line) == ["slowmo", "controls", "/dev/fakevideo0", "h_touch_owned_touch_owned="], \
        f"{name}: a control is {line!r}"


def main(usr, count):
    usr = pathlib.Path(usr).resolve()
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": f"{usr}/bin:{os.environ['PATH']}", "HOME": home, "TERM": "dumb",
                       "LC_ALL": "C.UTF-8", "FAKEVIDEO_LIBRARY": f"{home}/libfakevideo.so"}
        subprocess.run([DRIVER, environment["FAKEVIDEO_LIBRARY"]], check=True)
        for typed, wanted in LINES:
            for shell in BEGINNINGS:
                line = line_after_tab(shell, usr, environment, typed)
                assert line.startswith(wanted), f"{shell}: {typed!r} becomes {line!r}"
        os.chdir(home)
        for shell in BEGINNINGS:
            check_hostile(shell, usr, environment, count)
        for typed, wanted in LINES[:3]:
            screen = screen_after_tab(usr, environment, typed, f"> {wanted}")
            assert f"> {wanted}" in screen, f"tmux: {typed!r} becomes {screen!r}"
    print(f"completion: {len(LINES)} lines and {count} hostile names of marks, devices, files and "
          "controls in bash, zsh and fish")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
