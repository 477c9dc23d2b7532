#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the codes of frames with zxing-cpp's Python module, each frame by itself.

    read-frames.py DIRECTORY      a directory of code-frames.py

Prints a JSON object: `texts`, a list of the texts of each frame in the order of labels.json, and
`seconds`, the processor time of the reads.
"""
import json
import pathlib
import sys
import time

import zxingcpp


def image(path):
    data = path.read_bytes()
    width, height = map(int, data.split(maxsplit=3)[1:3])
    return memoryview(data[-width * height:]).cast("B", (height, width))


directory = pathlib.Path(sys.argv[1])
frames = json.loads((directory / "labels.json").read_text())
texts, seconds = [], 0.0
for frame in frames:
    pixels = image(directory / frame["file"])
    start = time.process_time()
    found = zxingcpp.read_barcodes(pixels)
    seconds += time.process_time() - start
    texts.append([code.text for code in found])
print(json.dumps({"texts": texts, "seconds": seconds}))
