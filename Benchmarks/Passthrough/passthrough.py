# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/Passthrough/run.sh."""
import os
import pathlib
import statistics
import subprocess
import sys

import figures
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


def index_bytes(path):
    """The size of a movie without its media data."""
    size = 0
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size
        start = 0
        while start < end:
            file.seek(start)
            head = file.read(16)
            count, length = int.from_bytes(head[:4], "big"), 8
            if count == 1:
                count, length = int.from_bytes(head[8:16], "big"), 16
            size += length if head[4:8] == b"mdat" else count
            start += count
    return size


def shared(path):
    """Retimes the clip on a file system whose files share blocks, and prints time and space."""
    image, disk = WORK / "disk", WORK / "mount"
    disk.mkdir()
    size = 3 * path.stat().st_size + (512 << 20)
    with open(image, "wb") as file:
        file.truncate(size)
    for command in [
            ["mkfs.xfs", "-q", "-m", "reflink=1", image], ["mount", "-o", "loop", image, disk]]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            print(f"shared blocks: skipped, {command[0]} failed: {reason}")
            return
    try:
        source, out = disk / "clip.mov", disk / "out.mov"
        subprocess.run(["cp", path, source], check=True)
        os.sync()
        used = os.statvfs(disk)
        command = [SLOWMO, "retime", source, "-o", out, "--copy", "--progress", "none",
                   "--speed", "1/8"]
        times, copies = [], []
        for _ in range(5):
            out.unlink(missing_ok=True)
            copies.append(measure(["cp", "--reflink=never", source, out])[0])
            out.unlink()
            times.append(measure(command)[0])
        figures.add("the whole clip where files share blocks", times, "s",
                    {"cp --reflink=never": copies})
        os.sync()
        after = os.statvfs(disk)
        space = (used.f_bfree - after.f_bfree) * after.f_frsize
        print(f"shared blocks: {statistics.median(times):.3f} s, cp --reflink=never "
              f"{statistics.median(copies):.3f} s; {space / 1e6:.2f} MB of space, "
              f"{index_bytes(out) / 1e6:.2f} MB of index")
    finally:
        subprocess.run(["umount", disk], check=True)


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
        "cp --reflink=never": ["cp", "--reflink=never", path, out],
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
    # The quotients are taken within each round, because other load affects both programs alike.
    retimes = results["slowmo, a quarter at 1/8"]
    quotient, of_copy = (
        statistics.median(a[0] / b[0] for a, b in zip(retimes, results[peer]))
        for peer in ["ffmpeg -c copy", "cp --reflink=never"])
    peers = {peer: [run[0] for run in results[peer]]
             for peer in ["ffmpeg -c copy", "cp --reflink=never"]}
    figures.add(f"{path.stat().st_size / 1e9:.1f} GB, a quarter at 1/8",
                [run[0] for run in retimes], "s", peers, "<= 1.05 cp", of_copy <= 1.05)
    share = ours / medians["re-encode, ultrafast"]
    memory = [
        statistics.median(run[2] for run in results[name])
        for name in ["slowmo, a quarter at 1/8", "slowmo, of half the clip"]]
    # The growth is due to the index; a kilobyte per frame would be too much.
    growth = (memory[0] - memory[1]) * 1_024 / (frames / 2)
    print(f"{of_copy:.2f} times cp (limit 1.05), {quotient:.2f} times ffmpeg -c copy (limit 1.2), "
          f"{share:.3f} of the re-encode (limit 0.1), {growth:.2f} KiB more a frame (limit 1)")
    shared(path)
    is_good = of_copy <= 1.05 and quotient <= 1.2 and share <= 0.1 and growth <= 1
    sys.exit(0 if is_good else 1)


main()
