#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A passthrough retime of a minute of 1080p at 240 fps, about a gigabyte, beside `ffmpeg -c copy` of
# the same file, which changes nothing, and a re-encode of it, in the same run: wall time, processor
# time and peak memory, as medians of the rounds.
#
#   Benchmarks/Passthrough/run.sh [ROUNDS] [SECONDS]      5 rounds of 60 s, unless told otherwise
#
# Files lie in memory, so that no disk is measured. The re-encode is one of a tenth of the clip by
# libx264's fastest preset, times ten. Exits with 1 when the copy takes more than 1.2 times ffmpeg's
# time or a tenth of the re-encode's, or when a clip of half the length needs as much memory but
# for the index.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder passthrough-bench
python3 Benchmarks/Passthrough/passthrough.py "${1:-5}" "${2:-60}"
