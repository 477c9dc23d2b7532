# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Passthrough/run.sh."""
import os
import pathlib
import statistics
import subprocess
import sys

from program_costs import measure

SLOWMO = os.environ["SLOWMO"]
WORK = pathlib.Path(os.environ["WORK"])
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]


def clip(name, seconds):
    """Makes a clip of noise at 133 Mbit/s, by repeating two seconds."""
    part = WORK / "part.mov"
    if not part.exists():
        subprocess.run(
            [*FFMPEG, "-f", "lavfi", "-i", "testsrc2=s=1920x1080:r=240:d=2", "-vf",
             "noise=alls=12:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-b:v", "133M",
             "-maxrate", "133M", "-bufsize", "133M", "-g", "240", "-bf", "0", "-pix_fmt",
             "yuv420p", "-video_track_timescale", "240000", part], check=True)
    path = WORK / name
    subprocess.run(
        [*FFMPEG, "-stream_loop", str(seconds // 2 - 1), "-i", part, "-c", "copy",
         "-video_track_timescale", "240000", path], check=True)
    return path


def main():
    rounds, seconds = int(sys.argv[1]), int(sys.argv[2])
    path = clip("clip.mov", seconds)
    half = clip("half.mov", seconds // 2)
    out = WORK / "out.mov"
    frames = seconds * 240
    print(f"{path.stat().st_size / 1e6:.0f} MB, {frames} frames of 1920x1080 at 240 fps")

    def slow(source, length):
        return [SLOWMO, "retime", source, "-o", out, "-y", "--copy", "--progress", "none",
                "--range", f"{length / 4}..{length / 2}", "--speed", "1/8"]

    commands = {
        "slowmo, a quarter at 1/8": slow(path, seconds),
        "slowmo, of half the clip": slow(half, seconds // 2),
        "ffmpeg -c copy": [*FFMPEG, "-i", path, "-c", "copy", out],
    }
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            results[name].append(measure(command))
            out.unlink()
    tenth = measure(
        [*FFMPEG, "-i", path, "-t", str(seconds / 10), "-vf", "setpts=8*PTS", "-fps_mode",
         "passthrough", "-c:v", "libx264", "-preset", "ultrafast", out])
    results["re-encode, ultrafast"] = [(tenth[0] * 10, tenth[1] * 10, tenth[2])]
    print(f"{'':26}{'s':>8}{'cpu s':>8}{'frames/s':>10}{'peak MiB':>10}")
    medians = {}
    for name, runs in results.items():
        wall, cpu, memory = (statistics.median(column) for column in zip(*runs))
        medians[name] = wall
        count = frames // 2 if "half" in name else frames
        print(f"{name:26}{wall:>8.2f}{cpu:>8.2f}{count / wall:>10.0f}{memory:>10.1f}")
    ours = medians["slowmo, a quarter at 1/8"]
    # The quotient is taken within each round, because other load affects both programs alike.
    quotient = statistics.median(
        a[0] / b[0] for a, b in zip(results["slowmo, a quarter at 1/8"], results["ffmpeg -c copy"]))
    share = ours / medians["re-encode, ultrafast"]
    memory = [
        statistics.median(run[2] for run in results[name])
        for name in ["slowmo, a quarter at 1/8", "slowmo, of half the clip"]]
    # The growth is due to the index; a kilobyte per frame would be too much.
    growth = (memory[0] - memory[1]) * 1_024 / (frames / 2)
    print(f"{quotient:.2f} times ffmpeg -c copy (limit 1.2), {share:.3f} of the re-encode "
          f"(limit 0.1), {growth:.2f} KiB more a frame (limit 1)")
    sys.exit(0 if quotient <= 1.2 and share <= 0.1 and growth <= 1 else 1)


main()
