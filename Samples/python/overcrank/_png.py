# SPDX-License-Identifier: Apache-2.0
"""Reads the PNG images that the command writes one after another to a pipe."""

from __future__ import annotations

import struct
import zlib
from typing import IO

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_image(stream: IO[bytes]) -> NDArray[np.uint8] | None:
    """Reads the next image, or returns None at the end of the stream.

    The array has the shape (height, width, 3), or (height, width) for a gray image. It is a view of
    the decompressed bytes and read-only.

    Raises:
        EOFError: The stream ends within an image.
        ValueError: The image is not as the command writes it.
    """
    signature = stream.read(len(_SIGNATURE))
    if not signature:
        return None
    if signature != _SIGNATURE:
        raise ValueError("the command did not write a PNG image")
    header, data = b"", []
    while True:
        length, kind = struct.unpack(">I4s", _read(stream, 8))
        body = _read(stream, length + 4)
        if kind == b"IHDR":
            header = body[:-4]
        elif kind == b"IDAT":
            data.append(memoryview(body)[:-4])
        elif kind == b"IEND":
            return _image(header, b"".join(data))


def _read(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("the command ended within an image")
    return data


def _image(header: bytes, data: bytes) -> NDArray[np.uint8]:
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    channels = {0: 1, 2: 3}.get(color)
    if channels is None or depth != 8 or interlaced:
        raise ValueError(f"a PNG image of color type {color} and depth {depth} is not supported")
    # Each row begins with the number of its filter. The command writes rows without a filter, so
    # the pixels are used where they are.
    size = height * (1 + width * channels)
    rows = np.frombuffer(zlib.decompress(data, bufsize=size), np.uint8).reshape(height, -1)
    if rows[:, 0].any():
        raise ValueError("a PNG image with filtered rows is not supported")
    pixels = rows[:, 1:]
    return pixels if channels == 1 else pixels.reshape(height, width, channels)
