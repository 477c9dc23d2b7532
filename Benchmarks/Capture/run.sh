#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same fake camera, at native speed, recorded by slowmo and by its peers in turn, to a file in
# memory: frames delivered and lost, processor time a frame, and peak memory.
#
#   Benchmarks/Capture/run.sh [SECONDS] [ROUNDS]     5 s and 3 rounds, unless told otherwise
#
# What was lost is the camera's own account; "starved" are those of them that were lost for want of
# a buffer. The fake runs inside each program, so its cost is in every figure alike; v4l2-ctl
# without a file shows how much that is. Each figure is the median of the rounds.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo "${capture_peers[@]}"
make_folder capture-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
python3 Benchmarks/Capture/capture.py "${1:-5}" "${2:-3}"
