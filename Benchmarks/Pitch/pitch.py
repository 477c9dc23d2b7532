#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of Benchmarks/Pitch/run.sh, printed as one table per algorithm."""
import concurrent.futures
import functools
import itertools
import sys
from fractions import Fraction

import figures
import numpy as np

import pitch_measures as measure
import pitch_signals as signals
from pitch_signals import PEERS, RATE, ours

TONES = (100, 1000, 8000)
STRETCHES = (0.5, 0.8, 2, 4, 8)
SNAPPED = (0.5, 0.8, 1.25, 1.5, 2)
# The stretches that are measured; all without the argument "short".
CHOSEN = {*STRETCHES, *SNAPPED}
MISSES = []


@functools.cache
def signal(name):
    if name == "clicks":
        return signals.clicks()[0]
    if name.startswith("tone"):
        return signals.sine(int(name[4:]), 3)
    if name == "phases":
        return np.stack([signals.sine(441, 3), signals.sine(441, 3, phase=np.pi / 3)], 1)
    if name == "long music":
        return np.tile(signal("music"), (4, 1))
    if name == "equal":
        return np.repeat(signal("music")[:, :1], 2, 1)
    if name == "surround":
        # Six channels that play different parts of the music at any time.
        turns = [(channel % 2, channel // 2 * 3 * RATE // 4) for channel in range(6)]
        return np.stack([np.roll(signal("music")[:, side], turn) for side, turn in turns], 1)
    if name == "six":
        six = [signals.sine(441, 3, phase=channel * np.pi / 6) for channel in range(6)]
        return np.stack(six, 1)
    return {"sweep": signals.sweep, "speech": signals.speech, "music": signals.music}[name]()


class Maker:
    """A program that retimes audio; its outputs are cached."""

    def __init__(self, name, make):
        self.name, self.make, self.made, self.costs = name, make, {}, {}

    def output(self, name, stretch):
        if (name, stretch) not in self.made:
            self.made[name, stretch] = self.make(signal(name), stretch)
        return self.made[name, stretch][0]

    def measured(self, what, stretch):
        """One figure; None where the program cannot produce it."""
        try:
            return self.figure(what, stretch)
        except (RuntimeError, IndexError, ValueError) as error:
            if self.name == "slowmo":
                print(f"slowmo, {what} at {stretch}: {error}")
            return None

    @functools.lru_cache(maxsize=None)
    def clicks(self, stretch):
        made = self.output("clicks", stretch)[:, 0]
        return measure.bursts(made, signals.clicks()[1], stretch, RATE, signal("clicks"))

    def figure(self, what, stretch):
        kind, _, detail = what.partition(" ")
        if kind == "length":
            name = detail or "speech"
            source = signal(name)
            # Half a sample is rounded away from zero.
            return abs(len(self.output(name, stretch)) - int(len(source) * stretch + 0.5))
        if kind in ("cents", "SINAD"):
            made = self.output("tone" + detail, stretch)[:, 0]
            return measure.tone(made, int(detail), RATE)[kind == "SINAD"]
        if kind == "sweep":
            made = self.output("sweep", stretch)[:, 0]
            return measure.sweep_cents(made, stretch, RATE, signals.sweep_frequency)
        if kind == "click":
            return self.clicks(stretch)[detail]
        if kind == "spectrum":
            source, made = signal(detail), self.output(detail, stretch)
            source = source.reshape(len(source), -1).mean(1)
            return measure.convergence(made.mean(1), source, stretch)
        if kind == "correlation":
            before = measure.correlation(signal("music"))
            return abs(measure.correlation(self.output("music", stretch)) - before)
        if kind == "phase":
            off = measure.phase_between(self.output("phases", stretch), 441, RATE) - 60
            return abs((off + 180) % 360 - 180)
        if kind == "six":
            made = self.output("six", stretch)
            pairs = [measure.phase_between(made[:, [0, channel]], 441, RATE) - 30 * channel
                     for channel in range(1, 6)]
            return max(abs((off + 180) % 360 - 180) for off in pairs)
        if kind == "side":
            return measure.side(self.output("equal", stretch))
        if kind in ("cost", "wall"):
            if stretch not in self.costs:
                raise ValueError("no costs")
            return getattr(self.costs[stretch], "processor" if kind == "cost" else "wall")
        raise KeyError(what)


def take_costs(makers, stretch):
    """Measures milliseconds per second of output, without the start time of the program.

    The cost is the difference between a long and a short signal. The programs run in turn, because
    other load varies. The minimum of three runs counts, or of five where a run takes less than a
    second."""
    least = {}

    def run(maker, turn):
        for name in ("long music", "music"):
            before = least.get((maker, name))
            if turn > 2 and before.processor >= 1:
                continue
            cost = maker.make(signal(name), stretch)[1]
            least[maker, name] = signals.Cost(*map(min, zip(cost, before or cost)))

    able = list(makers)
    for turn in range(5):
        for maker in list(able):
            try:
                run(maker, turn)
            except RuntimeError as error:
                print(f"{maker.name}, cost at {stretch}: {error}")
                able.remove(maker)
    seconds = (len(signal("long music")) - len(signal("music"))) * stretch / RATE
    for maker in able:
        maker.costs[stretch] = signals.Cost(*(
            (long - short) / seconds * 1000
            for long, short in zip(least[maker, "long music"], least[maker, "music"])))


# Columns: measure, stretches, required limit, goal. A single limit applies to all stretches; a
# string is relative to rubberband -3. Only for SINAD is more better. The R3 engine of Rubber Band
# reaches 21 to 30 dB for a tone near 1 kHz, depending on its position between spectral lines (48
# kHz, stretch 8: 28 at 1000 Hz, 21 at 1088, 30 at 1100). "25|-1" means 25, or 1 less than
# rubberband -3.
SPECTRAL = [
    ("length", STRETCHES, 0, None),
    ("cents 100", (0.5, 2, 8), 0.05, None), ("cents 1000", (0.5, 2, 8), 0.05, None),
    ("cents 8000", (0.5, 2, 8), 0.05, None), ("sweep", (0.5, 0.8, 2, 8), 3, None),
    ("SINAD 100", (0.5, 2, 8), 45, None), ("SINAD 1000", (0.5, 2, 8), "25|-1", None),
    ("SINAD 8000", (0.5, 2, 8), "20|-1", None), ("click lost", STRETCHES, 0, None),
    ("click offset", (0.5, 2, 4, 8), (2.5, 8, 25, 50), (2, 1.5, 4, 12)),
    ("click width", (2, 4, 8), (15, 45, 110), (2, 2, 4)), ("click echo", (2,), -10, -35),
    ("spectrum speech", STRETCHES, ("+0.9", "+1.0", "+1.1", "+1.2", "+0.8"), None),
    ("spectrum music", STRETCHES, ("+0.1", "+0.4", "-0.5", "-1.3", "-1.8"), None),
    ("spectrum surround", (0.5, 2, 4), ("+0.1", "-0.5", "-1.3"), None),
    ("correlation", STRETCHES, 0.03, None), ("phase", (2, 8), None, None),
    ("six", (2,), None, None), ("side", (2,), -100, None), ("cost", (2,), "x1.3", "x1"),
    ("wall", (2,), None, "x1"),
]
TIME_DOMAIN = [
    ("length", STRETCHES, 0, None),
    ("cents 100", (0.5, 2, 8), 1, None), ("cents 1000", (0.5, 2, 8), 0.05, None),
    ("cents 8000", (0.5, 2, 8), 0.05, None), ("sweep", (0.5, 0.8, 2, 8), 12, None),
    ("SINAD 100", (0.5, 2, 8), 40, None), ("SINAD 1000", (0.5, 2, 8), 70, None),
    ("SINAD 8000", (0.5, 2, 8), 70, None), ("click lost", STRETCHES, 0, None),
    ("click offset", (0.5, 2, 4, 8), (5, 5, None, None), None),
    ("click width", (2, 4, 8), 2, None), ("click echo", (2,), -40, None),
    ("spectrum speech", (0.5, 0.8, 2), ("+1.9", "+3.0", "+2.1"), None),
    ("spectrum music", (0.5, 0.8, 2), ("+2.1", "+0.9", "+1.5"), None),
    ("spectrum surround", (0.5, 0.8, 2), ("+2.1", "+0.9", "+1.5"), None),
    ("correlation", STRETCHES, 0.01, None), ("phase", (2, 8), 0.5, None),
    ("six", (2,), 0.5, None), ("side", (2,), -100, None), ("cost", (2,), "x0.15", None),
    ("wall", (2,), None, "x1"),
]
LOW_QUALITY = [
    ("length", SNAPPED, 0, None),
    ("cents 100", (0.5, 2), 1, None), ("cents 1000", (0.5, 2), 0.05, None),
    ("cents 8000", (0.5, 2), 0.05, None), ("sweep", (0.5, 0.8, 2), 20, None),
    ("SINAD 100", (0.5, 2), 70, None), ("SINAD 1000", (0.5, 2), 70, None),
    ("SINAD 8000", (0.5, 2), 70, None), ("click lost", SNAPPED, None, None),
    ("click offset", (0.5, 2), 20, None), ("click width", (1.25, 1.5), 2, None),
    ("spectrum speech", (0.5, 0.8, 2), ("+6.4", "+3.0", "+6.1"), None),
    ("spectrum music", (0.5, 0.8, 2), ("+5.6", "+1.9", "+3.0"), None),
    ("spectrum surround", (0.5, 0.8, 2), ("+5.6", "+1.9", "+3.0"), None),
    ("correlation", SNAPPED, 0.01, None), ("phase", (2,), 0.5, None),
    ("six", (2,), 0.5, None), ("side", (2,), -100, None), ("cost", (2,), "x0.03", None),
    ("wall", (2,), None, "x1"),
]


def limit(value, reference):
    """A limit as a number; a string adds to or multiplies the figure of rubberband -3."""
    if not isinstance(value, str):
        return value
    if reference is None:
        return None
    if "|" in value:
        fixed, distance = map(float, value.split("|"))
        return min(fixed, reference + distance)
    return reference * float(value[1:]) if value[0] == "x" else reference + float(value)


def shown_limit(value, asked):
    """A limit as text, with a ~ where it is relative to rubberband -3."""
    fixed = isinstance(asked, str) and "|" in asked and value == float(asked.split("|")[0])
    return ("~" if isinstance(asked, str) and value is not None and not fixed else "") + shown(value)


def shown(value):
    return "-" if value is None else f"{value:.3g}" if abs(value) < 99.5 else f"{value:.0f}"


def miss(what):
    MISSES.append(what)
    return "MISSED"


def table(mine, algorithm, rows, peers):
    print(f"\n{algorithm}   (length in samples, click in ms, cost and wall in ms of CPU and clock a second "
          "of output;\n~ is beside rubberband -3 in this run, as it depends on the signal; < is a peer that does "
          "better)")
    print(f"{'':16}{'stretch':>8}{'must':>8}{'goal':>8}{'slowmo':>9} {'':7}"
          + "".join(f"{name:>15}" for name in PEERS))
    for what, stretches, must, goal in rows:
        for index, stretch in enumerate(stretches):
            if stretch not in CHOSEN:
                continue
            others = [peer.measured(what, stretch) for peer in peers]
            # Only for SINAD is a higher figure better.
            sign = -1 if what.startswith("SINAD") else 1
            asked = [value[index] if isinstance(value, tuple) else value for value in (must, goal)]
            must_be, goal_is = (limit(value, others[0]) for value in asked)
            figure = mine.measured(what, stretch)
            if must_be is not None and (figure is None or sign * figure > sign * must_be):
                verdict = miss(f"{algorithm}: {what} at {stretch}")
            elif goal_is is not None:
                verdict = "goal" if sign * figure <= sign * goal_is else "must"
            else:
                verdict = "" if must_be is None else "must"
            marks = [" " if other is None or figure is None or sign * other >= sign * figure
                     else "<" for other in others]
            limits = [shown_limit(*each) for each in zip((must_be, goal_is), asked)]
            print(f"{what:16}{stretch:>8}{limits[0]:>8}{limits[1]:>8}"
                  f"{shown(figure):>9} {verdict:7}"
                  + "".join(f"{shown(o):>14}{mark}" for o, mark in zip(others, marks)))
            if figure is not None:
                figures.add(
                    f"{algorithm}: {what} at {stretch}", figure, "",
                    {name: other for name, other in zip(PEERS, others) if other is not None},
                    None if must_be is None else shown(must_be),
                    None if must_be is None else verdict != "MISSED")


def lengths():
    print("\nlengths and speed 1, over all algorithms, 1/32 to 32, at 44.1, 48 and 96 kHz, of 1, 2 and 6 "
          "channels")
    random = np.random.default_rng(3)
    wrong = count = 0
    channels = itertools.cycle((1, 2, 6))
    for algorithm in ("spectral", "time-domain", "varispeed", "low-quality"):
        fractions = ["1/32", "1/7", "1/2", "2/3", "4/5", "1", "5/4", "3/2", "2", "9", "32"]
        if algorithm == "low-quality":
            fractions = ["1/2", "2/3", "4/5", "1", "5/4", "3/2", "2"]
        for rate in (44_100, 48_000, 96_000):
            for size in (1, 10, 100, 1000, 30_011):
                for fraction in fractions if size < 30_000 else ("1", "2/3"):
                    noise = random.uniform(-0.5, 0.5, (size, next(channels))).astype(np.float32)
                    speed = Fraction(fraction)
                    try:
                        made, _ = signals.retime(algorithm, noise, [(0, size, speed)], rate)
                    except RuntimeError:
                        made = noise[:0]
                    exact = Fraction(size) / speed
                    good = len(made) == int(exact + Fraction(1, 2))
                    if speed == 1:
                        good = good and np.array_equal(made, noise)
                    count, wrong = count + 1, wrong + (not good)
    print(f"{wrong} of {count} wrong" + (" " + miss("lengths") if wrong else ""))


def joined(algorithm, source, is_cut=False):
    """Five speeds in a row, and the positions where they meet."""
    count = RATE
    legs = [(index * count, count, speed) for index, speed in
            enumerate([Fraction(1), Fraction(1, 2), Fraction(2), Fraction(1, 2), Fraction(1)])]
    if algorithm != "low-quality":
        legs[1] = (count, count, Fraction(1, 8))
    places = np.cumsum([int(count / speed) for _, _, speed in legs])[:-1]
    if is_cut:
        parts = [signals.retime(algorithm, source[start:start + size], [(0, size, speed)])[0]
                 for start, size, speed in legs]
        return np.concatenate(parts)[:, 0], places
    return signals.retime(algorithm, source, legs)[0][:, 0], places


def joins():
    print("\njoins of speeds 1, 1/8, 2, 1/2, 1 (low-quality: 1/2): above 4 kHz near them and away, roughness, dip")
    chord = sum(signals.sine(pitch, 5) for pitch in (220, 277.2, 329.6, 440, 554.4, 659.3)) / 6
    for name, source, frequency in (("sine", signals.sine(440, 5), 440), ("chord", chord, 659.3)):
        for algorithm in ("spectral", "time-domain", "low-quality"):
            for is_cut in (False, True):
                try:
                    found = measure.joins(*joined(algorithm, source, is_cut), frequency, RATE)
                except RuntimeError as error:
                    print(f"{name:6} {algorithm:12} {miss('joins: ' + algorithm)} {error}")
                    continue
                quiet = found["high"] <= -90
                verdict = ""
                if is_cut != quiet:
                    verdict = "fails, as it must" if is_cut else "must"
                elif not is_cut or name == "sine":
                    verdict = miss(f"joins: {algorithm} {name}{' cut' if is_cut else ''}")
                print(f"{name:6} {algorithm:12} {'hard cut' if is_cut else 'slowmo':9}"
                      f"{found['high']:8.1f} dB {found['away']:8.1f} dB {found['rough']:8.2f}"
                      f"{found['dip']:8.2f} dB  {verdict}")


def varispeed_figures(make, stretch):
    """The SNR against the exact result, the gain at 0.9 of the band and above it, and the delay."""
    seconds = max(0.6, 1.5 / stretch)
    # The number of samples is chosen so that the output also has a whole number.
    count = int(seconds * RATE) // stretch.denominator * stretch.denominator
    stretch = float(stretch)

    def made_of(frequency):
        return make(signals.sine(frequency, seconds)[:count], stretch)[0][:, 0]

    worst, delays = 999.0, []
    for part in (0.04, 0.3, 0.6, 0.8):
        # A source frequency, limited by the band of the output.
        frequency = part * RATE / 2 * min(1, stretch)
        made = made_of(frequency)
        slow = frequency / stretch
        time = np.arange(len(made))
        exact = 0.5 * np.sin(2 * np.pi * slow / RATE * time)
        middle = slice(len(made) // 4, len(made) * 3 // 4)
        worst = min(worst, decibels(exact[middle], made[middle]))
        got, _ = measure.fit(made[middle], slow, RATE)
        want, _ = measure.fit(exact[middle], slow, RATE)
        delays.append(abs(np.angle(want / got)) / (2 * np.pi * slow / RATE))

    def gain(part):
        made = made_of(part * RATE / 2 * min(1, stretch))
        middle = made[len(made) // 4:len(made) * 3 // 4]
        return measure.decibels(np.std(middle) * np.sqrt(2) / 0.5)
    return worst, gain(0.9), gain(1.1) if stretch < 1 else None, delays[0]


def decibels(exact, made):
    return -measure.decibels(np.std(made - exact) / np.std(exact))


def varispeed():
    print("\nvarispeed: SNR against the exact sine, gain at 0.9 of the band, alias, delay (samples)")
    makers = {"slowmo": ours("varispeed"), "sox speed": signals.SOX_SPEED,
              "ffmpeg as it is": signals.FFMPEG_SPEED, "soundstretch": signals.SOUNDSTRETCH_RATE}
    for stretch in (Fraction(1, 32), Fraction(1, 2), Fraction(4, 5), Fraction(16755, 16001),
                    Fraction(2), Fraction(8), Fraction(32)):
        for name, make in makers.items():
            try:
                snr, gain, alias, delay = varispeed_figures(make, stretch)
            except (RuntimeError, IndexError, ValueError, np.linalg.LinAlgError) as error:
                print(f"{float(stretch):9.5g} {name:16} cannot: {str(error)[:60]}")
                continue
            good = (snr >= 110 and abs(gain) <= 1 and delay <= 0.01
                    and (alias is None or alias <= -80))
            verdict = "must" if good else ""
            if name == "slowmo" and not good:
                verdict = miss(f"varispeed at {stretch}")
            if name in ("ffmpeg as it is", "soundstretch") and stretch == Fraction(1, 2):
                verdict = miss(f"control: {name} passes") if good else "fails, as it must"
            print(f"{float(stretch):9.5g} {name:16}{snr:8.1f} dB{gain:8.2f} dB"
                  f"{shown(alias):>8} dB{delay:9.4f}  {verdict}")
    print("ms a second of output at 2: processor, wall")
    timed = [Maker(name, make) for name, make in makers.items()]
    take_costs(timed, 2)
    for maker in timed:
        print(f"{maker.name:26}{maker.costs[2].processor:8.2f}{maker.costs[2].wall:8.2f}")


def parallel(algorithms):
    """Compares separate pieces with one job and with two, without the start time of the program."""
    print("\nfour pieces of music at 1/2, and more where that takes no second: wall seconds one at a time and two, "
          "how much faster,\nand processors at work (1.7 times as fast is the goal)")
    music = np.tile(signal("music"), (4, 1))
    for algorithm in algorithms:
        times = 1 if algorithm == "spectral" else 20

        def run(jobs, count):
            # The order is shuffled, so that each leg is a separate piece.
            legs = [(place * 8 * RATE, count, Fraction(1, 2)) for place in (3, 1, 2, 0)] * times
            return signals.cost_of(f"{algorithm}:{jobs}", music, legs)
        # The minimum of three runs counts. The runs take turns, because other load varies. The
        # start time of the program is subtracted.
        short, whole = (
            [min(runs) for runs in zip(*([run(jobs, count) for jobs in (1, 2)] for _ in range(3)))]
            for count in (RATE // 10, 8 * RATE))
        walls = [long[0] - start[0] for long, start in zip(whole, short)]
        processors = (whole[1][1] - short[1][1]) / walls[1]
        gain = walls[0] / walls[1]
        print(f"{algorithm:12}{walls[0]:8.2f}{walls[1]:8.2f}{gain:8.2f}{processors:8.2f}"
              f"{'  goal' if gain >= 1.7 else ''}")
        figures.add(f"{algorithm}: two jobs at a time, times as fast as one", gain, "", {}, ">= 1.7", gain >= 1.7)
    # What the machine has to give: two programs that share nothing, beside one.
    alone, both = (min(signals.wall_of_processes(count, signal("music"), 2) for _ in range(3))
                   for count in (1, 2))
    print(f"{'rubberband -3, two processes':31}{2 * alone / both:5.2f}")
    figures.add("two processes of rubberband -3 at a time, times as fast as one", 2 * alone / both, "")


def counted_instructions(sources):
    """The executed instructions of spectral and of rubberband -3, for a shorter and a longer part of
    each signal."""
    return {name: [signals.instructions(source[:seconds * RATE], 2) for seconds in (1, 3)]
            for name, source in sources.items()}


def instructions(counts):
    """Compares the executed instructions of spectral with those of rubberband -3: a longer signal
    minus a shorter one, without the start of the program."""
    print("\nspectral at 2: instructions for each second of output, in millions, beside rubberband -3")
    for name, (short, long) in counts.items():
        mine, peer = ((after - before) / 4 / 1e6 for before, after in zip(short, long))
        print(f"{name:12}{mine:10.1f}{peer:10.1f}{mine / peer:10.3f}"
              f"{'  goal' if mine <= peer else ''}")
        figures.add(f"spectral at 2: instructions a second of output, {name}", mine, "million",
                    {"rubberband -3": peer}, "x1", mine <= peer)


def controls():
    print("\ncontrols: what must not pass")
    source = signal("speech")
    late = Maker("20 ms late", lambda samples, stretch: (
        np.roll(ours("spectral")(samples, stretch)[0], RATE // 50, 0), 0))
    fast = Maker("rubberband -2", signals.RUBBERBAND_2)
    peers = {name: Maker(name, make) for name, make in PEERS.items()}
    reference = peers["rubberband -3"].figure("spectrum speech", 2)
    for maker, what, stretch, must in (
            (peers["atempo"], "length", 2, 0),
            (peers["soundstretch"], "spectrum speech", 2, reference + 1.1),
            (peers["sox tempo"], "sweep", 2, 12), (fast, "sweep", 2, 3),
            (fast, "click offset", 2, 8), (fast, "spectrum speech", 2, reference + 1.1),
            (peers["rubberband -3"], "correlation", 8, 0.03),
            (late, "click offset", 2, 8), (late, "spectrum speech", 2, reference + 1.1)):
        figure = maker.figure(what, stretch)
        verdict = "fails, as it must" if figure > must else miss(f"control: {maker.name} passes")
        print(f"{maker.name:16}{what:18}{stretch:>4}{shown(must):>9}{shown(figure):>9}  {verdict}")
    assert len(source) > RATE


def main():
    parts = sys.argv[1:] or ["spectral", "time-domain", "low-quality", "varispeed", "lengths",
                             "joins", "parallel", "instructions", "controls"]
    is_short = parts == ["short"]
    if is_short:
        CHOSEN.intersection_update((2,))
        parts = ["spectral", "time-domain", "low-quality", "parallel", "instructions"]
    tables = {"spectral": SPECTRAL, "time-domain": TIME_DOMAIN, "low-quality": LOW_QUALITY}
    threaded = ["spectral", "time-domain"] + ([] if is_short else ["varispeed", "low-quality"])
    others = {"varispeed": varispeed, "lengths": lengths, "joins": joins, "controls": controls}
    peers = [Maker(name, make) for name, make in PEERS.items()]
    mine = {part: Maker("slowmo", ours(part)) for part in parts if part in tables}
    if mine:
        take_costs([*mine.values(), *peers], 2)
    if "parallel" in parts:
        parallel(threaded)
    # Neither the counts nor the other figures of the tables depend on what runs beside them.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        if "instructions" in parts:
            sources = {name: signal(name) for name in ("music", "speech")}
            counts = pool.submit(counted_instructions, sources)
        for part in mine:
            table(mine[part], part, tables[part], peers)
        if "instructions" in parts:
            instructions(counts.result())
    for part, measured in others.items():
        if part in parts:
            measured()
    print("\n" + (f"{len(MISSES)} missed:\n  " + "\n  ".join(MISSES) if MISSES
                  else "every limit is met, and every control fails"))
    sys.exit(1 if MISSES else 0)


main()
