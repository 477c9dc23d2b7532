#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs verbs that write files under adverse conditions, and checks the resulting files.

    output-soak.py SLOWMO [--pairs N] [--signals N] [--unread N] [--full-disks N] [--seed S]
                          [--directory DIR]

* Pairs: two verbs write the same name at once, with or without `-y`, with or without an existing
  file.
* Signals: any verb is interrupted or terminated at a random instant. One that reads or exports uses at
  most 0.2 s of processor time afterwards; a recording is finished.
* Unread: a terminal, a pipe or a metadata pipe of a recording is not used by its other end. The
  recording loses no frame for it, and ends by itself, by a signal or by a kill.
* Full disks: a verb writes to a disk with a random number of free bytes, and prints to it.

Except for the unread ones, an existing file stays unless a verb with permission to replace it has ended with 0. A
file under the target's name is complete, no temporary file remains, and the exit code is correct. A
full disk may cut a recording short, but the recording stays playable. A `recover` that could not
finish does so when it is run again. Exits with 1 otherwise.

The full disk is a tmpfs in a private mount namespace. If mounting is not allowed, a limit on
file sizes replaces it.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from busy_machine import count_in  # noqa: E402

OLD = {
    ".mov": None, ".mp4": None,  # Set to a movie in Bench.__init__.
    ".otio": b'{"OTIO_SCHEMA":"Timeline.1"}\n', ".png": b"old image", ".csv": b"index\n0\n",
    ".json": b"{}\n",
}
CAMERA = "synthetic:160x120@240?pace=max"
# Signals and unread readers mostly wait, so several run at once.
JOBS = 4
# A killed recording may lose its last 50 ms, and twice as much where others use the processor.
KILLED_FRAMES = 24


