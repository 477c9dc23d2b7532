#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost and the benefit of crash safety, beside ffmpeg in the same run. First, the same
# packets are copied by slowmo (fragments, journal, syncs, finalization) and by `ffmpeg -c copy`
# into a plain and into a fragmented file. Then recordings of a live source are killed at random
# instants, and the readable share of the delivered frames is measured.
#
#   Benchmarks/CrashSafety/run.sh [DIRECTORY] [ROUNDS] [KILLS]     default: here, 5 and 12
#
# DIRECTORY should be on a real disk, since syncs of a memory file system cost nothing.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder crash-safety "${1:-$PWD}"
python3 Benchmarks/CrashSafety/crash_safety.py "${2:-5}" "${3:-12}"
