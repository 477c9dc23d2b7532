#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Retimes clips with Dask, one task for each clip.

    dask_batch.py SCHEDULER DIRECTORY CLIP... -- OPTION...
    dask_batch.py tcp://render1:8786 slow clips/*.mov -- --speed 1/8 --copy

All workers see the clips and DIRECTORY under the same paths. Dask gives the tasks of a lost worker to
another one; a task that fails is run three more times. Needs the packages `dask` and `distributed`.
"""
import os
import pathlib
import subprocess
import sys
import time

from distributed import Client, wait

HERE = pathlib.Path(__file__).resolve().parent


def export(clip, reports, directory, options, program):
    """Runs the job of one clip; called on a worker."""
    environment = {**os.environ, "SLOWMO": program}
    job = subprocess.run(
        [str(HERE / "job.sh"), reports, clip, f"{directory}/{{name}}.mov", *options],
        env=environment, stderr=subprocess.PIPE, text=True)
    if job.returncode != 0:
        raise RuntimeError(f"{clip}: exit {job.returncode} {job.stderr}")
    return clip


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        end = arguments.index("--")
        arguments, options = arguments[:end], arguments[end + 1:]
    scheduler, directory, *clips = arguments
    directory = os.path.abspath(directory)
    clips = [os.path.abspath(clip) for clip in clips]
    reports = f"{directory}/reports/{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    os.makedirs(reports)
    with Client(scheduler) as client:
        # Not pure: the same call is run again if its result was lost.
        tasks = client.map(export, clips, reports=reports, directory=directory, options=options,
                           program=os.environ.get("SLOWMO", "slowmo"), pure=False, retries=3)
        wait(tasks)
        for task in tasks:
            if task.status == "error":
                print(task.exception(), file=sys.stderr)
    summary = [sys.executable, str(HERE / "summary.py"), reports, *clips]
    sys.exit(subprocess.run(summary).returncode)


if __name__ == "__main__":
    main()
