#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts calls between the project's modules in a callgrind profile: `CALLS | PAIRS`.

A function's module is the first name in its mangled symbol. Calls from or to the command, the
standard library and third-party packages are not counted.
"""
import collections
import re
import sys

OURS = {
    "ALSA", "Assets", "CameraControls", "Capture", "DeviceDiscovery", "Editing", "Export", "FormatDiscovery",
    "FrameAccounting", "LibAV", "LinuxSystem", "MediaCore", "MediaTiming", "MovieFormat", "Preview", "Raster",
    "Recording", "Retiming", "SimulatedCameras", "V4L2",
}
MODULE = re.compile(r"\$s(\d+)")


def module_of(symbol):
    """The module of a symbol without the target prefix; None for other code."""
    found = MODULE.match(symbol)
    if not found:
        return None
    name = symbol[found.end():found.end() + int(found.group(1))]
    name = name.removeprefix("Overcrank")
    return name if name in OURS else None


def crossings(lines):
    """The number of calls between each pair of modules."""
    names, pairs = {}, collections.Counter()
    caller = callee = None

    def named(text):
        number, _, name = text.partition(" ")
        if name:
            names[number] = name
        return names.get(number, number)

    for line in lines:
        line = line.rstrip("\n")
        if line.startswith("fn="):
            caller = module_of(named(line[3:]))
        elif line.startswith("cfn="):
            callee = module_of(named(line[4:]))
        elif line.startswith("calls=") and caller and callee and caller != callee:
            pairs[caller, callee] += int(line[6:].split()[0])
    return pairs


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="replace") as profile:
        found = crossings(profile)
    if not found:
        sys.exit("the profile names no function of ours")
    print(f"{sum(found.values())} | {len(found)}")
