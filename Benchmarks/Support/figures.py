# SPDX-License-Identifier: Apache-2.0
"""The figures that a benchmark adds to the report of Benchmarks/run.sh."""
import json
import os

# The goals that are not met.
missed = []


def listed(values):
    return [float(value) for value in (values if isinstance(values, list) else [values])]


def add(name, values, unit, peers=None, goal=None, met=None):
    """Adds a figure to the file that the variable FIGURES names; without one, does nothing.

    `values` is a number, or the list of a number for each round. `peers` has such values by the
    names of the peers. `goal` is text, and `met` says whether it is met."""
    path = os.environ.get("FIGURES")
    if path is None:
        return
    line = {
        "benchmark": os.environ.get("BENCHMARK", ""), "figure": name, "unit": unit,
        "values": listed(values),
        "peers": {peer: listed(found) for peer, found in (peers or {}).items()},
        # A comparison of NumPy's numbers is no Boolean of JSON.
        "goal": goal, "met": None if met is None else bool(met)}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def goal(met, text):
    """Prints whether a goal is met, and adds that to the report."""
    print(f"{'met   ' if met else 'MISSED'}  {text}")
    add(text, 1 if met else 0, "", goal="met", met=met)
    if not met:
        missed.append(text)
