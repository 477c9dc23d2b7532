# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of a constant-rate export with that of ffmpeg; see run.sh."""
import os
import pathlib
import statistics
import subprocess
import sys

import figures
from program_costs import measure

GOAL = 0.83
WORK = pathlib.Path(os.environ["WORK"])
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]
ENCODER = ["-c:v", "libx264", "-preset", "medium", "-crf", "18", "-movflags", "+faststart"]
# Seconds 2 to 4 are stretched to 16 s, and each output frame shows the last frame that is due.
SLOW = "setpts='if(lt(T,2),T,if(lt(T,4),2+(T-2)*8,T+14))/TB',fps=30:round=up"


def frames(path):
    """The number of video frames in a file."""
    answer = subprocess.run(
        ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", path],
        check=True, capture_output=True, text=True)
    return int(answer.stdout.strip().rstrip(","))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    sampling = sys.argv[2] if len(sys.argv) > 2 else "hold"
    clip, raw = WORK / "clip.mov", WORK / "pictures.yuv"
    # The clip has motion everywhere, and noise like a camera's.
    subprocess.run(
        FFMPEG + ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=240:duration=8", "-vf",
                  "noise=alls=4:allf=t,format=yuv420p", "-c:v", "libx264", "-preset", "veryfast",
                  "-crf", "20", "-video_track_timescale", "240000", clip], check=True)
    subprocess.run(
        FFMPEG + ["-i", clip, "-vf", SLOW, "-f", "rawvideo", raw], check=True)
    commands = {
        "slowmo": [
            os.environ["SLOWMO"], "retime", clip, "-o", WORK / "slowmo.mp4", "-y", "--range",
            "2..4", "--speed", "1/8", "--fps", "30", "--sampling", sampling, "--progress", "none"],
        "ffmpeg": FFMPEG + ["-i", clip, "-vf", SLOW] + ENCODER + [WORK / "ffmpeg.mp4"],
        "the encoder alone": FFMPEG + [
            "-f", "rawvideo", "-video_size", "1280x720", "-framerate", "30", "-i", raw]
        + ENCODER + [WORK / "encoder.mp4"],
    }
    results = {name: [] for name in commands}
    # The programs run in turn, so that other load affects all of them alike.
    for turn in range(runs):
        for name, command in commands.items():
            # The encoder alone is no peer but the floor, so one run of it is enough.
            if turn > 0 and name == "the encoder alone":
                continue
            results[name].append(measure(list(map(str, command))))
    counts = {name: frames(command[command.index("-o") + 1] if "-o" in command else command[-1])
              for name, command in commands.items()}
    print(f"1280x720 at 240 fps, 8 s, seconds 2 to 4 at 1/8, at 30 fps, {sampling}; "
          f"h264 medium crf 18; medians of {runs}, one run of the encoder alone")
    print(f"{'':18} {'frames':>7} {'wall s':>8} {'of ffmpeg':>10} {'CPU s':>8} {'MiB':>6}")
    walls = {name: statistics.median(r[0] for r in rows) for name, rows in results.items()}
    for name, rows in results.items():
        print(f"{name:18} {counts[name]:7} {walls[name]:8.2f} {walls[name] / walls['ffmpeg']:10.2f} "
              f"{statistics.median(r[1] for r in rows):8.2f} "
              f"{statistics.median(r[2] for r in rows):6.0f}")
    share = walls["slowmo"] / walls["ffmpeg"]
    figures.add(f"8 s at 240 fps to 30 fps, {sampling}", [run[0] for run in results["slowmo"]], "s", {
        name: [run[0] for run in rows] for name, rows in results.items() if name != "slowmo"},
        f"<= {GOAL} ffmpeg" if sampling == "hold" else None,
        share <= GOAL if sampling == "hold" else None)
    if len(set(counts.values())) != 1:
        sys.exit("the files differ in their number of frames")
    print(f"slowmo takes {share:.2f} of ffmpeg's time; goal: at most {GOAL}")
    if sampling == "hold" and share > GOAL:
        sys.exit(1)


main()
