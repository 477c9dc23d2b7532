#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes gray frames of 1280x720 with machine-readable codes, and a list of their positions.

zint draws the symbols; it shares no code with the readers that are judged. Each of 14 types is shown
6 times in each of 11 conditions: clean, small, tiny, rotation, tilt, motion, defocus, noise,
contrast, shade and all of them together. 12 frames have six codes, which do not overlap, and 60
frames have none: textures, stripes and lines of glyphs. A module of bars and PDF417
has 3 pixels, a module of other symbols 5; small ones have 1.5 and 2, tiny ones 1.1 and 1.5.

    code-frames.py DIRECTORY               996 frames: 00000.pgm and so on, and labels.json
    code-frames.py DIRECTORY --sample N    N of them, a pseudo-random choice that never changes
    code-frames.py DIRECTORY --noise N     the same frames with other noise
    code-frames.py DIRECTORY --six         one frame with six codes
    code-frames.py DIRECTORY --only TYPE TEXT    one clean frame of a code, for tests
    code-frames.py DIRECTORY --clip N LENGTH     the frames of a clip: N codes in turn, of eight types,
                                                 each in LENGTH frames of 640x360. They are rotated by
                                                 up to 15 degrees, and each has more blur and noise than
                                                 the one before. --large: of 1280x720

