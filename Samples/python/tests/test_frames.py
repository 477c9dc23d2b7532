# SPDX-License-Identifier: Apache-2.0
"""Frames as arrays, and their times."""

import csv
import itertools
import math
import os
import shutil
import subprocess
import unittest
import unittest.mock
from fractions import Fraction

import numpy as np
import overcrank
from overcrank import _command, _frames
from support import DirectoryTestCase, painted_number, take


class FrameTests(DirectoryTestCase):
    def test_each_image_shows_the_number_that_its_row_states(self):
        frames = list(take().frames())
        self.assertEqual(len(frames), take().ledger.stored)
        self.assertGreater(take().ledger.lost_device, 0)
        first = frames[0].sequence
        for index, frame in enumerate(frames):
            self.assertEqual(frame.index, index)
            self.assertEqual(painted_number(frame.image), frame.sequence - first)

    def test_times_are_those_of_the_command(self):
        printed = subprocess.run(
            [_command.program(), "frames", take(), "--csv", "-"], check=True, capture_output=True,
            text=True).stdout
        rows = list(csv.DictReader(printed.splitlines()))
        frames = list(take().frames())
        self.assertEqual(len(frames), len(rows))
        for frame, row in zip(frames, rows):
            for key in row:
                self.assertEqual(int(getattr(frame, key)), int(row[key]))

    def test_a_kept_index_gives_the_same_frames(self):
        path = shutil.copy(take(), "copy.mov")
        rows = overcrank.frame_times(path)
        self.assertFalse(os.path.exists(f"{path}.frameindex"))
        self.assertEqual(overcrank.frame_times(path, keep_index=True), rows)
        self.assertTrue(os.path.exists(f"{path}.frameindex"))
        for plain, kept in zip(
                take().frames(indices=[3, 50]), overcrank.frames(path, indices=[3, 50], keep_index=True)):
            self.assertEqual(kept.pts_ns, plain.pts_ns)
            np.testing.assert_array_equal(kept.image, plain.image)

    def test_codes_may_have_text_outside_ascii(self):
        def write(verb, path, option, table, *rest):
            with open(table, "w", encoding="utf-8") as file:
                file.write("index,pts_ns,capture_ns,sequence,duration_ns,lost_before,duplicate,codes\n"
                           "0,0,,,10,,,Grüße 東京\n")

        with unittest.mock.patch.object(_frames, "run", write):
            self.assertEqual([row.index for row in overcrank.frame_times("a.mov")], [0])

    def test_gaps_of_the_ledger_are_those_of_the_frames(self):
        gaps = {gap.after_index + 1: gap.count for gap in take().gaps}
        lost = {row.index: row.lost_before for row in take().frame_times() if row.lost_before}
        self.assertEqual(lost, gaps)

    def test_an_image_has_memory_of_its_own(self):
        first, second = itertools.islice(take().frames(), 2)
        self.assertEqual(first.image.shape, (240, 320, 3))
        self.assertEqual(first.image.dtype, np.uint8)
        self.assertTrue(first.image.flags.owndata and first.image.flags.c_contiguous)
        self.assertTrue(first.image.flags.writeable)
        self.assertFalse(np.shares_memory(first.image, second.image))

    def test_pixels_of_other_formats(self):
        color = next(take().frames())
        for pixels, shape, dtype in (
                ("gray8", (240, 320), np.uint8), ("gray16le", (240, 320), np.uint16),
                ("yuv420p", (360, 320), np.uint8)):
            frame = next(take().frames(pixels=pixels))
            self.assertEqual((frame.image.shape, frame.image.dtype), (shape, dtype))
            luma = frame.image[:240] / (256 if pixels == "gray16le" else 1)
            if pixels == "yuv420p":
                luma = (luma - 16) * 255 / 219
            gray = color.image @ np.array([0.299, 0.587, 0.114])
            self.assertLess(np.abs(luma - gray).mean(), 2)

    def test_lossless_takes_have_the_colors_of_the_scene(self):
        lossless = take("synthetic:320x240@240?pace=max", duration="100ms", codec="ffv1")
        frame = next(lossless.frames())
        self.assertEqual(int(frame.image[:16].min()), 0)
        self.assertEqual(int(frame.image[:16].max()), 255)

    def test_frames_of_other_containers_and_codecs(self):
        slow = overcrank.retime(take(), "slow.mp4", speed=Fraction(1, 2), fps=30)
        frames = list(slow.frames())
        self.assertEqual([frame.pts_ns for frame in frames[:3]], [0, 33333333, 66666667])
        # The first output frame shows the first source frame, and each later one its time.
        numbers = [painted_number(frame.image) for frame in frames]
        self.assertEqual(numbers, sorted(numbers))
        self.assertIsNone(frames[0].sequence)
        # The time map says which frames repeat others.
        self.assertFalse(frames[0].duplicate)

    def test_an_iterator_that_is_closed_ends_the_command(self):
        frames = take().frames()
        self.assertEqual([frame.index for frame in itertools.islice(frames, 2)], [0, 1])
        frames.close()
        self.assertEqual(list(frames), [])


