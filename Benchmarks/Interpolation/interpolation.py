# SPDX-License-Identifier: Apache-2.0
"""Compares synthesized frames with dropped ones; see run.sh."""
import pathlib
import statistics
import sys

import figures
import numpy
from frame_measures import psnr, ssim, write_png
from interpolation_clips import EXCERPTS, FILTERS, METHODS, WORK, command, decoded, excerpt
from program_costs import measure


OUT = WORK / "out.mov"


def costs(method, kept, runs):
    """What each run of a method costs; the last one leaves its frames in OUT."""
    return [measure(list(map(str, command(method, kept, OUT)))) for _ in range(runs)]


def base_of(method):
    """The method that does the same without making frames, so that decoding and encoding can be
    subtracted."""
    if method in FILTERS:
        return "repeat"
    return "mvtools-none" if method == "mvtools" else "hold"


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    sheets = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "interpolation-sheets")
    sheets.mkdir(parents=True, exist_ok=True)
    rows, times = {}, {}
    print(f"{'excerpt':22}" + "".join(f"{method:>14}" for method in METHODS))
    for name, first in EXCERPTS:
        whole, kept, width, height = excerpt(name, first)
        truth = decoded(whole, width, height)
        bases = {base: costs(base, kept, runs) for base in dict.fromkeys(map(base_of, METHODS))}
        made = {}
        for method in METHODS:
            method_costs = costs(method, kept, runs)
            made[method] = decoded(OUT, width, height)
            # minterpolate leaves out the last frames.
            odd = [n for n in range(1, 38, 2) if n < len(made[method])]
            scores = [psnr(truth[n], made[method][n]) for n in odd]
            likeness = statistics.mean(ssim(truth[n], made[method][n]) for n in odd)
            rows[name, first, method] = (statistics.mean(scores), likeness, min(scores))
            pairs = [tuple((a - b) * 1000 / len(odd) for a, b in zip(cost[:2], base[:2]))
                     for cost, base in zip(method_costs, bases[base_of(method)])]
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
