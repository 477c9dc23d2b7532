# SPDX-License-Identifier: Apache-2.0
"""Differences of luma planes, and PNG files of them."""
import struct
import zlib

import numpy


def psnr(truth, made):
    """The peak signal-to-noise ratio of two luma planes in decibels."""
    error = numpy.mean((truth.astype(float) - made.astype(float)) ** 2)
    return 99.0 if error == 0 else 10 * numpy.log10(255 ** 2 / error)


# A Gaussian of 11 values with a deviation of 1.5.
GAUSSIAN = numpy.exp(-0.5 * (numpy.arange(-5, 6) / 1.5) ** 2)
GAUSSIAN = (GAUSSIAN / GAUSSIAN.sum()).astype(numpy.float32)


def blurred_columns(plane):
    """A plane after a Gaussian along its columns, without five rows at each end."""
    count = len(plane) - 10
    total = GAUSSIAN[5] * plane[5:5 + count]
    for index in range(5):
        total += GAUSSIAN[index] * (
            plane[index:index + count] + plane[10 - index:10 - index + count])
    return total


def blurred(plane):
    """A plane after a Gaussian of 11x11, without its border."""
    return blurred_columns(blurred_columns(plane).T).T


# The rows of a plane that are compared at a time, so that they fit into the processor's cache.
STRIP = 64


def ssim(truth, made):
    """The structural similarity of two luma planes."""
    rows, total = len(truth) - 10, 0.0
    for top in range(0, rows, STRIP):
        a, b = (plane[top:top + STRIP + 10].astype(numpy.float32) for plane in (truth, made))
        mean_a, mean_b = blurred(a), blurred(b)
        squares = blurred(a * a + b * b) - mean_a ** 2 - mean_b ** 2
        both = blurred(a * b) - mean_a * mean_b
        small, large = (0.01 * 255) ** 2, (0.03 * 255) ** 2
        total += numpy.sum(
            (2 * mean_a * mean_b + small) * (2 * both + large)
            / ((mean_a ** 2 + mean_b ** 2 + small) * (squares + large)), dtype=float)
    return float(total / (rows * (truth.shape[1] - 10)))


def write_png(path, plane):
    """Writes a plane as a gray image."""
    height, width = plane.shape
    rows = b"".join(b"\0" + row.tobytes() for row in plane.astype(numpy.uint8))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
