# SPDX-License-Identifier: Apache-2.0
"""Compares how fast frames of a movie become NumPy arrays; see run.sh."""
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import av
import figures
import numpy

try:
    import decord
except ImportError:
    decord = None

WIDTH, HEIGHT, RATE, SECONDS = 1920, 1080, 240, 4
WORK = pathlib.Path(os.environ["WORK"])
BYTES = WIDTH * HEIGHT * 3 // 2
# A clip as a camera writes it: motion everywhere, and noise.
CODECS = {
    "h264": ["-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-g", "60", "-bf", "2"],
    "mjpeg": ["-c:v", "mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"],
}


def from_pipe(command, count):
    """Reads frames from the standard output of a program."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    image = numpy.empty((HEIGHT * 3 // 2, WIDTH), numpy.uint8)
    found = 0
    while process.stdout.readinto(image) == BYTES:
        found += 1
    process.wait()
    assert found == count, (command, found)


def with_slowmo(path, numbers):
    selection = [part for number in numbers or [] for part in ("--at", f"{number}f")]
    from_pipe(
        [os.environ["SLOWMO"], "frames", path, *selection, "--raw", "yuv420p", "-o", "-", "--splice",
         "--progress", "none"],
        len(numbers) if numbers else RATE * SECONDS)


def with_ffmpeg(path, numbers):
    if numbers:
        return False
    from_pipe(
        ["ffmpeg", "-v", "error", "-nostdin", "-i", path, "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"],
        RATE * SECONDS)


def with_pyav(path, numbers):
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        stream.thread_type = "AUTO"
        if not numbers:
            for frame in file.decode(stream):
                frame.to_ndarray(format="yuv420p")
            return None
        for number in numbers:
            wanted = round(number / RATE / stream.time_base) + (stream.start_time or 0)
            file.seek(wanted, stream=stream)
            for frame in file.decode(stream):
                if frame.pts >= wanted:
                    frame.to_ndarray(format="yuv420p")
                    break
    return None


def with_decord(path, numbers):
    if decord is None:
        return False
    reader = decord.VideoReader(str(path))
    for number in numbers or range(len(reader)):
        reader[number].asnumpy()
    return None


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    programs = {"slowmo": with_slowmo, "ffmpeg": with_ffmpeg, "PyAV": with_pyav, "decord (RGB)": with_decord}
    count = RATE * SECONDS
    numbers = [random.Random(1).randrange(count) for _ in range(100)]
    print(f"{WIDTH}x{HEIGHT} yuv420p into NumPy; frames per second, medians of {runs} (lowest, highest)")
    print(f"{'':24}" + "".join(f"{name:>22}" for name in programs))
    for codec, options in CODECS.items():
        clip = WORK / f"{codec}.mov"
        subprocess.run(
            ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i",
             f"testsrc2=size={WIDTH}x{HEIGHT}:rate={RATE}:duration={SECONDS}", "-vf", "noise=alls=4:allf=t",
             "-pix_fmt", "yuv420p", *options, "-video_track_timescale", "240000", clip], check=True)
        for name, chosen in (("all frames", None), ("100 random frames", numbers)):
            rates = {program: [] for program in programs}
            # The programs run in turn, so that other load affects all of them alike.
            for _ in range(runs):
                for program, read in programs.items():
                    start = time.perf_counter()
                    if read(clip, chosen) is False:
                        continue
                    rates[program].append((len(chosen) if chosen else count) / (time.perf_counter() - start))
            cells = [
                f"{statistics.median(found):8.0f} ({min(found):.0f}, {max(found):.0f})" if found else "-"
                for found in rates.values()]
            print(f"{codec + ', ' + name:24}" + "".join(f"{cell:>22}" for cell in cells))
            figures.add(f"{codec} 1080p into NumPy, {name}", rates["slowmo"], "frames/s", {
                peer: found for peer, found in rates.items() if peer != "slowmo" and found})


if __name__ == "__main__":
    main()
