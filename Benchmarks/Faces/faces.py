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


def main():
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    count = 0
    for line in process.stdout:
        print(line, end="", flush=True)
        count += add(line.rstrip("\n"))
    status = process.wait()
    if status == 0 and count == 0:
        sys.exit("the tests printed no figures")
    sys.exit(status)


main()
