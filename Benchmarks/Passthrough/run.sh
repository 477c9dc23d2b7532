#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a passthrough retime of one minute of 1080p at 240 fps, about a gigabyte. The peers in
# the same run are `cp` and `ffmpeg -c copy` of the same file, which change nothing, and a re-encode.
# Reported are elapsed time, CPU time and peak memory, as medians of the rounds.
#
#   Benchmarks/Passthrough/run.sh [ROUNDS] [SECONDS]      default: 5 rounds of 60 s
#
# Afterwards, the whole clip is retimed on an XFS image that shares blocks between files. This needs
# root and xfsprogs, and is skipped with its reason elsewhere. Printed are the time beside that of
# `cp --reflink=never`, and the space that the retimed file needs beside the size of its index.
#
# Files are in memory, so that no disk is measured. The re-encode covers a tenth of the clip with
# libx264's fastest preset; its time is multiplied by ten. Exits with 1 when the retime takes more
# than 1.05 times cp's time, 1.2 times ffmpeg's or a tenth of the re-encode's, or when memory grows
# with the clip's length by more than the index.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg xfsprogs
make_folder passthrough-bench
python3 Benchmarks/Passthrough/passthrough.py "${1:-5}" "${2:-60}"
python3 Benchmarks/Passthrough/map_cost.py
