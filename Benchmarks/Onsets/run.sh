#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the delay of onsets in real audio at a quarter of the speed, for our algorithms and, in
# the same run, for rubberband, ffmpeg and soundstretch.
#
#   Benchmarks/Onsets/run.sh CLIP|DIRECTORY...
#   ONSET_SECONDS=10 Benchmarks/Onsets/run.sh CLIP      seconds of each clip; default: 20
#
# Clips are files with audio that ffmpeg can read; directories are searched for them. Takes about
# half a minute per clip. Exits with 1 when soft onsets deviate more than with rubberband -3, or
# when a control that must fail passes.

if [ $# = 0 ]; then
  sed -n 's/^# \{0,1\}//; 3,12p' "$0" >&2
  exit 64
fi
clips=()
for clip in "$@"; do clips+=("$(realpath "$clip")"); done
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare RETIME_AUDIO RetimeAudio rubberband-cli soundstretch sox ffmpeg python3-numpy
make_folder onset-bench
# Debian's Python has Debian's numpy; another Python may come first in PATH.
/usr/bin/python3 Benchmarks/Onsets/onsets.py "${clips[@]}"
