#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sound at other speeds: what our algorithms make of sines, clicks, speech and music, measured beside
# what rubberband, ffmpeg, soundstretch and sox make of the same files in the same run.
#
#   Benchmarks/Pitch/run.sh [PART...]      all parts, unless named: spectral time-domain low-quality
#                                      varispeed lengths joins parallel controls
#   PITCH_RATE=44100 Benchmarks/Pitch/run.sh      at another sampling rate than 48 000 Hz
#
# Takes some minutes. Exits with 1 when a figure misses its limit, or when a control that must fail
# passes.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare RETIME_AUDIO RetimeAudio rubberband-cli soundstretch sox ffmpeg espeak-ng python3-numpy
make_folder pitch-bench
# Debian's numpy, not another that happens to come first.
/usr/bin/python3 Benchmarks/Pitch/pitch.py "$@"
