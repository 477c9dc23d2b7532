#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the time from Ctrl-C to the end of slowmo and of ffmpeg, with playable files. Takes of
# different lengths record the same simulated camera to files in memory.
#
#   Benchmarks/Stop/run.sh [ROUNDS] [SECONDS...]     default: 3 rounds of takes of 3 s and 30 s
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo "${capture_peers[@]}"
make_folder stop-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
rounds=${1:-3}
(($#)) && shift
(($#)) || set -- 3 30
python3 Benchmarks/Stop/stop.py "$rounds" "$@"
