# SPDX-License-Identifier: Apache-2.0
"""Recordings, clips at other speeds, descriptions, devices, and clips in a notebook."""

import base64
import os
import re
import subprocess
import unittest
from fractions import Fraction

import overcrank
from overcrank import _command, _notebook
from support import DirectoryTestCase, painted_number, take


class RecordingTests(DirectoryTestCase):
    def test_a_recording_and_its_ledger(self):
        recording = take()
        ledger = recording.ledger
        self.assertEqual(ledger.expected, 240)
        self.assertEqual(ledger.stored + ledger.lost, 240)
        self.assertEqual(ledger.lost, ledger.lost_device)
        self.assertEqual(sum(gap.count for gap in recording.gaps), ledger.lost)
        self.assertEqual({gap.cause for gap in recording.gaps}, {"lost_device"})
        self.assertEqual(recording.requested_fps, 240)
        self.assertAlmostEqual(float(recording.measured_fps), 240, 2)
        self.assertEqual(recording.mode, "320x240@240/mjpg")
        self.assertEqual(recording.stopped_by, "duration")
        self.assertEqual(recording.document["schema"], "slowmo.record/1")

    def test_frames_mode_codec_tags_and_audio(self):
        recording = overcrank.record(
            "synthetic?pace=max", "take.mov", frames=20, mode="320x240@240/grey", codec="ffv1",
            audio="none", title="A title", tags={"make": "Acme"})
        info = recording.info()
        self.assertEqual((info.video.frame_count, info.video.codec), (20, "ffv1"))
        self.assertIsNone(info.audio)
        self.assertIn("A title", info.metadata.values())
        self.assertIn("Acme", info.metadata.values())

    def test_segments_are_clips(self):
        recording = overcrank.record(
            "synthetic:320x240@240?pace=max", "part_{n}.mov", duration=1, segment=0.4)
        self.assertEqual([clip.path for clip in recording.clips],
                         ["part_1.mov", "part_2.mov", "part_3.mov"])
        self.assertEqual(recording.path, "part_1.mov")
        numbers = [painted_number(frame.image) for clip in recording.clips
                   for frame in clip.frames(step=24)]
        self.assertEqual(numbers, [0, 24, 48, 72, 96, 120, 144, 168, 192, 216])

    def test_clips_around_triggers(self):
        recording = overcrank.record(
            "synthetic:320x240@240?pace=max", "clap_{n}.mov", duration=3.5, trigger="audio:-12dBFS",
            pre=0.1, post=0.2, repeat=True, max_clips=2,
            options=["--quiet-period", "200ms"])
        self.assertEqual(len(recording.clips), 2)
        self.assertEqual(recording.clips[1].info().video.frame_count, 72)


