# SPDX-License-Identifier: Apache-2.0
"""Cameras, microphones and their modes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ._command import Number, fraction, option, run


@dataclass(frozen=True)
class Device:
    """A camera or a microphone.

    Attributes:
        id: A name that stays the same when the device is plugged in again. Part of it is enough to
            name the device.
        path: The device file, such as ``/dev/video0``, or None.
        name: The name for people.
        driver: The name of the driver.
        bus: The bus that the device is attached to.
        kind: ``"v4l2"``, ``"alsa"``, ``"synthetic"`` or ``"file"``.
        media: ``("video",)`` or ``("audio",)``.
        document: All values that the command printed.
    """

    id: str
    path: str | None
    name: str
    driver: str | None
    bus: str | None
    kind: str
    media: tuple[str, ...]
    document: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class MeasuredRate:
    """The frame rate that a camera delivered in a short test.

    Attributes:
        fps: The measured rate, in frames per second, or None.
        jitter_ns: The deviation of the intervals, in nanoseconds, or None.
        dropped: The number of frames that were lost.
    """

    fps: Fraction | None
    jitter_ns: int | None
    dropped: int


@dataclass(frozen=True)
class Mode:
    """A format, a size and a range of rates of a camera.

    Attributes:
        id: The name of the mode, as ``record(mode=…)`` takes it.
        fourcc: The pixel format or codec, such as ``MJPG``.
        compressed: Whether frames are compressed.
        width: The width in pixels.
        height: The height in pixels.
        min_fps: The lowest rate, in frames per second.
        max_fps: The highest rate, in frames per second.
        high_frame_rate: Whether the highest rate is above 30 frames per second.
        fastest: Whether ``record()`` uses this mode by default.
        measured: The result of ``probe``, or None.
        document: All values that the command printed.
    """

    id: str
    fourcc: str
    compressed: bool
    width: int
    height: int
    min_fps: Fraction | None
    max_fps: Fraction | None
    high_frame_rate: bool
    fastest: bool
    measured: MeasuredRate | None
    document: dict[str, Any] = field(repr=False, compare=False)


def devices() -> list[Device]:
    """Lists the cameras and the microphones.

    Raises:
        CommandError: The command failed.
    """
    return [
        Device(
            id=item["id"], path=item["path"], name=item["name"], driver=item["driver"],
            bus=item["bus"], kind=item["kind"], media=tuple(item["media"]), document=item)
        for item in run("devices")["devices"]
    ]


def modes(
    device: str | Device, *, min_fps: Number | None = None, size: str | None = None,
    fourcc: str | None = None, probe: Number | None = None,
) -> list[Mode]:
    """Lists the modes of a camera.

    Args:
        device: A device, or its name: ``/dev/video0``, ``cam0``, part of its id or ``synthetic``.
        min_fps: Only modes that reach this rate, in frames per second.
        size: Only modes of this size, such as ``"1280x720"``.
        fourcc: Only modes of this format, such as ``"mjpg"``.
        probe: Stream each mode for this long, in seconds, and measure its rate.

    Raises:
        CommandError: The device is unavailable.
    """
    document = run(
        "modes", name(device), *option("min-fps", min_fps), *option("size", size),
        *option("fourcc", fourcc), *option("probe", probe))
    return [_mode(item, document["fastest"]) for item in document["modes"]]


def name(device: str | Device) -> str:
    """The name of a device for the command."""
    return device if isinstance(device, str) else device.path or device.id


def _mode(item: dict[str, Any], fastest: str | None) -> Mode:
    measured = item["measured"]
    return Mode(
        id=item["id"], fourcc=item["fourcc"], compressed=item["compressed"], width=item["width"],
        height=item["height"], min_fps=fraction(item["min_fps"]), max_fps=fraction(item["max_fps"]),
        high_frame_rate=item["high_frame_rate"], fastest=item["id"] == fastest,
        measured=measured and MeasuredRate(
            fraction(measured["fps"]), measured["jitter_ns"], measured["dropped"]),
        document=item)
