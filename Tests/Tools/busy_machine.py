# SPDX-License-Identifier: Apache-2.0
"""What tests of takes in real time do about a machine that others use as well.

A take that is killed at a random instant has lost what it had not written yet, and on a starved
machine that may be any amount. So such a take runs before other programs where the system allows it,
and where too much was lost all the same, it is looked up how busy others kept the processors.
"""
import os
import resource


def run_before_others():
    """Asks, in a new process, to be run before ordinary ones (SCHED_RR); refused to most users."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass


class OtherPrograms:
    """The share of the processors' time that programs took which are no children of this one."""

    def __init__(self):
        self.start = self._now()

    def share(self):
        """From 0 to 1, since this value was made. Of children only those count that were waited for."""
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
    """How often a trial is made that lost too much: three times, and ten where others took more than
    a quarter of the machine meanwhile."""

    UNDISTURBED, DISTURBED, SHARE = 3, 10, 0.25

    def __init__(self):
        self.repeated = self.undisturbed = 0

    def made(self, trial, is_late):
        """The first result that is not late, or the last."""
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
        """Says how much was repeated; 1 where that cannot be other programs' doing."""
        if self.repeated:
            print(f"{self.repeated} {what} were repeated, since too much was missing; "
                  f"{self.repeated - self.undisturbed} of them beside other programs")
        if self.undisturbed > 2 + trials // 10:
            print("so many that this is no other program's doing")
            return 1
        return 0
