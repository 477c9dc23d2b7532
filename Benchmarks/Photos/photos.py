# SPDX-License-Identifier: Apache-2.0
"""Measures JPEG encoders; Benchmarks/Photos/run.sh describes the measurement."""
import os
import resource
import statistics
import subprocess
import sys

import figures

IMAGES = 8
LIMIT = 8.0
work, program = os.environ["WORK"], os.environ["ENCODE_PHOTOS"]
rounds, quality = int(sys.argv[1]), sys.argv[2]


def run(command):
    """Runs a command and returns its processor time in milliseconds and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000, done.stdout


def row(name, times, size):
    spread = f"{min(times):.1f}-{max(times):.1f}"
    print(f"{name:44} {statistics.median(times):6.1f} ms ({spread})  {size / 1000:6.0f} kB")


movie, image = f"{work}/clip.mov", f"{work}/image.ppm"
source = ["-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=25", "-frames:v", str(IMAGES)]
noise = ["-vf", "noise=alls=8:allf=t"]
run(["ffmpeg", "-v", "error", *source, *noise, "-pix_fmt", "yuv420p", "-c:v", "ffv1", movie])
run(["ffmpeg", "-v", "error", "-i", movie, "-frames:v", "1", image])

worst, ours = 0.0, []
for pixels in ["yuvj420p", "yuv420p"]:
    out = f"{work}/{pixels}.jpg"
    times = [float(run([program, movie, pixels, quality, "3", out])[1]) for _ in range(rounds)]
    row(f"EncodePhotos, {pixels}, Exif and thumbnail", times, os.path.getsize(out))
    if pixels == "yuvj420p":
        worst, ours = statistics.median(times), times
    judged = run(["exiftool", "-validate", "-s3", out])[1].decode().strip()
    if judged != "OK":
        sys.exit(f"exiftool: {judged}")

times, out = [], f"{work}/cjpeg.jpg"
for _ in range(rounds):
    spent = [run(["cjpeg", "-quality", quality, "-outfile", out, image])[0] for _ in range(IMAGES)]
    times.append(statistics.mean(spent))
row("cjpeg, from RGB", times, os.path.getsize(out))
peers = {"cjpeg": times}

# The process decodes the movie too, so the time of decoding alone is subtracted.
reading = ["ffmpeg", "-v", "error", "-threads", "1", "-i", movie]
times = []
for _ in range(rounds):
    encoded = run([*reading, "-c:v", "mjpeg", "-q:v", "2", "-threads", "1", "-f", "null", "-"])[0]
    decoded = run([*reading, "-c:v", "rawvideo", "-f", "null", "-"])[0]
    times.append((encoded - decoded) / IMAGES)
out = f"{work}/ffmpeg.jpg"
run([*reading, "-q:v", "2", "-frames:v", "1", out])
row("ffmpeg, mjpeg -q:v 2, one thread", times, os.path.getsize(out))
peers["ffmpeg"] = times
figures.add("a 1080p JPEG with Exif and thumbnail", ours, "ms", peers, f"<= {LIMIT}", worst <= LIMIT)
if worst > LIMIT:
    sys.exit(f"an image takes {worst:.1f} ms, more than {LIMIT} ms")
