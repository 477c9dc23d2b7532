# SPDX-License-Identifier: Apache-2.0
"""Differences of luma planes, and PNG files of them."""
import struct
import zlib

import numpy


def psnr(truth, made):
    """The peak signal-to-noise ratio of two luma planes in decibels."""
    error = numpy.mean((truth.astype(float) - made.astype(float)) ** 2)
    return 99.0 if error == 0 else 10 * numpy.log10(255 ** 2 / error)


def blurred(plane):
    """A plane after a Gaussian of 11x11 with a deviation of 1.5, without its border."""
    weights = numpy.exp(-0.5 * (numpy.arange(-5, 6) / 1.5) ** 2)
    weights /= weights.sum()
    rows = sum(w * plane[:, i:plane.shape[1] - 10 + i] for i, w in enumerate(weights))
    return sum(w * rows[i:rows.shape[0] - 10 + i] for i, w in enumerate(weights))


def ssim(truth, made):
    """The structural similarity of two luma planes."""
    a, b = truth.astype(float), made.astype(float)
    mean_a, mean_b = blurred(a), blurred(b)
    squares = blurred(a * a) - mean_a ** 2 + blurred(b * b) - mean_b ** 2
    both = blurred(a * b) - mean_a * mean_b
    small, large = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(numpy.mean(
        (2 * mean_a * mean_b + small) * (2 * both + large)
        / ((mean_a ** 2 + mean_b ** 2 + small) * (squares + large))))


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
