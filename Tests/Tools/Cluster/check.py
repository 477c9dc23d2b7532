#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the batches of Samples/cluster on real clusters of this machine, and breaks them.

    check.py SLOWMO [--careless] [--engine twice|rerun|parallel|slurm|dask] [--dask-python PYTHON]

* GNU parallel over ssh, with two network namespaces as computers, each with an sshd. An export is
  killed; a computer vanishes (its link goes down) while it works; one computer has a full disk.
* Slurm, with a munged, a slurmctld and a slurmd. An export is killed; the node dies with all its
  processes, and returns.
* Dask, with a scheduler and two workers. An export is killed; a worker dies, and its orphaned
  export continues next to the one that replaces it.
* One job is run twice at the same time.
* A batch is run again after an output was deleted, and with other options.

In all cases each clip has one output, equal to the output of an undisturbed batch. No temporary file
remains, and the summary names the repeated clips. `--careless` replaces the command by one that takes
any existing output for a finished one and writes slowly; the check must then fail. Needs root, and
the Debian packages that Tests/run.sh installs.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import engines

CLIPS = 6
# A command that trusts an existing file and writes in small pieces.
CARELESS = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys, time
clip, template = sys.argv[2], sys.argv[4]
output = pathlib.Path(template.replace("{name}", pathlib.Path(clip).stem))
if output.exists():
    print(json.dumps({"files": [{"status": "kept", "source": clip, "file": str(output)}]}))
    sys.exit()
work = pathlib.Path(f"%s/careless-{os.getpid()}")
work.mkdir()
status = subprocess.run([%r, *sys.argv[1:4], f"{work}/", *sys.argv[5:]],
                        stdout=subprocess.DEVNULL).returncode
data = (work / output.name).read_bytes()
with open(output, "wb") as file:
    for start in range(0, len(data), 4096):
        file.write(data[start:start + 4096])
        file.flush()
        time.sleep(0.02)
