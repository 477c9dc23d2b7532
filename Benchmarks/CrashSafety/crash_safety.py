# SPDX-License-Identifier: Apache-2.0
"""The measurements of Benchmarks/CrashSafety/run.sh."""
import fcntl
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import sys
import time

import figures
from program_costs import measure

SLOWMO = os.environ["SLOWMO"]
WORK = pathlib.Path(os.environ["WORK"])
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]
FRAGMENTS = ["-movflags", "empty_moov+default_base_moof", "-frag_duration", "250000"]
RATE = 240


def compare_cost(rounds):
    """Compares the cost of copying the same packets with each program, in turn."""
    clip, out = WORK / "clip.mov", WORK / "out.mov"
    part = WORK / "part.mov"
    subprocess.run(
        [SLOWMO, "record", f"synthetic:1280x720@{RATE}", "-o", part, "-t", "5", "--audio", "none",
         "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [*FFMPEG, "-stream_loop", "3", "-i", part, "-c", "copy", "-video_track_timescale",
         "1000000", clip], check=True)
    part.unlink()
    frames = len(packet_sizes(clip))
    megabytes = clip.stat().st_size / 1e6
    print(f"{frames} MJPEG frames of 1280x720, {megabytes:.0f} MB, median of {rounds} rounds")
    commands = {
        "slowmo record --codec copy": [
            SLOWMO, "record", f"file:{clip}?pace=max", "-o", out, "-y", "--codec", "copy",
            "--progress", "none"],
        "ffmpeg -c copy": [*FFMPEG, "-i", clip, "-c", "copy", out],
        "ffmpeg -c copy, fragments": [*FFMPEG, "-i", clip, "-c", "copy", *FRAGMENTS, out],
    }
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            out.unlink(missing_ok=True)
            os.sync()
            results[name].append((*measure(command), out.stat().st_size))
    whole = clip.stat().st_size
    per_frame = {name: [run[1] * 1e6 / frames for run in runs] for name, runs in results.items()}
    figures.add("processor time a frame, with fragments and journal",
                per_frame.pop("slowmo record --codec copy"), "µs", per_frame)
    for name, runs in results.items():
        wall, cost, memory, size = (statistics.median(run[i] for run in runs) for i in range(4))
        print(f"{name:28} {wall:6.2f} s, {cost * 1e6 / frames:5.0f} us of processor a frame, "
              f"{memory:4.0f} MiB, {(size - whole) / frames:+6.1f} bytes a frame")
    out.unlink()
    clip.unlink()


def packet_sizes(path):
    """The offset and size of each video packet; empty where the file cannot be opened."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pos,size",
         "-of", "csv=p=0", str(path)], capture_output=True, text=True)
    lines = [line.strip(",").split(",") for line in done.stdout.split()]
    return [(int(line[1]), int(line[0])) for line in lines if len(line) == 2]


def stop_time(rounds):
    """Measures the time from Ctrl-C to the end of the process, with a finalized file."""
    times = []
    path = WORK / "stopped.mov"
    for _ in range(rounds):
        process = subprocess.Popen(
            [SLOWMO, "record", f"synthetic:1280x720@{RATE}", "-o", path, "-y", "--progress",
             "none"], stdout=subprocess.DEVNULL)
        time.sleep(3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        if process.wait() != 0 or not packet_sizes(path):
            sys.exit("what was stopped cannot be read")
        times.append(time.monotonic() - start)
    path.unlink()
    print(f"from Ctrl-C to a plain file of 3 s: median {statistics.median(times) * 1000:.0f} ms, "
          f"longest {max(times) * 1000:.0f} ms")


def killed_slowmo(path, delay):
    """Kills a recording; returns the frames that the camera delivered, by its own count."""
    counter = pathlib.Path(f"/dev/shm/crash-safety-{os.getpid()}")
    process = subprocess.Popen(
        [SLOWMO, "record", f"synthetic:640x480@{RATE}?counter={counter}", "-o", path, "-y",
         "--audio", "none", "--progress", "none"], stdout=subprocess.DEVNULL)

    def count():
        data = counter.read_bytes() if counter.exists() else b""
        return struct.unpack("=q", data[:8])[0] if len(data) >= 8 else 0

    while count() == 0:
        if process.poll() is not None:
            sys.exit(f"the recording ended by itself with {process.returncode}")
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.wait()
    given = count()
    counter.unlink()
    return given


def killed_ffmpeg(path, delay, options, pictures):
    """Kills ffmpeg; returns the frames written to its pipe in real time."""
    process = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-y", "-f", "mjpeg", "-framerate", str(RATE), "-probesize",
         "32", "-i", "pipe:0", "-c", "copy", *options, path],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # The smallest pipe buffer, so that nearly every written frame has also been read.
    fcntl.fcntl(process.stdin, 1031, 4096)  # F_SETPIPE_SZ
    given, begin = 0, None
    while begin is None or time.monotonic() < begin + delay:
        process.stdin.write(pictures[given % len(pictures)])
        process.stdin.flush()
        given += 1
        if begin is None:
            begin = time.monotonic()
        time.sleep(max(0, begin + given / RATE - time.monotonic()))
    process.kill()
    process.wait()
    return given


def compare_kills(kills):
    source = WORK / "source.mov"
    subprocess.run(
        [SLOWMO, "record", f"synthetic:640x480@{RATE}", "-o", source, "-t", "1", "--audio", "none",
         "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    data = source.read_bytes()
    pictures = [data[place:place + size] for place, size in packet_sizes(source)]
    source.unlink()
    rng = random.Random(1)
    delays = [rng.uniform(0.5, 3) for _ in range(kills)]
    ways = {
        "slowmo": None,
        "slowmo, recovered": None,
        "ffmpeg to MP4": ["-f", "mp4"],
        "ffmpeg to MOV": ["-f", "mov"],
        "ffmpeg to Matroska": ["-f", "matroska"],
        "ffmpeg, fragments of 250 ms": ["-f", "mov", *FRAGMENTS],
    }
    print(f"killed {kills} times after 0.5 to 3 s of MJPEG at {RATE} a second:")
    path = WORK / "killed.mov"
    missing = {}
    for name, options in ways.items():
        lost, opened = [], 0
        for delay in delays:
            if options is None:
                given = killed_slowmo(path, delay)
                if name.endswith("recovered"):
                    subprocess.run(
                        [SLOWMO, "recover", path], check=True, stdout=subprocess.DEVNULL)
            else:
                given = killed_ffmpeg(path, delay, options, pictures)
            found = len(packet_sizes(path)) if path.exists() else 0
            opened += found > 0
            lost.append(max(0, given - found) * 1000 / RATE)
            missing[name] = lost
            path.unlink(missing_ok=True)
        print(f"{name:28} {opened:3} of {kills} can be read; missing: median "
              f"{statistics.median(lost):5.0f} ms, most {max(lost):5.0f} ms")
    figures.add("lost by a kill", missing.pop("slowmo"), "ms", missing)


def main():
    rounds, kills = int(sys.argv[1]), int(sys.argv[2])
    compare_cost(rounds)
    stop_time(rounds)
    compare_kills(kills)


if __name__ == "__main__":
    main()
