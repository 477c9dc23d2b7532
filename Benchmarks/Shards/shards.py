# SPDX-License-Identifier: Apache-2.0
"""Compares the processor time of an export in shards with that of one export; see run.sh."""
import math
import os
import pathlib
import statistics
import subprocess
import sys

import figures
from program_costs import measure

GOAL = 1.05
SHARDS = 8
# The output: 32 s at 30 fps, in groups of 2 s.
RATE, SECONDS, GROUP = 30, 32, 2
# The extrapolation: an hour, 1000 computers, and the seconds until a scheduler starts a job.
FILM, COMPUTERS, START = 3600, 1000, 5
WORK = pathlib.Path(os.environ["WORK"])


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    clip = WORK / "clip.mov"
    # The clip has motion everywhere, noise like a camera's, and a key frame each second.
    subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i",
         "testsrc2=size=1280x720:rate=120:duration=8", "-f", "lavfi", "-i",
         "sine=frequency=440:duration=8", "-vf", "noise=alls=4:allf=t,format=yuv420p", "-c:v",
         "libx264", "-preset", "veryfast", "-crf", "20", "-g", "120", "-c:a", "aac",
         "-video_track_timescale", "240000", clip], check=True)

    def export(name, *options):
        return measure([os.environ["SLOWMO"], "retime", str(clip), "-o", str(WORK / name),
                        "--speed", "1/4", "--fps", str(RATE), "--progress", "none", *options])
    whole, shards, joins, memory = [], [], [], []
    for _ in range(runs):
        for path in WORK.glob("film*"):
            path.unlink()
        whole.append(export("whole.mp4", "-y"))
        parts = [export("film.mp4", "--shard", f"{number + 1}/{SHARDS}")
                 for number in range(SHARDS)]
        shards.append(parts)
        joins.append(export("film.mp4", "--join"))
        memory.append(max(part[2] for part in parts))

    def median(values):
        return statistics.median(values)
    alone = median(run[1] for run in whole)
    divided = median(sum(part[1] for part in parts) for parts in shards)
    joined = median(join[1] for join in joins)
    print(f"1280x720 at 120 fps, 8 s at 1/4 speed, at {RATE} fps; h264 medium crf 18; "
          f"medians of {runs}")
    print(f"{'':24} {'CPU s':>8} {'wall s':>8} {'MiB':>6}")
    print(f"{'one export':24} {alone:8.2f} {median(run[0] for run in whole):8.2f} "
          f"{median(run[2] for run in whole):6.0f}")
    print(f"{f'{SHARDS} shards, in turn':24} {divided:8.2f} "
          f"{median(sum(part[0] for part in parts) for parts in shards):8.2f} "
          f"{median(memory):6.0f}")
    print(f"{'join, with the audio':24} {joined:8.2f} {median(join[0] for join in joins):8.2f} "
          f"{median(join[2] for join in joins):6.0f}")
    share = (divided + joined) / alone
    figures.add(f"{SHARDS} shards and their join, processor time", [
        sum(part[1] for part in parts) + join[1] for parts, join in zip(shards, joins)], "s",
        {"one export": [run[1] for run in whole]}, f"<= {GOAL} one export", share <= GOAL)
    print(f"shards and join take {share:.3f} of the processor time; goal: at most {GOAL}")

    # What a shard costs besides its groups cannot be less than nothing.
    fixed = max(0.0, (divided - alone) / SHARDS)
    group = (divided / SHARDS - fixed) * SHARDS / (SECONDS / GROUP)
    join = median(join[0] for join in joins) * FILM / SECONDS
    groups = math.ceil(FILM / GROUP)
    one = groups * group
    many = START + fixed + math.ceil(groups / COMPUTERS) * group + join
    print(f"\nextrapolated to {FILM} s of film, one processor: {one:.0f} s; {COMPUTERS} computers "
          f"with one processor each: {many:.0f} s, {one / many:.0f} times as fast")
    print(f"  assumed: equal computers; {START} s until a job starts; {group:.2f} s for a group and "
          f"{fixed:.2f} s for a shard; a common disk that delivers to all at once; a join of "
          f"{join:.0f} s, in proportion to the length, with the audio in it")
    sys.exit(0 if share <= GOAL else 1)


main()