print(json.dumps({"files": [{"status": "made", "source": clip, "file": str(output)}]}))
sys.exit(status)
"""


class Bench:
    """The clips, the expected outputs, and the problems so far."""

    def __init__(self, slowmo, work, careless):
        self.work = work
        self.slowmo = str(pathlib.Path(slowmo).resolve())
        self.problems = []
        clips = work / "clips"
        clips.mkdir()
        self.clips = [str(clips / f"clip{number}.mov") for number in range(CLIPS)]
        for number, clip in enumerate(self.clips):
            self.run(self.slowmo, "record", f"synthetic:320x240@120?pace=max&seed={number}"
                     f"&drop={number}%", "-o", clip, "-t", "2", "--progress", "none")
        good = work / "good"
        good.mkdir()
        self.run(self.slowmo, "retime", *self.clips, "-o", f"{good}/", *engines.OPTIONS,
                 "--progress", "none")
        self.good = {path.name: path.read_bytes() for path in good.iterdir()}
        # The jobs call the command by a unique name, so that no other process is killed by mistake.
        self.program = work / "slowmo-of-cluster"
        if careless:
            self.program.write_text(CARELESS % (work, self.slowmo))
        else:
            self.program.write_text(f'#!/bin/sh\nexec {self.slowmo} "$@"\n')
        self.program.chmod(0o755)
        self.environment = {**os.environ, "SLOWMO": str(self.program)}

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
        return done.stdout

    def outputs(self, name):
        """A new directory for outputs."""
        directory = self.work / name
        (directory / "reports").mkdir(parents=True)
        return directory

    def exports(self, directory, among=None):
        """The processes that export into a directory, limited to those that `among` returns."""
        allowed = among() if among else None
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"retime" in words and f"{directory}/{{name}}.mov".encode() in words:
                    found.append(int(entry.name))
        return [process for process in found if allowed is None or process in allowed]

    def await_export(self, directory, job, among=None):
        """Waits for an export that has begun to write; returns its processes, none after the end."""
        while job.poll() is None:
            found = self.exports(directory, among)
            written = [path for path in directory.iterdir() if path.is_file()
                       and path.stat().st_size > 0]
            if found and written:
                return found
            time.sleep(0.02)
        self.problems.append(f"{directory.name}: the batch ended before an export could be killed")
        return []

    def kill_export(self, directory, job, among=None):
        """Kills an export in the middle of its work."""
        for process in self.await_export(directory, job, among):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def start(self, *command, **options):
        return subprocess.Popen(
            list(map(str, command)), env=options.pop("env", self.environment),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def judge(self, directory, job, again):
        """Checks a finished batch: its outputs, its summary, and the remaining files."""
        said, _ = job.communicate()
        while self.exports(directory):  # A lost computer may still work.
            time.sleep(0.05)
        name = directory.name

        def expect(holds, problem):
            if not holds:
                self.problems.append(f"{name}: {problem}\n    " + said.replace("\n", "\n    "))
        expect(job.returncode == 0, f"it ended with {job.returncode}")
        # One more batch removes the leftovers of the last kill, and must find every output finished.
        done = subprocess.run(
            [self.slowmo, "retime", *self.clips, "-o", f"{directory}/{{name}}.mov", *engines.OPTIONS,
             "--progress", "none"], capture_output=True, text=True)
        expect(done.stdout.rstrip().endswith(f"{CLIPS} kept, 0 failed"), done.stdout + done.stderr)
        files = {path.name: path for path in directory.iterdir() if path.name != "reports"}
        expect(set(files) == set(self.good), f"the files are {sorted(files)}")
        for file, path in files.items():
            expect(path.read_bytes() == self.good.get(file), f"{file} has other bytes than the output of the undisturbed batch")
        expect(f"{CLIPS} clips: {CLIPS} done" in said, "the summary does not count them")
        expect(not again or "done again" in said, "the summary does not name the repeated clips")
        print(f"{name}: {said.rstrip().splitlines()[-1] if said.strip() else 'nothing said'}")


def twice(bench):
    """The same job at the same time by two processes."""
    directory = bench.outputs("twice")
    jobs = [bench.start(engines.SAMPLES / "job.sh", directory / "reports", clip,
                        f"{directory}/{{name}}.mov", *engines.OPTIONS)
            for clip in bench.clips for _ in range(2)]
    for job in jobs:
        job.communicate()
        if job.returncode != 0:
            bench.problems.append(f"twice: a job ended with {job.returncode}")
    bench.judge(directory, bench.start(engines.SAMPLES / "summary.py", directory / "reports", *bench.clips),
                again=True)


def rerun(bench):
    """A deleted output is made again, and other options never count as done."""
    directory = bench.outputs("rerun")
    for name, data in bench.good.items():
        (directory / name).write_bytes(data)

    def batch(*options):
        return bench.start(engines.SAMPLES / "parallel.sh", "2/:", directory, *bench.clips, "--",
                           *engines.OPTIONS, *options)
    for job, status in [(batch(), 0), (batch("--crf", "30"), 1)]:
        said, _ = job.communicate()
        if job.returncode != status:
            bench.problems.append(f"rerun: it ended with {job.returncode}, not {status}\n{said}")
    next(iter(sorted(directory.glob("*.mov")))).unlink()
    bench.judge(directory, batch(), again=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("slowmo")
    parser.add_argument("--careless", action="store_true")
    parser.add_argument("--engine", choices=["twice", "rerun", "parallel", "slurm", "dask"])
    parser.add_argument("--dask-python", default="python3")
    arguments = parser.parse_args()
    # Started processes are ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = pathlib.Path(tempfile.mkdtemp(prefix="cluster-"))
    work.chmod(0o755)
    try:
        bench = Bench(arguments.slowmo, work, arguments.careless)
        checks = {
            "twice": twice, "rerun": rerun, "parallel": engines.parallel, "slurm": engines.slurm,
            "dask": lambda bench: engines.dask(bench, arguments.dask_python)}
        for name, check in checks.items():
            if arguments.engine in (None, name):
                check(bench)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for problem in bench.problems:
        print(problem, file=sys.stderr)
    print(f"{len(bench.problems)} problems")
    sys.exit(1 if bench.problems else 0)


if __name__ == "__main__":
    main()
