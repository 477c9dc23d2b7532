#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long it takes from Ctrl-C to the end of slowmo, when its file can be played, and to that of
# ffmpeg, for takes of different lengths of the same fake camera, to files in memory.
#
#   Benchmarks/Stop/run.sh [ROUNDS] [SECONDS...]     3 rounds of takes of 3 s and 30 s, unless said
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo "${capture_peers[@]}"
make_folder stop-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
rounds=${1:-3}
(($#)) && shift
(($#)) || set -- 3 30
python3 Benchmarks/Stop/stop.py "$rounds" "$@"