class Bench:
    """The command, its inputs, and their known properties."""

    def __init__(self, slowmo, directory, careless, most_seconds):
        self.careless = careless
        self.most_seconds = most_seconds
        # The most processor time after a signal, and the most frames that a kill lost.
        self.seconds, self.lost = 0.0, 0
        self.slowmo = str(pathlib.Path(slowmo).resolve())
        self.inputs = directory / "inputs"
        self.inputs.mkdir(parents=True)
        self.problems = []
        self.counts = {}
        self.take = self.make("take.mov", "record", CAMERA, "-o", "take.mov", "-t", "1")
        self.other = self.make("other.mov", "record", CAMERA, "-o", "other.mov", "-t", "0.2")
        self.project = self.make(
            "project.otio", "retime", "take.mov", "-o", "project.otio", "--speed", "1/2")
        front = self.make(
            "front.mp4", "retime", "take.mov", "-o", "front.mp4", "--speed", "1", "--copy")
        self.cut = self.inputs / "cut.mp4"
        self.cut.write_bytes(front.read_bytes()[: front.stat().st_size * 3 // 4])
        self.report = self.inputs / "bench.json"
        self.report.write_text(self.run(["bench", "capture", CAMERA, "-t", "0.1", "--json"]).stdout)
        # Long enough that signals arrive while it is read.
        start = time.monotonic()
        self.run(["--version"])
        self.startup = time.monotonic() - start
        self.long = self.make("long.mov", "record", CAMERA, "-o", "long.mov", "-t", "8")
        self.killed, self.found = self.kill()
        OLD[".mov"] = OLD[".mp4"] = self.other.read_bytes()

    def run(self, arguments, **options):
        return subprocess.run(
            [self.slowmo, *arguments], cwd=self.inputs, capture_output=True, text=True, **options)

    def make(self, name, *arguments):
        done = self.run([*arguments, "--progress", "none"])
        if done.returncode != 0:
            sys.exit(f"could not make {name}: {done.stderr}")
        return self.inputs / name

    def kill(self):
        """A killed recording, and the number of frames that recover finds in it."""
        path = self.inputs / "killed.mov"
        process = subprocess.Popen(
            [self.slowmo, "record", CAMERA.split("?")[0], "-o", path, "--progress", "none"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not path.exists() or path.stat().st_size < 200_000:
            if process.poll() is not None:
                sys.exit("the recording ended before it could be killed")
            time.sleep(0.02)
        process.kill()
        process.wait()
        copy = self.inputs / "recovered.mov"
        shutil.copy(path, copy)
        return path, json.loads(self.run(["recover", copy, "--json"]).stdout)["frame_count"]

    def frames(self, path):
        """The number of frames of a movie; None if it cannot be opened or is truncated."""
        done = self.run(["info", path, "--json"])
        if done.returncode != 0:
            return None
        done = self.run(["frames", path, "--csv", "-"])
        return done.stdout.count("\n") - 1 if done.returncode == 0 else None

    def is_complete(self, path):
        data = path.read_bytes()
        if path.suffix in (".mov", ".mp4"):
            return bool(self.frames(path))
        if path.suffix == ".png":
            return data.startswith(b"\x89PNG\r\n\x1a\n") and data[-8:-4] == b"IEND"
        if path.suffix == ".csv":
            lines = data.decode().split("\n")
            return lines.pop() == "" and len({line.count(",") for line in lines}) == 1 and (
                len(lines) == 241 or path.name.startswith("frames"))
        try:
            return bool(json.loads(data))
        except ValueError:
            return False

    def written(self, path):
        """Called after verbs may have written a file; truncates it in careless mode."""
        if self.careless and path.exists():
            os.truncate(path, path.stat().st_size // 2)

    def fail(self, what, trial):
        self.problems.append(f"{trial}: {what}")
        print(f"{trial}: {what}", file=sys.stderr)

    def count(self, kind, status):
        self.counts.setdefault(kind, {}).setdefault(status, 0)
        self.counts[kind][status] += 1


# Verbs that write a file: its suffix, and the arguments.
def writers(bench):
    return {
        "retime --copy": (".mov", ["retime", bench.take, "-o", "{}", "--speed", "1/8", "--copy"]),
        "retime --fps": (
            ".mp4", ["retime", bench.take, "-o", "{}", "--speed", "1/2", "--fps", "30"]),
        "retime .otio": (".otio", ["retime", bench.take, "-o", "{}", "--speed", "1/2"]),
        "edit": (".mov", ["edit", bench.project, "-o", "{}", "--copy"]),
        "edit .otio": (".otio", ["edit", bench.project, "-o", "{}"]),
        "frames": (".png", ["frames", bench.take, "--at", "0.5", "-o", "{}"]),
        "frames --csv": (".csv", ["frames", bench.take, "--csv", "{}"]),
        "record": (".mov", ["record", CAMERA, "-o", "{}", "-t", "0.5"]),
        "record .mp4": (".mp4", ["record", CAMERA, "-o", "{}", "-t", "0.5"]),
        "recover -o": (".mp4", ["recover", bench.cut, "-o", "{}"]),
    }


# Verbs that only print.
def printers(bench):
    return {
        "help": ["--help"], "version": ["--version"], "info": ["info", bench.take],
        "info --json": ["info", bench.take, "--json"], "modes": ["modes", "synthetic"],
        "controls": ["controls", "synthetic", "--json"], "devices": ["devices", "--json"],
        "bench diff": ["bench", "diff", bench.report, bench.report],
        "frames --csv -": ["frames", bench.take, "--csv", "-"],
        "frames -o -": ["frames", bench.take, "--at", "0.5", "-o", "-"],
        "retime -o -": ["retime", bench.take, "-o", "-", "--speed", "1/2"],
        "retime --dry-run": [
            "retime", bench.take, "-o", "no.mov", "--speed", "1/2", "--copy", "--dry-run"],
    }


# Verbs that a signal ends at any instant: those above, more that write a file, and more that only read.
# A verb that ends by itself may do so with one of the codes.
def interruptible(bench):
    verbs = {name: (*verb, {0}) for name, verb in writers(bench).items()}
    verbs["recover"] = (".mov", None, {0})
    verbs.update({
        "still sheet": (".png", ["still", "sheet", bench.long, "-o", "{}"], {0}),
        "still trail": (".png", ["still", "trail", bench.long, "-o", "{}"], {0}),
        "compare": (".mp4", ["compare", bench.long, bench.take, "-o", "{}", "--fps", "30"], {0}),
        "check --plot": (".png", ["check", bench.long, "--plot", "{}"], {0, 10}),
        "retime long": (
            ".mp4", ["retime", bench.long, "-o", "{}", "--speed", "1/16", "--fps", "60"], {0}),
        "track --csv": (
            ".csv", ["track", bench.long, "--at", "0", "--box", "16,16,64,64", "--csv", "{}"],
            {0, 10, 65}),
    })
    take, long = bench.take, bench.long
    verbs.update({name: (None, line, {0, 10, 65}) for name, line in {
        "info": ["info", long, "--json"], "check": ["check", long], "check --json": [
            "check", long, "--json"],
        "frames --raw": ["frames", long, "--raw", "gray8", "-o", "-"],
        "frames --csv": ["frames", long, "--csv", "-"], "sync": ["sync", take, long],
        "measure": ["measure", take, "--at", "0.5", "--points", "0,0 9,9"],
        "scan": ["scan", long, "--json"], "scan a camera": ["scan", CAMERA, "-t", "5"],
        "play": ["play", long, "--terminal", "--audio", "none"],
        "devices --watch": ["devices", "--watch"], "modes": ["modes", CAMERA, "--probe", "1s"],
        "controls": ["controls", "synthetic"], "doctor": ["doctor"],
        "photo": ["photo", "synthetic", "--burst", "9", "-o", "photo_{n}.png"],
        "bench capture": ["bench", "capture", CAMERA, "-t", "1"], "help": ["help", "retime"],
        "retime --dry-run": ["retime", long, "-o", "no.mov", "--speed", "1/2", "--copy",
                             "--dry-run"],
    }.items()})
    # Without slowmo-full, nothing can be searched.
    for name in ("scan", "scan a camera"):
        verbs[name] = (*verbs[name][:2], {0, 69})
    return verbs


def arguments(bench, words, path, overwrites):
    """The command line; recover lacks the --progress option."""
    line = [str(path) if word == "{}" else str(word) for word in words]
    if line[0] in ("retime", "edit", "frames", "record", "check", "compare"):
        line += ["--progress", "none"]
    return [bench.slowmo, *line, *(["-y"] if overwrites else [])]


def code(process):
    """The exit code as a shell reports it."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def leftovers(directory):
    return [entry.name for entry in directory.iterdir() if entry.name.startswith(".")]


def pair(bench, directory, rng, number):
    suffix = rng.choice([".mov", ".mov", ".mp4", ".png", ".otio", ".csv"])
    choices = [name for name, (end, _) in writers(bench).items() if end == suffix]
    names = [rng.choice(choices), rng.choice(choices)]
    has_old = rng.random() < 0.5
    overwrites = [rng.random() < 0.6, rng.random() < 0.6]
    path = directory / ("t" + suffix)
    if has_old:
        path.write_bytes(OLD[suffix])
    processes = []
    for name, may in zip(names, overwrites):
        processes.append(
            subprocess.Popen(
                arguments(bench, writers(bench)[name][1], path, may),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        time.sleep(rng.choice([0, 0, 0.02, 0.1]) * rng.random())
    said = [process.communicate(timeout=1800)[1] for process in processes]
    statuses = [code(process) for process in processes]
    bench.written(path)
    words = [f"{name}{' -y' if may else ''} = {status}" for name, may, status
             in zip(names, overwrites, statuses)]
    trial = f"pair {number} ({'over a file, ' if has_old else ''}{' and '.join(words)})"
    for name, status in zip(names, statuses):
        bench.count("pairs", status)
    if not set(statuses) <= {0, 73}:
        bench.fail(f"exit codes: {said}", trial)
    if has_old and any(status == 0 and not may for status, may in zip(statuses, overwrites)):
        bench.fail("replaced a file without -y", trial)
    if not has_old and 0 not in statuses:
        bench.fail(f"no verb wrote the file: {said}", trial)
    if not any(overwrites) and statuses.count(0) > 1:
        bench.fail("both ended with 0, but only one may write the file", trial)
    if not path.exists():
        bench.fail("the file is missing", trial)
    elif 0 not in statuses and path.read_bytes() != OLD[suffix]:
        bench.fail("the old file has changed, although no verb succeeded", trial)
    elif not (has_old and path.read_bytes() == OLD[suffix]) and not bench.is_complete(path):
        bench.fail("the file is incomplete", trial)
    elif 0 in statuses and has_old and path.read_bytes() == OLD[suffix]:
        bench.fail("a verb ended with 0, but the old file remains", trial)
    if leftovers(directory):
        bench.fail(f"left behind {leftovers(directory)}", trial)


def prepare(bench, directory, rng, name, suffix, words):
    """The target path, whether a file exists there already, and the command line."""
    path = directory / ("t" + suffix)
    has_old = name != "recover" and rng.random() < 0.5
    if has_old:
        path.write_bytes(OLD[suffix])
    if name == "recover":
        shutil.copy(bench.killed, path)
        line = [bench.slowmo, "recover", str(path)]
    else:
        line = arguments(bench, words, path, has_old)
    return path, has_old, line


def processor_seconds(process):
    """The processor time of a process so far; None after its end."""
    try:
        # CPUCLOCK_SCHED of another process; see clock_getcpuclockid(3).
        return time.clock_gettime((~process.pid << 3) | 2)
    except OSError:
        return None


class Ended:
    """Waits for the end of a process, and takes the processor time that it uses until then."""

    def __init__(self, process, start, most=None, timeout=300):
        self.seconds, self.problem = 0.0, None
        limit = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            used = processor_seconds(process)
            if most and used is not None and start is not None and used - start > 3 * most:
                self.problem = f"goes on for {used - start:.1f} s of processor time"
            elif time.monotonic() > limit:
                self.problem = f"did not end in {timeout} s"
            if self.problem:
                process.kill()
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        if start is not None:
            self.seconds = usage.ru_utime + usage.ru_stime - start
        if most and self.seconds > most and not self.problem:
            self.problem = f"goes on for {self.seconds:.2f} s of processor time"


def interrupted(bench, directory, rng, number):
    name, (suffix, words, codes) = rng.choice(list(interruptible(bench).items()))
    sent = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    if bench.careless and number % 2:
        # Work for many seconds, and a signal that does not end it.
        name, (suffix, words, codes) = "retime long", interruptible(bench)["retime long"]
        sent = signal.SIGWINCH
    path, has_old = None, False
    if suffix is None:
        line = arguments(bench, words, None, False)
    else:
        path, has_old, line = prepare(bench, directory, rng, name, suffix, words)
    wait = bench.startup * rng.uniform(0.5, 5)
    with open(directory / "said", "w+") as said:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, cwd=directory)
        time.sleep(wait)
        # Unlike Popen, this leaves the ended process for wait4(2).
        os.kill(process.pid, sent)
        # A recording is finished, and so are its repair and photos that were taken.
        finishes = name.startswith("record") or name in ("recover", "photo")
        ended = Ended(process, processor_seconds(process), None if finishes else bench.most_seconds)
        said.seek(0)
        text = said.read()
    (directory / "said").unlink()
    if path:
        bench.written(path)
    status = code(process)
    trial = f"signal {number} ({name}{' over a file' if has_old else ''}, {sent.name}) = {status}"
    bench.count("signals", status)
    bench.seconds = max(bench.seconds, 0 if finishes else ended.seconds)
    if ended.problem:
        bench.fail(ended.problem, trial)
    # Before the command installs its signal handlers, a signal ends it with the default action.
    if status not in codes | {130 if sent == signal.SIGINT else 143, 128 + sent}:
        bench.fail(f"exit code: {text}", trial)
    if leftovers(directory):
        bench.fail(f"left behind {leftovers(directory)}", trial)
    if path and (name in writers(bench) or name == "recover"):
        judge(bench, name, path, suffix, has_old, status, trial)
    elif path and status not in codes:
        is_old = has_old and path.exists() and path.read_bytes() == OLD[suffix]
        if path.exists() != is_old:
            bench.fail("failed, but the file has changed", trial)


def full_pipe():
    """Both ends of a pipe that takes no more bytes."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        pass
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    return reader, writer


def stopped_terminal():
    """Both ends of a pseudo-terminal after Ctrl-S."""
    master, slave = pty.openpty()
    os.write(master, b"\x13")
    return master, slave


def unread(bench, directory, rng, number):
    """A recording, or a preview, whose terminal or pipe is not used by its other end."""
    kind = ["terminal", "pipe", "result", "metadata", "preview"][number % 5]
    ends = ["duration", "signal", "kill"][number // 5 % 3]
    if ends == "kill" and kind in ("result", "preview") or kind == "preview":
        ends = "signal"
    path, report, counter = (directory / name for name in ("t.mov", "report.json", "counter"))
    camera = f"synthetic:160x120@240?counter={counter}"
    line = [bench.slowmo, "record", camera, "-o", path, "--report", report]
    if ends == "duration":
        line += ["-t", "0.5"]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    outer, inner = stopped_terminal() if kind in ("terminal", "preview") else full_pipe()
    if kind in ("terminal", "pipe"):
        streams["stderr"] = inner
        line += ["--progress", "bar" if kind == "terminal" else "json"]
    elif kind == "result":
        streams["stdout"] = inner
        line += ["--json"]
    elif kind == "metadata":
        os.close(outer)
        os.close(inner)
        outer, inner = os.pipe()
        # No program writes into it, but the other end is open.
        outer, inner = inner, outer
        line += ["--metadata-fd", str(inner)]
    else:
        line = [bench.slowmo, "preview", camera, "--terminal"]

    def take_terminal():
        os.setsid()
        fcntl.ioctl(inner, 0x540E, 0)  # TIOCSCTTY

    process = subprocess.Popen(
        line, stdin=subprocess.DEVNULL, pass_fds=[inner],
        preexec_fn=take_terminal if kind == "preview" else None, **streams)
    os.close(inner)
    wait, sent = rng.uniform(0, 0.5), rng.choice([signal.SIGINT, signal.SIGTERM])
    limit = time.monotonic() + 40
    # Without a frame, a signal may come before the command handles it. A result that waits for its
    # reader is given up after a signal.
    awaited = report.exists if kind == "result" and ends == "duration" else lambda: count_in(counter)
    while not awaited() and time.monotonic() < limit:
        time.sleep(0.01)
    if ends != "duration" or kind == "result":
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL if ends == "kill" else sent)
    ended = Ended(process, None, timeout=40)
    os.close(outer)
    bench.written(path)
    status = code(process)
    trial = f"unread {number} ({kind}, ends by {ends}) = {status}"
    bench.count("unread", status)
    if ended.problem:
        return bench.fail(ended.problem, trial)
    if kind == "preview":
        if status not in (0, 130, 143):
            bench.fail("exit code", trial)
        return None
    if ends == "kill":
        again = bench.run(["recover", path, "--json"])
        found = json.loads(again.stdout).get("frame_count", 0) if path.exists() else 0
        made = count_in(counter)
        if made - found > KILLED_FRAMES:
            bench.fail(f"{made - found} of {made} frames are lost", trial)
        bench.lost = max(bench.lost, made - found)
        return None
    # A result that is not read is an error; the recording is complete nevertheless.
    if status not in ((130, 143) if kind == "result" else (0,)):
        return bench.fail("exit code", trial)
    ledger = json.loads(report.read_text())["ledger"]
    lost = ledger["lost_queue"] + ledger["lost_writer"]
    if lost or bench.frames(path) != ledger["stored"] or not ledger["stored"]:
        bench.fail(f"{bench.frames(path)} frames are stored, by the ledger {ledger}", trial)
    return None


def judge(bench, name, path, suffix, has_old, status, trial):
    """Checks the file under the target's name after a verb that may have ended early."""
    if name == "recover":
        again = bench.run(["recover", path, "--json"])
        found = json.loads(again.stdout).get("frame_count")
        if again.returncode != 0 or found != bench.found:
            bench.fail(f"recover finds {found} frames of {bench.found}: {again.stdout}", trial)
        return
    is_old = has_old and path.exists() and path.read_bytes() == OLD[suffix]
    if status == 0 and (not path.exists() or is_old or not bench.is_complete(path)):
        bench.fail("ended with 0, but the file is incomplete", trial)
    elif status != 0 and not is_old and (has_old or path.exists()):
        # A recording cut short by the disk is kept up to that point.
        if not (name.startswith("record") and status == 74 and path.exists()
                and bench.is_complete(path)):
            bench.fail("failed, but the file has changed", trial)


def full_disk(bench, disk, rng, number):
    """Runs a verb on `disk`, which provides a directory with limited free space."""
    kinds = list(writers(bench).items()) * 3 + [("recover", (".mov", None))] * 2
    kinds += [(name, (None, words)) for name, words in printers(bench).items()]
    name, (suffix, words) = rng.choice(kinds)
    directory = disk.clear()
    space = int(rng.choice([2_000, 60_000, 1_500_000]) * rng.random())
    if suffix is None:
        return full_output(bench, disk, name, words, space, number)
    path, has_old, line = prepare(bench, directory, rng, name, suffix, words)
    limit = disk.leave(space, path)
    done = subprocess.run(line, capture_output=True, text=True, timeout=1800, preexec_fn=limit)
    status = code(done)
    bench.written(path)
    disk.free()
    trial = f"full disk {number} ({name}{' over a file' if has_old else ''}, {space} bytes) = {status}"
    bench.count("full disks", status)
    if status not in (0, 74):
        bench.fail(f"exit code: {done.stderr}", trial)
    if status != 0 and done.stderr.count("\n") < 1:
        bench.fail("printed no error message", trial)
    if leftovers(directory):
        bench.fail(f"left behind {leftovers(directory)}", trial)
    judge(bench, name, path, suffix, has_old, status, trial)


def full_output(bench, disk, name, words, space, number):
    """Standard output is a file on the disk: complete with exit code 0, or 74."""
    wanted = subprocess.run([bench.slowmo, *words], capture_output=True, cwd=bench.inputs)
    path = disk.directory / "printed"
    limit = disk.leave(space % (2 * len(wanted.stdout) + 1), path)
    with open(path, "wb") as output:
        done = subprocess.run(
            [bench.slowmo, *map(str, words)], stdout=output, stderr=subprocess.PIPE, text=True,
            cwd=bench.inputs, preexec_fn=limit)
    status = code(done)
    printed = path.read_bytes()
    disk.free()
    trial = f"full disk {number} ({name} to standard output) = {status}"
    bench.count("full disks", status)
    if (status == 0) != (len(printed) == len(wanted.stdout)) or status not in (0, 74):
        bench.fail(f"{len(printed)} of {len(wanted.stdout)} bytes: {done.stderr}", trial)
    if status == 74 and done.stderr.count("\n") != 1:
        bench.fail(f"not exactly one line of error: {done.stderr}", trial)


class MountedDisk:
    """A tmpfs, filled up by a ballast file."""

    def __init__(self, directory):
        self.directory = directory / "disk"
        self.directory.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", self.directory], check=True)

    def clear(self):
        for entry in self.directory.iterdir():
            entry.unlink()
        return self.directory

    def leave(self, space, _):
        status = os.statvfs(self.directory)
        self.ballast = self.directory / "ballast"
        with open(self.ballast, "wb") as file:
            file.write(bytes(max(0, status.f_bavail * status.f_frsize - space)))
        return None

    def free(self):
        self.ballast.unlink()


class LimitedFiles:
    """A limit on the size of each file, for users who may not mount."""

    def __init__(self, directory):
        self.directory = directory / "disk"
        self.directory.mkdir()

    clear = MountedDisk.clear

    def leave(self, space, path):
        space = max(space, path.stat().st_size if path.exists() else 0)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))

        return limit

    def free(self):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slowmo")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--unread", type=int, default=50)
    parser.add_argument("--full-disks", type=int, default=500)
    parser.add_argument(
        "--most-seconds", type=float, default=0.2,
        help="the processor time that a verb may use after a signal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=pathlib.Path)
    parser.add_argument(
        "--careless", action="store_true",
        help="truncate each written file, and send signals that end nothing; each kind of trial must "
        "find this, so that the exit code is 1")
    parser.add_argument("--mounts", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.mounts and os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
            capture_output=True).returncode == 0:
        # In a private mount namespace, so that the disk disappears with this process.
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv, "--mounts"])
    # Programs inherit ignored signals, as from nohup or a shell's background.
    for number in signal.SIGHUP, signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        directory = pathlib.Path(name)
        bench = Bench(options.slowmo, directory, options.careless, options.most_seconds)
        rng = random.Random(options.seed)
        for number in range(options.pairs):
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                pair(bench, pathlib.Path(scratch), rng, number)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            def tried(trial, number):
                own = random.Random(f"{options.seed} {trial.__name__} {number}")
                with tempfile.TemporaryDirectory(dir=directory) as scratch:
                    trial(bench, pathlib.Path(scratch), own, number)
            trials = [pool.submit(tried, interrupted, number) for number in range(options.signals)]
            trials += [pool.submit(tried, unread, number) for number in range(options.unread)]
            for trial in trials:
                trial.result()
        disk = (MountedDisk if options.mounts else LimitedFiles)(directory)
        for number in range(options.full_disks):
            full_disk(bench, disk, rng, number)
        if options.mounts:
            subprocess.run(["umount", disk.directory], check=True)
    for kind, statuses in bench.counts.items():
        words = ", ".join(f"{count} ended with {status}" for status, count in sorted(statuses.items()))
        print(f"{kind}: {words}")
    print(f"at most {bench.seconds:.2f} s of processor time after a signal, and at most {bench.lost} "
          "frames lost by a kill")
    print(f"{len(bench.problems)} problems")
    kinds = ("pair", "signal", "unread", "full disk")
    if options.careless:
        # Each kind has to find something.
        sys.exit(all(any(text.startswith(kind) for text in bench.problems) for kind in kinds))
    sys.exit(1 if bench.problems else 0)


if __name__ == "__main__":
    main()
