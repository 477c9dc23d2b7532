# SPDX-License-Identifier: Apache-2.0
"""Audits of the timing."""

import os
from fractions import Fraction

import overcrank
from support import DirectoryTestCase, take


class CheckTests(DirectoryTestCase):
    def test_gaps_are_those_of_the_recording(self):
        audit = take().check(expect_fps=240)
        self.assertFalse(audit.ok)
        self.assertEqual(audit.problems, ["gaps"])
        self.assertEqual(
            [(gap.after_index, gap.count) for gap in audit.gaps],
            [(gap.after_index, gap.count) for gap in take().gaps])
        self.assertEqual((audit.duplicates, audit.frozen), ([], []))
        self.assertEqual(audit.capture_fps, Fraction(240))

    def test_a_whole_take_is_ok_unless_another_rate_is_expected(self):
        whole = take("synthetic:320x240@240?pace=max")
        self.assertTrue(overcrank.check(whole, times_only=True).ok)
        audit = overcrank.check(whole, expect_fps=120, plot="chart.png")
        self.assertEqual(audit.problems, ["unexpected_rate"])
        self.assertAlmostEqual(float(audit.measured_fps), 240, delta=0.01)
        self.assertGreater(os.path.getsize("chart.png"), 1_000)

    def test_a_missing_file_is_an_error(self):
        with self.assertRaises(overcrank.CommandError) as caught:
            overcrank.check("missing.mov")
        self.assertEqual(caught.exception.code, "file_not_found")
