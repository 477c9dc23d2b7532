#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures audio at other speeds with sines, clicks, speech and music: our algorithms beside
# rubberband, ffmpeg, soundstretch and sox with the same files in the same run.
#
#   Benchmarks/Pitch/run.sh [PART...]      default: all; spectral time-domain low-quality
#                                          varispeed lengths joins parallel instructions
#                                          controls
#   Benchmarks/Pitch/run.sh short          stretch 2 of three algorithms, parallel of
#                                          two, and instructions
#   PITCH_RATE=44100 Benchmarks/Pitch/run.sh      at another sample rate than 48 000 Hz
#
# Takes several minutes. Exits with 1 when a figure misses its limit, or when a control that must
# fail passes.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare RETIME_AUDIO RetimeAudio rubberband-cli soundstretch sox ffmpeg espeak-ng python3-numpy \
  valgrind binutils
make_folder pitch-bench
# Debian's Python has Debian's numpy; another Python may come first in PATH.
/usr/bin/python3 Benchmarks/Pitch/pitch.py "$@"
