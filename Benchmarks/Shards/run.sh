#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the processor time of an export in 8 shards and their join against the same export in one
# part: 8 s of 1280x720 at 120 fps, played at 1/4 speed, exported at 30 fps. Extrapolates the elapsed
# time of an hour's film on 1000 computers.
#
#   Benchmarks/Shards/run.sh [RUNS]      default: 3 runs, about 5 minutes on two cores
#
# Exits with 1 when the shards and the join take more than 1.05 of the processor time.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder shards-bench
python3 Benchmarks/Shards/shards.py "$@"
