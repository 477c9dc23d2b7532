#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where onsets of real audio come out at a quarter of the speed: how late our algorithms bring them,
# measured beside what rubberband, ffmpeg and soundstretch do to the same clips in the same run.
#
#   Benchmarks/Onsets/run.sh CLIP|FOLDER...
#   ONSET_SECONDS=10 Benchmarks/Onsets/run.sh CLIP      of each clip; 20 unless set
#
# Clips are anything with audio that ffmpeg reads; a folder is searched for them. Takes about half a
# minute a clip. Exits with 1 when soft onsets come out later or earlier than with rubberband -3, or
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
# Debian's numpy, not another that happens to come first.
/usr/bin/python3 Benchmarks/Onsets/onsets.py "${clips[@]}"
