#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a constant-rate export: 8 s of 1280x720 at 240 fps, with seconds 2 to 4 at 1/8 speed,
# exported at 30 fps. The peers are ffmpeg's filters for the same frames with the same encoder,
# settings and threads, and that encoder alone on raw frames.
#
#   Benchmarks/ConstantRate/run.sh [RUNS] [hold|nearest|blend]      default: 3 runs, hold
#
# Needs 1 GB of memory for the raw frames. Exits with 1 when the numbers of frames differ, or when
# slowmo takes more than 0.83 of ffmpeg's time.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder constant-rate-bench
python3 Benchmarks/ConstantRate/constant_rate.py "$@"
