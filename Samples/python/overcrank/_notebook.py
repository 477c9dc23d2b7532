# SPDX-License-Identifier: Apache-2.0
"""A clip as HTML, for a notebook."""

from __future__ import annotations

import base64
import os
import tempfile
from html import escape

from ._command import CommandError, PathLike, path_text, run
from ._info import Info, info

#: The longest part of a clip that is shown, in seconds.
LONGEST = 10
#: The largest movie that becomes part of a notebook, in bytes.
LARGEST = 16_000_000


def html(path: PathLike) -> str:
    """A player with the clip in it, and a line about the clip.

    Browsers play H.264 in MP4. Any other clip is shown as a rendering at 30 frames per second.
    """
    name = escape(os.fspath(path))
    try:
        description = info(path)
        if description.video is None:
            return f"<p><code>{name}</code>: no video</p>"
        movie = _movie(path, description)
    except CommandError as error:
        return f"<p>{escape(str(error))}</p>"
    caption = f"<code>{name}</code>: {_caption(description)}"
    if movie is None:
        return f"<p>{caption}; too large to be shown here</p>"
    source = base64.b64encode(movie).decode("ascii")
    return (
        '<figure style="margin:0"><video controls loop muted style="max-width:100%" '
        f'src="data:video/mp4;base64,{source}"></video>'
        f"<figcaption>{caption}</figcaption></figure>")


def _caption(description: Info) -> str:
    video = description.video
    assert video is not None
    parts = [f"{video.width}×{video.height} {escape(video.codec)}", f"{description.duration:.3f} s"]
    if video.capture_fps is not None:
        parts.append(f"captured at {float(video.capture_fps):g} fps")
    if description.duration > LONGEST:
        parts.append(f"the first {LONGEST} s")
    return ", ".join(parts)


def _movie(path: PathLike, description: Info) -> bytes | None:
    """The bytes of a movie that a browser plays, or None if there are too many."""
    video = description.video
    assert video is not None
    suffix = os.path.splitext(path)[1].lower()
    if video.codec == "h264" and suffix == ".mp4" and description.duration <= LONGEST:
        return _content(path)
    with tempfile.TemporaryDirectory(prefix="overcrank-") as directory:
        preview = os.path.join(directory, "preview.mp4")
        trim = ["--trim", f"0..{LONGEST}"] if description.duration > LONGEST else []
        run("retime", path_text(path), "--output", preview, "--speed", "1", *trim, "--fps", "30",
            "--profile", "high", "--crf", "23", "--progress", "none")
        return _content(preview)


def _content(path: PathLike) -> bytes | None:
    if os.path.getsize(path) > LARGEST:
        return None
    with open(path, "rb") as file:
        return file.read()
