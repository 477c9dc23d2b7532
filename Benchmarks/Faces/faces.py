# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that find labeled faces, and adds their figures to the report; see run.sh."""
import re
import subprocess
import sys

import figures

# As the tests print a row: "720p noise of 43  dlib        41 103.2  dlib 2x  42 401.0  image …".
ROW = re.compile(r"^(\d+p +(?:\w+ )?of \d+) +(dlib .*)$")
CELL = re.compile(r"([a-z]+(?: 2x)?) +(\d+) ([\d.]+)(?: |$)")
ROLL = re.compile(r"^roll: .*median ([\d.]+), 90 %: ([\d.]+)")


def add(line):
    """Adds the figures of a printed line; returns whether it has some."""
    if row := ROW.match(line):
        cells = {name: (int(count), float(ms)) for name, count, ms in CELL.findall(row[2])}
        own, name = cells.pop("fine"), " ".join(row[1].split())
        figures.add(f"faces found, {name}", own[0], "", {n: c[0] for n, c in cells.items()},
                    "as many as dlib", own[0] >= cells["dlib"][0])
        figures.add(f"processor time of a fine pass, {name}", own[1], "ms",
                    {n: c[1] for n, c in cells.items()})
    elif roll := ROLL.match(line):
        figures.add("error of the roll, median", float(roll[1]), "degrees", goal="<= 4",
                    met=float(roll[1]) <= 4)
    return bool(row or roll)


# The tests, which run at the same time: they measure processor time.
TESTS = ["Tilted faces", "Finds at least as many labeled faces"]


def main():
    processes = [
        subprocess.Popen(
            [*sys.argv[1:], "--filter", f"RecognitionTests.FaceRollTests/.?{test}"],
            stdout=subprocess.PIPE, text=True)
        for test in TESTS]
    is_good = True
    for test, process in zip(TESTS, processes):
        count = 0
        for line in process.stdout:
            print(line, end="", flush=True)
            count += add(line.rstrip("\n"))
        is_good = process.wait() == 0 and count > 0 and is_good
        if count == 0:
            print(f"{test}: the test printed no figures", file=sys.stderr)
    sys.exit(0 if is_good else 1)


main()
