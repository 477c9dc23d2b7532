# SPDX-License-Identifier: Apache-2.0
"""Support for real-time tests on machines that also run other programs.

A recording killed at a random instant loses its unwritten data, on a starved machine any amount.
Recordings therefore run with real-time priority where permitted. If too much was lost anyway,
the load by other programs is measured.
"""
import os
import resource
import struct


def run_before_others():
    """Requests real-time scheduling (SCHED_RR) in a new process; denied to most users."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass


def count_in(path):
    """The frame count that a synthetic camera keeps in a file (`counter=`); 0 before the camera started."""
    data = path.read_bytes() if path.exists() else b""
    return struct.unpack("=q", data[:8])[0] if len(data) >= 8 else 0


class OtherPrograms:
    """The share of CPU time used by programs that are not children of this process."""

    def __init__(self):
        self.start = self._now()

    def share(self):
        """The share from 0 to 1, since this object was made. Only reaped children count as own."""
        total, busy, own = (now - then for now, then in zip(self._now(), self.start))
        return max(0.0, busy - own) / total if total > 0 else 0.0

    @staticmethod
    def _now():
        with open("/proc/stat") as file:
            user, nice, system, idle, wait, irq, softirq, steal = map(
                int, file.readline().split()[1:9])
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = (children.ru_utime + children.ru_stime) * os.sysconf("SC_CLK_TCK")
        busy = user + nice + system + irq + softirq + steal
        return busy + idle + wait, busy, own


class Attempts:
    """Repeats a trial that lost too much: three attempts, or ten if other programs used more
    than a quarter of the CPU time."""

    UNDISTURBED, DISTURBED, SHARE = 3, 10, 0.25

    def __init__(self):
        self.repeated = self.undisturbed = 0

    def made(self, trial, is_late):
        """Returns the first result that is not late, or the last one."""
        for attempt in range(1, self.DISTURBED + 1):
            others = OtherPrograms()
            result = trial()
            is_disturbed = others.share() > self.SHARE
            if not is_late(result) or (attempt >= self.UNDISTURBED and not is_disturbed):
                break
            if attempt < self.DISTURBED:
                self.repeated += 1
                self.undisturbed += not is_disturbed
        return result

    def verdict(self, trials, what):
        """Prints the number of repetitions; returns 1 if other programs cannot explain them."""
        if self.repeated:
            print(f"{self.repeated} {what} were repeated because too many frames were missing; "
                  f"{self.repeated - self.undisturbed} of them while other programs ran")
        if self.undisturbed > 2 + trials // 10:
            print("too many to be caused by other programs")
            return 1
        return 0
