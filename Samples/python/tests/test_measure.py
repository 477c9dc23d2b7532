# SPDX-License-Identifier: Apache-2.0
"""Paths of objects, and distances and angles between marked points."""

import os
from fractions import Fraction

import numpy as np
import overcrank
from support import DirectoryTestCase, take

#: The ground of the scene is at row 221, and 173 rows are 1.5 m.
PIXELS_PER_METER = 173 / 1.5


def ball():
    """A take of the ball, which rises 1.226 m in half a second."""
    return take("synthetic:320x240@240?pace=max")


class TrackTests(DirectoryTestCase):
    def test_the_ball_moves_as_the_formula_says(self):
        path = overcrank.track(
            ball(), at=0.1, box=(176, 143, 32, 32), until=0.28, by="color", scale="57.7±0.5=0.5m")
        self.assertEqual((len(path.points), path.found_count), (44, 44))
        self.assertEqual((path.time_scale, path.frames_synthesized), (Fraction(1), 0))
        self.assertAlmostEqual(path.meters_per_pixel, 0.5 / 57.7)
        for point in path.points:
            height = 1.226 * 4 * point.time * (1 - point.time) + 0.1
            self.assertAlmostEqual(point.y, 221 - height * PIXELS_PER_METER, delta=0.5)
        fastest = path.points[5]
        self.assertAlmostEqual(
            fastest.speed_mps, 1.226 * 4 * (1 - 2 * fastest.time),
            delta=2 * fastest.speed_uncertainty_mps)

    def test_a_box_outside_is_an_error(self):
        with self.assertRaises(overcrank.CommandError) as caught:
            overcrank.track(ball(), at=0, box=(310, 0, 20, 20))
        self.assertEqual(caught.exception.code, "outside_source")


class MeasureTests(DirectoryTestCase):
    def test_distances_and_angles(self):
        corner = [(0, 0), (3, 4), (np.float64(3), 0.0)]
        found = overcrank.measure(
            ball(), {0.2: corner, "120f": [(10, 10), (110, 10)]}, scale="100±1=2m", csv="m.csv")
        self.assertEqual([item.index for item in found], [48, 48, 48, 120])
        self.assertEqual([item.points for item in found], [(1, 2), (2, 3), (1, 2, 3), (1, 2)])
        self.assertEqual([item.pixels for item in found], [5, 4, None, 100])
        self.assertAlmostEqual(found[2].degrees, 36.8698976)
        self.assertEqual(found[3].meters, 2)
        self.assertAlmostEqual(found[3].meters_uncertainty, 2 * (0.0002 + 0.0001) ** 0.5)
        self.assertGreater(os.path.getsize("m.csv"), 100)

    def test_a_point_outside_is_an_error(self):
        with self.assertRaises(overcrank.CommandError) as caught:
            overcrank.measure(ball(), {0: [(0, 0), (321, 0)]})
        self.assertEqual(caught.exception.code, "outside_source")
