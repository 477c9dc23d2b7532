#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarizes the attempts of one run of a batch on a cluster, from the reports that job.sh keeps.

    summary.py REPORTS CLIP...           what became of each clip; exits with 1 if one is not done
    summary.py REPORTS --left CLIP...    only the clips that are not done, one a line
"""
import glob
import json
import pathlib
import sys


def attempts(reports, clip):
    """The results of a clip's attempts, the last one last; None for one that did not end."""
    found, stem = [], pathlib.Path(clip).stem
    for path in sorted(pathlib.Path(reports).glob(f"{glob.escape(stem)}.????????"),
                       key=lambda path: path.stat().st_mtime_ns):
        try:
            document = json.loads(path.read_text())
            result = document.get("files", [{**document, "status": "failed"}])[0]
        except ValueError:
            result = None
        # A clip in another directory may have the same name. An option that is wrong has no source.
        if result is None or result.get("source", clip) == clip:
            found.append(result)
    return found


def is_done(found):
    """Whether the last attempt that ended has left an output that still exists."""
    last = [result for result in found if result][-1:]
    return any(result["status"] in ("made", "kept") and pathlib.Path(result["file"]).exists()
               for result in last)


def main():
    reports, *clips = sys.argv[1:]
    only_left = clips[:1] == ["--left"]
    clips = clips[1:] if only_left else clips
    known = {clip: attempts(reports, clip) for clip in clips}
    left = [clip for clip in clips if not is_done(known[clip])]
    if only_left:
        print("\n".join(left), end="\n" if left else "")
        return
    for clip, found in known.items():
        if len(found) > 1:
            ends = ["died" if result is None else result["status"] for result in found]
            print(f"{clip}: done again, {len(found)} attempts: {', '.join(ends)}")
        for result in [result for result in found if result and result["status"] == "failed"][-1:]:
            error = result.get("error", {})
            print(f"{clip}: {error.get('message', 'failed')}; {error.get('hint', '')}")
    made = sum(bool(result) and result["status"] == "made"
               for found in known.values() for result in found)
    again = sum(len(found) > 1 for found in known.values())
    print(f"{len(clips)} clips: {len(clips) - len(left)} done, {again} of them with several "
          f"attempts; {made} exports made")
    for clip in left:
        print(f"not done: {clip}")
    sys.exit(1 if left else 0)


main()
