# SPDX-License-Identifier: Apache-2.0
"""Compares frames made at a quarter or an eighth of the frame rate with dropped ones; see run.sh."""
import statistics
import subprocess
import sys

import figures
from frame_measures import psnr, ssim
from interpolation_clips import EXCERPTS, FFMPEG, WORK, command, decoded, excerpt

METHODS = ["blend", "minterpolate", "flow", "flow-fast"]


def main():
    factor = int(sys.argv[1])
    print(f"{'slower by':12}" + "".join(f"{m + ' dB':>16}{'SSIM':>8}" for m in METHODS))
    rows = {method: [] for method in METHODS}
    for name, first in EXCERPTS:
        if name == "ball":
            continue
        whole, kept, width, height = excerpt(name, first, factor)
        truth = decoded(whole, width, height)
        made = {}
        for method in METHODS:
            out = WORK / "out.mov"
            subprocess.run(list(map(str, command(method, kept, out))), check=True,
                           stdout=subprocess.DEVNULL)
            made[method] = decoded(out, width, height)
        # minterpolate leaves out the last frames.
        last = min(len(frames) for frames in made.values())
        dropped = [n for n in range(last) if n % factor]
        for method in METHODS:
            rows[method].append((
                statistics.mean(psnr(truth[n], made[method][n]) for n in dropped),
                statistics.mean(ssim(truth[n], made[method][n]) for n in dropped)))
    means = {m: [statistics.mean(r[i] for r in rows[m]) for i in (0, 1)] for m in METHODS}
    print(f"{factor:<12}" + "".join(
        f"{means[m][0]:16.2f}{means[m][1]:8.4f}" for m in METHODS), flush=True)
    gain = means["flow"][0] - means["minterpolate"][0]
    print(f"{'met' if gain >= 0.4 else 'MISSED':7} {factor} times slower: mean over "
          f"minterpolate, dB: {gain:.2f}, goal >= 0.40", flush=True)
    figures.add(f"{factor} times slower: mean PSNR", means["flow"][0], "dB", {
        method: means[method][0] for method in METHODS if method != "flow"},
        "0.40 over minterpolate", gain >= 0.4)
    sys.exit(0 if gain >= 0.4 else 1)


main()
