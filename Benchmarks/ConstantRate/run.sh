#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An export at a constant rate: 8 s of 1280x720 at 240 frames a second, of which the seconds 2 to 4
# play at an eighth, at 30. Beside it, in the same run, ffmpeg's filters that show the same frames,
# with the same encoder, settings and threads, and that encoder alone on the pictures themselves.
#
#   Benchmarks/ConstantRate/run.sh [RUNS] [hold|nearest|blend]      3 runs of each and hold, unless said
#
# Needs 1 GB of memory for the pictures. Exits with 1 when the files differ in their number of
# frames, or when ours takes more than 0.9 of the time of ffmpeg's.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder constant-rate-bench
python3 Benchmarks/ConstantRate/constant_rate.py "$@"
