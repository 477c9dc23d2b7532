#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the reading of codes on 996 frames that Tests/Tools/CodeFrames generates with zint: codes
# read in each condition, wrong texts, codes in frames without any, corners, and processor time. The
# peers in the same run are ZBar, and zxing-cpp with all of its options on (the effort `thorough`).
# A reader that sees nothing must fail. Then a movie with six moving codes is recorded in real time
# with and without the search. Each goal is printed as met or MISSED.
#
#   Benchmarks/Codes/run.sh [FRAMES] [SECONDS]    default: all frames, and 60 s of the movie
#
# Takes about 15 minutes after the build, and 2 GB in /dev/shm. Exits with 1 if a goal is missed.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO_FULL slowmo-full "${optional_packages[@]}" ffmpeg
prepare CODE_TIMING CodeTiming zint python3-numpy python3-zbar ffmpeg
make_folder codes-bench
# Debian's Python has Debian's numpy and ZBar; another Python may come first in PATH.
/usr/bin/python3 Benchmarks/Codes/codes.py "${1:-996}" "${2:-60}"
