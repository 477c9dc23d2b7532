#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares slowmo with its peers in turn, recording the same simulated camera at its real rate to a
# file in memory. Measured are delivered and lost frames, CPU time per frame in the middle of the take,
# and peak memory.
#
#   Benchmarks/Capture/run.sh [SECONDS] [ROUNDS]     default: 5 s and 3 rounds
#
# The losses are counted by the camera; "starved" are losses for lack of a free buffer. The
# simulation runs inside each program, so its cost is part of every figure. The row "v4l2-ctl, no
# file" shows that cost. It and GStreamer run in the first round alone; the other figures are medians
# of the rounds.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo "${capture_peers[@]}"
make_folder capture-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
python3 Benchmarks/Capture/capture.py "${1:-5}" "${2:-3}"
