# SPDX-License-Identifier: Apache-2.0
"""Takes of the synthetic camera, and the frame number in its images."""

import functools
import os
import tempfile
import unittest

import overcrank


class DirectoryTestCase(unittest.TestCase):
    """A test in a new directory, which is the current one."""

    def setUp(self):
        before = os.getcwd()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(directory.name)


@functools.cache
def _directory():
    directory = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(directory.cleanup)
    unittest.addModuleCleanup(_directory.cache_clear)
    unittest.addModuleCleanup(take.cache_clear)
    return directory.name


@functools.cache
def take(device="synthetic:320x240@240?pace=max&drop=5%&seed=7", **options):
    """A recording of one second, made once for all tests of a file."""
    options.setdefault("duration", 1)
    name = f"take{len(os.listdir(_directory()))}.mov"
    return overcrank.record(device, os.path.join(_directory(), name), **options)


def painted_number(image):
    """The frame number in the 32 cells along the top edge: 26 bits, and a check value of 6."""
    width = image.shape[1]
    per_row = max(1, min(32, width // 8))
    cell_width = width // per_row
    bits = 0
    for cell in range(32):
        left, top = cell % per_row * cell_width, cell // per_row * 16
        block = image[top + 5:top + 11, left + cell_width // 4:left + cell_width * 3 // 4]
        bits = bits << 1 | (block.mean() >= 128)
    number = bits >> 6
    assert bits & 63 == number % 61 + 1, "the image shows no frame number"
    return int(number)
