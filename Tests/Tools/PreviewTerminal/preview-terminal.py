#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a preview on a pseudo-terminal that answers slowly, and prints what it saw as JSON.

    preview-terminal.py quit|escape|photo|signal|suspend COMMAND...

The terminal answers the first image at once, and each later one after some rounds. After eight images
it types q (quit), Escape with the next answer (escape), or s and q (photo), or sends SIGINT (signal).
With `suspend`, it types Ctrl-Z, looks at the suspended terminal, continues the process, and types q
after two more images.
"""
import json
import os
import pty
import select
import signal
import sys
import termios

REQUEST, ANSWER = b"\x1b[6n", b"\x1b[1;1R"
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
IMAGES = 8
# Rounds of at most 20 ms before an answer: three periods of the preview.
SLOWNESS = 10


class Terminal:
    """The terminal's side, and the counts of what it has seen."""

    def __init__(self, command):
        ready, go = os.pipe()
        self.child, self.master = pty.fork()
        if self.child == 0:
            # The program must not change the settings before they are read.
            os.read(ready, 1)
            os.execvp(command[0], command)
        self.before = termios.tcgetattr(self.master)
        os.write(go, b"x")
        os.close(go)
        os.close(ready)
        self.output = b""
        self.answered = 0
        self.most = 0

    @property
    def images(self):
        return self.output.count(REQUEST)

    def read(self, seconds):
        """Reads what arrives in a time; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        self.output += data
        self.most = max(self.most, self.images - self.answered)
        return bool(data)

    def answer(self):
        if self.images > self.answered:
            self.answered += 1
            os.write(self.master, ANSWER)

    def show(self, count):
        """Answers slowly until so many images were shown; False if the process ended before."""
        while self.images < count:
            for _ in range(SLOWNESS if self.images > 1 else 1):
                if not self.read(0.02):
                    return False
            self.answer()
        return True

    def wait(self, options=0):
        """Reads until the process ends or stops, and then all that it has written."""
        while True:
            self.read(0.05)
            done, status = os.waitpid(self.child, os.WNOHANG | options)
            if done:
                break
        while select.select([self.master], [], [], 0.2)[0] and self.read(0.2):
            pass
        return status

    def is_restored(self):
        return termios.tcgetattr(self.master)[:4] == self.before[:4] and self.output.count(
            ENTER) == self.output.count(LEAVE)


def main():
    mode, command = sys.argv[1], sys.argv[2:]
    terminal = Terminal(command)
    seen = {"started": terminal.show(IMAGES)}
    # A slave that stays open keeps the settings readable after the end of the process.
    slave = os.open(os.readlink(f"/proc/{terminal.child}/fd/0"), os.O_RDWR | os.O_NOCTTY)
    seen["raw"] = not termios.tcgetattr(terminal.master)[3] & termios.ICANON
    if mode == "suspend":
        os.write(terminal.master, b"\x1a")
        stopped = terminal.wait(os.WUNTRACED)
        seen["suspended"] = os.WIFSTOPPED(stopped) and terminal.is_restored()
        os.kill(terminal.child, signal.SIGCONT)
        terminal.answered = terminal.images
        seen["continued"] = terminal.show(terminal.images + 2)
        seen["whole"] = terminal.output.rindex(b"\x1b[2J") > terminal.output.rindex(LEAVE)
    if mode == "signal":
        os.kill(terminal.child, signal.SIGINT)
    keys = {"quit": b"q", "suspend": b"q", "photo": b"sq", "escape": b"\x1b" + ANSWER}
    os.write(terminal.master, keys.get(mode, b""))
    status = os.waitstatus_to_exitcode(terminal.wait())
    seen["restored"] = terminal.is_restored()
    os.close(slave)
    seen.update(status=status, images=terminal.images, most_unanswered=terminal.most,
                synchronized=terminal.output.count(b"\x1b[?2026h"),
                blocks=terminal.output.count("▀".encode()),
                text=terminal.output.split(LEAVE)[-1].decode(errors="replace"))
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