class RetimeTests(DirectoryTestCase):
    def test_an_eighth_of_the_speed_without_encoding(self):
        slow = overcrank.retime(take(), "slow.mov", speed=Fraction(1, 8), copy=True)
        self.assertEqual(slow.frames_copied, take().ledger.stored)
        self.assertEqual((slow.frames_encoded, slow.max_time_error_ns), (0, 0))
        before, after = take().frame_times(), slow.frame_times()
        self.assertEqual([row.pts_ns for row in after], [8 * row.pts_ns for row in before])

    def test_a_template_is_refused(self):
        with self.assertRaises(overcrank.CommandError) as caught:
            overcrank.retime(take(), "{name}.mov", speed=Fraction(1, 8), copy=True)
        self.assertEqual((caught.exception.code, os.listdir(".")), ("usage", []))

    def test_ranges_at_a_constant_rate(self):
        slow = overcrank.retime(
            take(), "slow.mp4", ranges=[((0.25, 0.5), Fraction(1, 4)), ("0.75..1", 0.5)], fps=30)
        self.assertEqual(slow.duration_ns, 2_000_000_000)
        self.assertEqual(slow.frames_encoded, 60)

    def test_presets_ramps_trims_and_rates(self):
        duration = {
            "a.mov": overcrank.retime(take(), "a.mov", preset="freeze", at=0.5, copy=True),
            "b.mov": overcrank.retime(take(), "b.mov", ramp="0.5=1 0.5=1/2", copy=True),
            "c.mov": overcrank.retime(take(), "c.mov", trim=(0.25, 0.5), speed=1, copy=True),
            "d.mov": overcrank.retime(take(), "d.mov", playback_fps=30, copy=True),
        }
        self.assertEqual(
            {name: clip.duration_ns // 10**6 for name, clip in duration.items()},
            {"a.mov": 2000, "b.mov": 1500, "c.mov": 250,
             "d.mov": take().ledger.stored * 1000 // 30})


class InfoTests(DirectoryTestCase):
    def test_a_take(self):
        info = overcrank.info(take())
        self.assertEqual(info.container, "mov")
        self.assertEqual((info.video.width, info.video.height, info.video.codec),
                         (320, 240, "mjpeg"))
        self.assertEqual(info.video.capture_fps, 240)
        self.assertEqual(info.video.capture_fps_source, "com.overcrank.capture_frame_rate")
        self.assertTrue(info.video.variable)
        self.assertEqual((info.audio.codec, info.audio.sample_rate), ("aac", 48000))
        self.assertAlmostEqual(info.duration, 1, 2)

    def test_a_rate_that_no_file_states_is_none(self):
        clip = overcrank.retime(take(), "slow.mp4", speed=1, fps=30, options=["--pitch", "mute"])
        subprocess.run(
            ["ffmpeg", "-v", "error", "-i", clip, "-c", "copy", "-map_metadata", "-1", "bare.mp4"],
            check=True)
        self.assertIsNone(overcrank.info("bare.mp4").video.capture_fps)


class DeviceTests(unittest.TestCase):
    def test_the_synthetic_camera_is_listed(self):
        device, = [device for device in overcrank.devices() if device.kind == "synthetic"]
        self.assertEqual((device.id, device.path), ("synthetic", None))
        self.assertEqual(device.media, ("video",))
        self.assertEqual(overcrank.modes(device), overcrank.modes("synthetic"))

    def test_modes(self):
        modes = overcrank.modes("synthetic", size="640x480", fourcc="mjpg", min_fps=200)
        self.assertEqual({(mode.width, mode.height, mode.fourcc) for mode in modes},
                         {(640, 480, "MJPG")})
        self.assertTrue(all(mode.max_fps >= 200 and mode.high_frame_rate for mode in modes))
        self.assertTrue(all(mode.measured is None for mode in modes))

    def test_a_measured_mode(self):
        mode, = overcrank.modes("synthetic:320x240@240?pace=max", fourcc="grey", probe=0.1)
        self.assertTrue(mode.fastest or mode.compressed is False)
        self.assertAlmostEqual(float(mode.measured.fps), 240, 1)
        self.assertEqual(mode.measured.dropped, 0)


class NotebookTests(DirectoryTestCase):
    def movie(self, html):
        """The movie in the page, as a file."""
        data = re.search('src="data:video/mp4;base64,([^"]*)"', html)[1]
        with open("shown.mp4", "wb") as file:
            file.write(base64.b64decode(data))
        return overcrank.info("shown.mp4")

    def test_a_take_is_shown_as_h264(self):
        html = take()._repr_html_()
        self.assertIn("320×240 mjpeg", html)
        self.assertIn("captured at 240 fps", html)
        shown = self.movie(html)
        self.assertEqual(shown.video.codec, "h264")
        self.assertAlmostEqual(shown.duration, 1, 1)

    def test_a_clip_that_a_browser_plays_is_shown_as_it_is(self):
        slow = overcrank.retime(take(), "slow.mp4", speed=0.5, fps=30)
        self.movie(slow._repr_html_())
        with open("shown.mp4", "rb") as shown, open(slow, "rb") as file:
            self.assertEqual(shown.read(), file.read())

    def test_only_the_beginning_of_a_long_clip_is_shown(self):
        slow = overcrank.retime(take(), "slow.mp4", speed=Fraction(1, 12), fps=30)
        html = slow._repr_html_()
        self.assertIn("the first 10 s", html)
        self.assertEqual(self.movie(html).duration_ns, _notebook.LONGEST * 10**9)

    def test_a_clip_that_is_not_there_is_no_failure(self):
        html = overcrank.Clip("<none>.mov")._repr_html_()
        self.assertIn("&lt;none&gt;.mov", html)
        self.assertNotIn("<none>", html)


class VersionTests(unittest.TestCase):
    def test_the_version_is_that_of_the_command(self):
        printed = subprocess.run(
            [_command.program(), "--version"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed.splitlines()[0], f"slowmo {overcrank.__version__}")


if __name__ == "__main__":
    unittest.main()