class SelectionTests(unittest.TestCase):
    def setUp(self):
        self.clip = take("synthetic:320x240@240?pace=max")
        self.table = self.clip.frame_times()

    def numbers(self, **selection):
        frames = list(self.clip.frames(**selection))
        for frame in frames:
            self.assertEqual(painted_number(frame.image), frame.index)
            self.assertEqual(frame.pts_ns, self.table[frame.index].pts_ns)
        return [frame.index for frame in frames]

    def test_ranges_are_half_open(self):
        self.assertEqual(self.numbers(start=0.5, end=0.51), [120, 121, 122])
        begin = self.table[122].pts_ns
        for end, last in ((begin / 1e9, 121), (Fraction(begin, 10**9), 121),
                          (Fraction(begin + 1, 10**9), 122)):
            numbers = self.numbers(start=Fraction(1, 2), end=end)
            self.assertEqual(numbers, list(range(120, last + 1)))
        self.assertEqual(self.numbers(start=0.501, end=0.505), [120, 121])
        self.assertEqual(self.numbers(start=0.99), [237, 238, 239])
        self.assertEqual(self.numbers(end=0.001), [0])
        self.assertEqual(self.numbers(start=0.5, end=0.5), [])

    def test_steps(self):
        self.assertEqual(self.numbers(step=60), [0, 60, 120, 180])
        self.assertEqual(self.numbers(start=0.5, step=100), [120, 220])

    def test_a_range_is_one_option_however_many_frames_it_has(self):
        table = [
            overcrank.FrameTime(index, index * 10, None, None, 10, None, None)
            for index in range(100_000)]
        for chosen, options in (
                (range(100_000), []), (range(1, 99_999), ["--range", "1f..99999f"]),
                (range(5, 100_000, 5), ["--range", "5f..99996f", "--step", "5"]),
                (range(7, 8), ["--range", "7f..8f"]), (range(9, 3, -1), None)):
            self.assertEqual(_frames._range_options(table, list(chosen)), options)
        self.assertIsNone(_frames._range_options(table, [1, 2, 4]))
        twins = [*table[:3], overcrank.FrameTime(3, 20, None, None, 10, None, None), *table[4:]]
        self.assertIsNone(_frames._range_options(twins, [3, 4]))
        self.assertIsNone(_frames._range_options(twins, [1, 2]))

    def test_frames_of_several_runs_follow_each_other(self):
        indices = np.random.default_rng(2).integers(0, 240, 50).tolist()
        with unittest.mock.patch.object(_frames, "_BATCH", 7):
            self.assertEqual(self.numbers(indices=indices), indices)

    def test_a_time_without_end_is_refused(self):
        for selection in ({"start": math.inf}, {"end": math.nan}, {"at": [-math.inf]}):
            with self.assertRaises(overcrank.CommandError, msg=selection) as caught:
                self.clip.frames(**selection)
            self.assertEqual(caught.exception.code, "syntax")

    def test_times_and_indices_come_in_their_order(self):
        self.assertEqual(self.numbers(at=[0.5, 0.25, 0.5]), [120, 60, 120])
        self.assertEqual(self.numbers(indices=[7, -1, 0, 7]), [7, 239, 0, 7])
        self.assertEqual(self.numbers(indices=np.array([3, 2])), [3, 2])
        self.assertEqual(self.numbers(indices=[]), [])

    def test_all_frames_in_another_order(self):
        backward = list(range(239, -1, -1))
        self.assertEqual(self.numbers(indices=backward), backward)

    def test_random_times(self):
        times = np.random.default_rng(1).uniform(0, 0.9999, 100)
        stamps = np.array([row.pts_ns for row in self.table])
        expected = np.searchsorted(stamps, np.round(times * 1e9), side="right") - 1
        self.assertEqual(self.numbers(at=times), expected.tolist())

    def test_what_the_movie_does_not_have_is_refused(self):
        for selection in (
                {"start": 1.5}, {"at": [0.5, 1]}, {"at": [-0.1]}, {"indices": [240]},
                {"indices": [-241]}):
            with self.assertRaises(IndexError, msg=selection):
                self.clip.frames(**selection)
        for selection in ({"at": [0], "indices": [0]}, {"start": 0, "at": [0]}, {"step": 0}):
            with self.assertRaises(ValueError, msg=selection):
                self.clip.frames(**selection)


class DamageTests(DirectoryTestCase):
    def setUp(self):
        super().setUp()
        with open(take(), "rb") as file:
            data = bytearray(file.read())
        # The payload of the video lies before the index, in the middle of the file.
        middle = len(data) // 2
        data[middle:middle + 20_000] = bytes(20_000)
        with open("damaged.mov", "wb") as file:
            file.write(data)

    def test_a_frame_that_cannot_be_decoded_is_an_error_after_those_before_it(self):
        frames = []
        with self.assertRaises(overcrank.CommandError) as caught:
            for frame in overcrank.frames("damaged.mov"):
                frames.append(frame.index)
        self.assertEqual(caught.exception.exit_status, 65)
        self.assertEqual(caught.exception.code, "invalid_data")
        self.assertTrue(caught.exception.hint)
        self.assertEqual(frames, list(range(len(frames))))
        self.assertGreater(len(frames), 10)

    def test_hold_gives_every_frame(self):
        frames = list(overcrank.frames("damaged.mov", on_error="hold"))
        self.assertEqual(len(frames), take().ledger.stored)


if __name__ == "__main__":
    unittest.main()