labels.json is a list of {file, condition, codes: [{type, text, corners}]}; corners are in pixels, in
the order upper left, upper right, lower right, lower left of the symbol itself.
"""
import argparse
import json
import pathlib
import random
import string
import subprocess
import sys

import numpy as np

WIDTH, HEIGHT = 1280, 720
# The number that zint gives to the type, and whether it is a linear code.
TYPES = {
    "upca": (34, True), "upce": (37, True), "ean8": (13, True), "ean13": (13, True),
    "code39": (8, True), "code93": (25, True), "code128": (20, True), "itf": (3, True),
    "codabar": (18, True), "qr": (58, False), "microqr": (97, False), "aztec": (92, False),
    "pdf417": (55, False), "datamatrix": (71, False),
}
CONDITIONS = ["clean", "small", "tiny", "rotation", "tilt", "motion", "defocus", "noise", "contrast",
              "shade", "all"]
REPEATS = 6
BAR_HEIGHT = 40


def check_digit(digits):
    """The check digit of a retail code."""
    total = sum(int(d) * (3 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits)))
    return str(-total % 10)


def expanded(upce):
    """The 11 digits of UPC-A for the 7 of UPC-E."""
    system, d = upce[0], upce[1:]
    if d[5] in "012":
        return system + d[:2] + d[5] + "0000" + d[2:5]
    if d[5] == "3":
        return system + d[:3] + "00000" + d[3:5]
    if d[5] == "4":
        return system + d[:4] + "00000" + d[4]
    return system + d[:5] + "0000" + d[5]


def content(kind, rng):
    """The input of zint, and the text that a reader must return."""
    digits = lambda n: "".join(rng.choice(string.digits) for _ in range(n))
    letters = lambda n: "".join(rng.choice(string.ascii_uppercase + string.digits) for _ in range(n))
    if kind == "upca":
        data = digits(11)
        return data, data + check_digit(data)
    if kind == "upce":
        # Zeros before the last digit have another spelling.
        data = "0" + "".join(rng.choice("3456789") for _ in range(5)) + digits(1)
        return data, data + check_digit(expanded(data))
    if kind == "ean8":
        data = digits(7)
        return data, data + check_digit(data)
    if kind == "ean13":
        data = rng.choice("123456789") + digits(11)
        return data, data + check_digit(data)
    if kind == "itf":
        data = digits(rng.choice([8, 10, 12]))
        return data, data
    if kind == "codabar":
        data = rng.choice("ABCD") + digits(rng.randint(6, 8)) + rng.choice("ABCD")
        return data, data
    if kind == "microqr":
        data = letters(rng.randint(5, 9))
        return data, data
    if kind in ("code39", "code93"):
        data = letters(rng.randint(5, 7))
        return data, data
    data = letters(rng.randint(6, 10) if kind == "code128" else rng.randint(8, 24))
    return data, data


def symbol(kind, data, *extra):
    """The modules of a symbol: an array in which 1 is dark."""
    number, is_linear = TYPES[kind]
    arguments = ["zint", "-b", str(number), "-d", data, "--scale=0.5", "--filetype=BMP", "--direct",
                 "--notext", "--whitesp=0", *extra]
    if kind == "datamatrix":
        arguments.append("--square")
    bmp = subprocess.run(arguments, check=True, capture_output=True).stdout
    start = int.from_bytes(bmp[10:14], "little")
    width, height = (int.from_bytes(bmp[i:i + 4], "little") for i in (18, 22))
    assert int.from_bytes(bmp[28:30], "little") == 1, "one bit a pixel"
    stride = (width + 31) // 32 * 4
    rows = np.frombuffer(bmp, np.uint8, stride * height, start).reshape(height, stride)[::-1]
    bits = np.unpackbits(rows, axis=1)[:, :width]
    # The first color of the palette is the color of zero bits.
    dark = bits if bmp[start - 8] else 1 - bits
    if is_linear:
        row = dark[height // 3]
        used = np.flatnonzero(row)
        dark = np.repeat(row[used[0]:used[-1] + 1][None, :], BAR_HEIGHT, axis=0)
    else:
        rows_used, columns_used = np.flatnonzero(dark.any(1)), np.flatnonzero(dark.any(0))
        dark = dark[rows_used[0]:rows_used[-1] + 1, columns_used[0]:columns_used[-1] + 1]
    return dark.astype(np.float32)


def homography(source, target):
    """The projection that maps four points to four others."""
    rows, values = [], []
    for (x, y), (u, v) in zip(source, target):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.append(np.linalg.solve(np.array(rows, float), np.array(values, float)), 1).reshape(3, 3)


def project(matrix, points):
    mapped = np.c_[np.array(points, float), np.ones(len(points))] @ matrix.T
    return mapped[:, :2] / mapped[:, 2:]


def paint(frame, dark, center, scale, angle, tilt, low, high):
    """Draws a symbol on its card, and returns the corners of the symbol."""
    rows, columns = dark.shape
    quiet = 10 if rows == BAR_HEIGHT and columns > 40 else 4
    # A card that is tilted about its vertical or horizontal axis, seen from six widths away.
    local = np.array([[-columns / 2, -rows / 2], [columns / 2, -rows / 2], [columns / 2, rows / 2],
                      [-columns / 2, rows / 2]]) * scale
    distance = 6 * max(columns, rows) * scale
    tilt_x, tilt_y = tilt
    depth = local[:, 0] * np.sin(tilt_x) + local[:, 1] * np.sin(tilt_y)
    flat = np.c_[local[:, 0] * np.cos(tilt_x), local[:, 1] * np.cos(tilt_y)]
    flat *= (distance / (distance + depth))[:, None]
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = flat @ rotation.T + np.array(center)
    modules = [(0, 0), (columns, 0), (columns, rows), (0, rows)]
    to_image = homography(modules, corners)
    to_modules = np.linalg.inv(to_image)
    card = project(to_image, [(-quiet, -quiet), (columns + quiet, -quiet),
                              (columns + quiet, rows + quiet), (-quiet, rows + quiet)])
    left, top = np.floor(card.min(0)).astype(int) - 1
    right, bottom = np.ceil(card.max(0)).astype(int) + 1
    left, top, right, bottom = max(0, left), max(0, top), min(WIDTH, right), min(HEIGHT, bottom)
    count = 4
    steps = (np.arange(count) + 0.5) / count
    total = np.zeros((bottom - top, right - left), np.float32)
    before = frame[top:bottom, left:right]
    for dy in steps:
        for dx in steps:
            x, y = np.meshgrid(np.arange(left, right) + dx, np.arange(top, bottom) + dy)
            w = to_modules[2, 0] * x + to_modules[2, 1] * y + to_modules[2, 2]
            u = (to_modules[0, 0] * x + to_modules[0, 1] * y + to_modules[0, 2]) / w
            v = (to_modules[1, 0] * x + to_modules[1, 1] * y + to_modules[1, 2]) / w
            column, row = np.floor(u).astype(int), np.floor(v).astype(int)
            inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
            value = np.where(
                inside & (dark[row.clip(0, rows - 1), column.clip(0, columns - 1)] > 0), low, high)
            on_card = (u >= -quiet) & (u < columns + quiet) & (v >= -quiet) & (v < rows + quiet)
            total += np.where(on_card, value, before)
    frame[top:bottom, left:right] = total / count**2
    return corners


def card_size(dark, scale):
    """The width and height of a card that is not tilted."""
    rows, columns = dark.shape
    quiet = 10 if rows == BAR_HEIGHT and columns > 40 else 4
    return (columns + 2 * quiet) * scale, (rows + 2 * quiet) * scale


def smooth(frame, sigma):
    """A Gaussian blur with a standard deviation in pixels."""
    radius = int(np.ceil(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(frame, ((radius, radius), (0, 0)), "edge")
    frame = sum(k * padded[i:i + frame.shape[0]] for i, k in enumerate(kernel))
    padded = np.pad(frame, ((0, 0), (radius, radius)), "edge")
    return sum(k * padded[:, i:i + frame.shape[1]] for i, k in enumerate(kernel)).astype(np.float32)


def shifted(frame, length, angle):
    """A motion blur over a distance in pixels, in a direction."""
    steps = max(2, int(np.ceil(length)) + 1)
    total = np.zeros_like(frame)
    for position in np.linspace(-length / 2, length / 2, steps):
        dx, dy = position * np.cos(angle), position * np.sin(angle)
        x, y = int(np.floor(dx)), int(np.floor(dy))
        fx, fy = dx - x, dy - y
        for (ox, oy, weight) in [(x, y, (1 - fx) * (1 - fy)), (x + 1, y, fx * (1 - fy)),
                                 (x, y + 1, (1 - fx) * fy), (x + 1, y + 1, fx * fy)]:
            total += weight * np.roll(frame, (oy, ox), (0, 1))
    return total / steps


class Backgrounds:
    """Images with the spectrum of photos, and shapes with edges in them."""

    def __init__(self, seed):
        self.seed = seed
        self.made = {}

    def make(self, number):
        noise = np.random.default_rng(self.seed + number)
        fy, fx = np.fft.fftfreq(HEIGHT)[:, None], np.fft.rfftfreq(WIDTH)[None, :]
        amplitude = 1 / np.maximum(np.hypot(fx, fy), 1 / WIDTH) ** 1.1
        phase = noise.uniform(0, 2 * np.pi, amplitude.shape)
        image = np.fft.irfft2(amplitude * np.exp(1j * phase), (HEIGHT, WIDTH)).astype(np.float32)
        image = (image - image.mean()) / image.std() * 35 + 120
        y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
        for _ in range(14):
            cx, cy = noise.uniform(0, WIDTH), noise.uniform(0, HEIGHT)
            a, b = noise.uniform(20, 220, 2)
            level = noise.uniform(-50, 50)
            if noise.random() < 0.5:
                image[np.hypot((x - cx) / a, (y - cy) / b) < 1] += level
            else:
                image[(abs(x - cx) < a) & (abs(y - cy) < b)] += level
        return image.clip(5, 250)

    def next(self, rng):
        number = rng.randrange(8)
        if number not in self.made:
            self.made[number] = self.make(number)
        image = self.made[number]
        image = np.roll(image, (rng.randrange(HEIGHT), rng.randrange(WIDTH)), (0, 1))
        return (image[:, ::-1] if rng.random() < 0.5 else image).copy()


def without_codes(number, rng, noise, backgrounds):
    """A frame without a code: texture, stripes or lines of glyphs."""
    frame = backgrounds.next(rng)
    if number % 3 == 1:
        widths = noise.integers(2, 14, 400)
        levels = np.where(np.arange(400) % 2 == 0, 40, 210)
        line = np.repeat(levels, widths)[:WIDTH]
        angle = rng.choice([0, 0.1, 0.5])
        x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
        frame = line[((x + angle * y).astype(int)) % len(line)].astype(np.float32)
    elif number % 3 == 2:
        frame = np.full((HEIGHT, WIDTH), 225, np.float32)
        size = rng.choice([2, 3, 4])
        for top in range(20, HEIGHT - 12 * size, 12 * size):
            for left in range(20, WIDTH - 7 * size, 7 * size):
                if rng.random() < 0.85:
                    glyph = noise.integers(0, 2, (7, 5))
                    frame[top:top + 7 * size, left:left + 5 * size] = np.where(
                        np.kron(glyph, np.ones((size, size))), 30, 225)
        frame = smooth(frame, 0.6)
    return frame + noise.normal(0, 2, frame.shape)


def module_size(kind, condition):
    is_fine = TYPES[kind][1] or kind == "pdf417"
    return {"small": (1.5, 2.0), "tiny": (1.1, 1.5)}.get(condition, (3, 5))[0 if is_fine else 1]


def single(kind, condition, rng, noise, backgrounds):
    """A frame with one code in a condition."""
    data, text = content(kind, rng)
    dark = symbol(kind, data)
    scale = module_size(kind, condition)
    angle, tilt, low, high = np.radians(rng.uniform(-3, 3)), (0.0, 0.0), 35, 215
    if condition in ("rotation", "all"):
        angle = np.radians(rng.uniform(0, 360))
    if condition in ("tilt", "all"):
        degrees = 45 if condition == "tilt" else 20
        tilt = [(np.radians(degrees), 0.0), (0.0, np.radians(degrees)),
                (-np.radians(degrees), 0.0)][rng.randrange(3)]
    if condition == "contrast":
        low = rng.uniform(90, 120)
        high = low + 40
    if condition == "all":
        low, high = 70, 190
    frame = backgrounds.next(rng)
    reach = np.hypot(*card_size(dark, scale)) / 2 + 8
    reach_x, reach_y = min(reach, WIDTH / 2 - 1), min(reach, HEIGHT / 2 - 1)
    center = (rng.uniform(reach_x, WIDTH - reach_x), rng.uniform(reach_y, HEIGHT - reach_y))
    corners = paint(frame, dark, center, scale, angle, tilt, low, high)
    if condition == "shade":
        x = np.linspace(0, 1, WIDTH, dtype=np.float32)[None, :]
        frame = frame * (0.25 + 0.75 * (x if rng.random() < 0.5 else 1 - x))
    if condition in ("motion", "all"):
        frame = shifted(frame, 5 if condition == "motion" else 2.5, rng.uniform(0, np.pi))
    if condition in ("defocus", "all"):
        frame = smooth(frame, 1.9 if condition == "defocus" else 0.8)
    sigma = {"noise": 25, "contrast": 4, "all": 8}.get(condition, 2)
    return frame + noise.normal(0, sigma, frame.shape), [
        {"type": kind, "text": text, "corners": corners.round(2).tolist()}]


def six(number, rng, noise, backgrounds):
    """A frame with six codes, one in each cell of a grid."""
    frame = backgrounds.next(rng)
    kinds = list(TYPES)
    labels = []
    for cell in range(6):
        kind = kinds[(number * 6 + cell) % len(kinds)]
        data, text = content(kind, rng)
        dark = symbol(kind, data)
        width, height = card_size(dark, 1)
        # The card fits its cell with some space, so that no code covers another.
        scale = min(module_size(kind, "clean"), 400 / width, 320 / height)
        column, row = cell % 3, cell // 3
        center = ((column + 0.5) * WIDTH / 3, (row + 0.5) * HEIGHT / 2)
        corners = paint(
            frame, dark, center, scale, np.radians(rng.uniform(-2, 2)), (0.0, 0.0), 35, 215)
        labels.append({"type": kind, "text": text, "corners": corners.round(2).tolist()})
    return frame + noise.normal(0, 2, frame.shape), labels


CLIP_TYPES = ["qr", "ean13", "datamatrix", "code128", "aztec", "code39", "pdf417", "itf"]


def clip(directory, count, length, is_large, backgrounds):
    """The frames of codes that are shown in turn, and their labels."""
    rng, noise = random.Random(5), np.random.default_rng(5)
    width, height = (WIDTH, HEIGHT) if is_large else (WIDTH // 2, HEIGHT // 2)
    labels = []
    for number in range(count):
        kind = CLIP_TYPES[number % len(CLIP_TYPES)]
        data, text = content(kind, rng)
        dark = symbol(kind, data)
        symbol_width, symbol_height = card_size(dark, 1)
        scale = min(module_size(kind, "clean"), 560 / symbol_width, 300 / symbol_height)
        angle, degree = np.radians(rng.uniform(-15, 15)), number / max(1, count - 1)
        scene = backgrounds.next(rng)
        for step in range(length):
            frame = scene.copy()
            center = (width / 2 + 3 * (step - length // 2), height / 2 + step - length // 2)
            corners = paint(frame, dark, center, scale, angle, (0.0, 0.0), 35, 215)
            frame = smooth(frame[:height, :width], 0.3 + 1.3 * degree)
            name = f"{len(labels):05}.pgm"
            write(directory, name, frame + noise.normal(0, 1 + 15 * degree, frame.shape))
            labels.append({"file": name, "condition": "clip", "codes": [
                {"type": kind, "text": text, "corners": corners.round(2).tolist()}]})
    return labels


def write(directory, name, frame):
    pixels = frame.round().clip(0, 255).astype(np.uint8)
    header = b"P5\n%d %d\n255\n" % pixels.shape[::-1]
    (directory / name).write_bytes(header + pixels.tobytes())


def plan():
    """All frames, each with its condition and the parameters of the condition."""
    frames = [(condition, kind) for condition in CONDITIONS for _ in range(REPEATS) for kind in TYPES]
    return frames + [("six", n) for n in range(12)] + [("none", n) for n in range(60)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--noise", type=int, default=0)
    parser.add_argument("--only", nargs=2)
    parser.add_argument("--clip", nargs=2, type=int)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--six", action="store_true")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    backgrounds = Backgrounds(7)
    if options.clip:
        labels = clip(options.directory, *options.clip, options.large, backgrounds)
        (options.directory / "labels.json").write_text(json.dumps(labels))
        return 0
    if options.only:
        kind, text = options.only
        frame = backgrounds.next(random.Random(1))
        # Escape sequences of zint, such as \\x00, make bytes that no argument can have.
        dark = symbol(kind, text, "--esc", *(["--binary"] if "\\x" in text else []))
        width, height = card_size(dark, 1)
        scale = min(module_size(kind, "clean"), 1200 / width, 680 / height)
        corners = paint(frame, dark, (640, 360), scale, 0.02, (0.0, 0.0), 35, 215)
        write(options.directory, "00000.pgm", frame)
        labels = [{"file": "00000.pgm", "condition": "clean", "codes": [
            {"type": kind, "text": text, "corners": corners.round(2).tolist()}]}]
        (options.directory / "labels.json").write_text(json.dumps(labels))
        return 0
    frames = list(enumerate(plan()))
    if options.six:
        frames = [next(frame for frame in frames if frame[1][0] == "six")]
    if options.sample:
        frames = sorted(random.Random(11).sample(frames, options.sample))
    labels = []
    for number, (condition, subject) in frames:
        # Each frame has its own numbers, so that a sample has the frames of the whole set.
        rng, noise = random.Random(number), np.random.default_rng(
            number + 100_000 * options.noise)
        if condition == "none":
            frame, codes = without_codes(subject, rng, noise, backgrounds), []
        elif condition == "six":
            frame, codes = six(subject, rng, noise, backgrounds)
        else:
            frame, codes = single(subject, condition, rng, noise, backgrounds)
        name = f"{0 if options.six else number:05}.pgm"
        write(options.directory, name, frame)
        labels.append({"file": name, "condition": condition, "codes": codes})
    (options.directory / "labels.json").write_text(json.dumps(labels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
