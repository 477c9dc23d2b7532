# SPDX-License-Identifier: Apache-2.0
"""Errors of the command as exceptions, and how the command is run."""

import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import unittest
from fractions import Fraction
from unittest import mock

import overcrank
from overcrank import _command
from support import DirectoryTestCase, take


class ErrorTests(DirectoryTestCase):
    def error(self, function, *arguments, **options):
        with self.assertRaises(overcrank.CommandError) as caught:
            function(*arguments, **options)
        return caught.exception

    def test_a_file_that_does_not_exist(self):
        for function in (overcrank.info, overcrank.frames, overcrank.frame_times):
            error = self.error(function, "none.mov")
            self.assertEqual((error.code, error.exit_status), ("file_not_found", 66))
            self.assertIn("none.mov", error.message)
            self.assertEqual(error.hint, "check the name")
            self.assertEqual(str(error), f"{error.message}; {error.hint}")
            self.assertIsNone(error.document)

    def test_a_device_that_does_not_exist(self):
        for error in (
                self.error(overcrank.record, "/dev/video99", "take.mov", duration=1),
                self.error(overcrank.modes, "/dev/video99")):
            self.assertEqual((error.code, error.exit_status), ("device_not_found", 69))
        self.assertEqual(os.listdir(), [])

    def test_an_existing_output_is_kept(self):
        with open("slow.mov", "w", encoding="ascii") as file:
            file.write("kept")
        options = {"speed": Fraction(1, 8), "copy": True}
        error = self.error(overcrank.retime, take(), "slow.mov", **options)
        self.assertEqual((error.code, error.exit_status), ("output_exists", 73))
        self.assertEqual(os.path.getsize("slow.mov"), 4)
        slow = overcrank.retime(take(), "slow.mov", overwrite=True, **options)
        self.assertGreater(os.path.getsize(slow), 4)

    def test_an_option_that_does_not_exist(self):
        error = self.error(overcrank.retime, take(), "slow.mov", options=["--none"])
        self.assertEqual((error.code, error.exit_status), ("usage", 64))

    def test_a_limit_that_was_exceeded_has_the_report(self):
        error = self.error(
            overcrank.record, "synthetic:320x240@240?drop=5%&seed=7&pace=max", "take.mov",
            duration=1, max_drops=0)
        self.assertEqual((error.code, error.exit_status), ("limit_exceeded", 10))
        self.assertGreater(error.document["ledger"]["lost_device"], 0)
        self.assertEqual(
            overcrank.info("take.mov").video.frame_count, error.document["ledger"]["stored"])

    def test_an_error_survives_pickling(self):
        error = self.error(overcrank.info, "none.mov")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual(vars(copy), vars(error))

    def test_a_name_that_begins_with_a_hyphen_is_no_option(self):
        slow = overcrank.retime(take(), "-slow.mov", speed=2, copy=True)
        self.assertTrue(os.path.exists("-slow.mov"))
        self.assertEqual(len(slow.frame_times()), take().ledger.stored)


INTERRUPTED = """
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with open("ready", "w"):
    pass
signal.sigwait([signal.SIGINT])
with open("interrupts", "a") as file:
    print("an interrupt", file=file)
"""


class ProgramTests(DirectoryTestCase):
    def script(self, text, interpreter="/bin/sh"):
        """Makes a program that stands for the command."""
        path = os.path.join(os.getcwd(), "program")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!{interpreter}\n{text}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, SLOWMO=path)

    def test_a_command_that_is_not_there(self):
        with mock.patch.dict(os.environ, SLOWMO="/none/slowmo"):
            with self.assertRaises(overcrank.CommandError) as caught:
                overcrank.devices()
        self.assertEqual(caught.exception.code, "command_not_found")
        self.assertEqual(caught.exception.exit_status, 127)
        self.assertIn("SLOWMO", caught.exception.hint)

    def test_the_command_is_found_on_the_path(self):
        with self.script("exec true"):
            environment = {"SLOWMO": "", "PATH": os.getcwd()}
            os.rename("program", "slowmo")
            with mock.patch.dict(os.environ, environment):
                self.assertEqual(_command.program(), os.path.join(os.getcwd(), "slowmo"))

    def test_a_program_that_ends_by_a_signal(self):
        with self.script("kill -9 $$"):
            with self.assertRaises(overcrank.CommandError) as caught:
                overcrank.devices()
        self.assertEqual(caught.exception.exit_status, -signal.SIGKILL)
        self.assertEqual(caught.exception.code, "internal")

    def test_a_program_that_prints_no_document(self):
        with self.script("echo text"):
            with self.assertRaises(overcrank.CommandError) as caught:
                overcrank.devices()
        self.assertEqual(caught.exception.code, "internal")

    def test_an_interrupt_of_python_stops_a_recording_in_order(self):
        # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        # The program opens a pipe when it is ready, and ends in order after an interrupt.
        os.mkfifo("ready")
        # An interrupt inside Popen would leave the program alone.
        waiting = threading.Event()
        communicate = subprocess.Popen.communicate

        def noted(process, *arguments, **options):
            waiting.set()
            return communicate(process, *arguments, **options)

        with self.script(INTERRUPTED, sys.executable), \
                mock.patch.object(subprocess.Popen, "communicate", noted):

            def interrupt():
                with open("ready", encoding="ascii"):
                    pass
                waiting.wait()
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                overcrank.record("synthetic", "take.mov")
            thread.join()
        with open("interrupts", encoding="ascii") as file:
            self.assertEqual(file.read(), "an interrupt\n")


class TextTests(unittest.TestCase):
    def test_numbers_as_the_command_reads_them(self):
        for value, text in (
                (2, "2"), (0.125, "0.125"), (1e-6, "0.000001"), (1 / 3, "0.333333333"),
                (Fraction(1, 8), "1/8"), ("250ms", "250ms"), (-2.0, "-2"), (0.0, "0"),
                (100.0, "100"), (30000 / 1001, "29.970029970")):
            self.assertEqual(Fraction(_command.text(value)) if "." in text else
                             _command.text(value), Fraction(text) if "." in text else text)


if __name__ == "__main__":
    unittest.main()
