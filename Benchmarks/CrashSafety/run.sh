#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it costs that a recording survives a crash, and what it is worth, beside ffmpeg in the same
# run: the same packets copied by slowmo (fragments, journal, syncs, and made plain at the end), by
# `ffmpeg -c copy` into a plain file and into fragments; then recordings of a live source killed at
# random instants, and how much of what they had been given can be read.
#
#   Benchmarks/CrashSafety/run.sh [FOLDER] [ROUNDS] [KILLS]     here, 5 and 12, unless told otherwise
#
# FOLDER should lie on a real disk, since memory is synced for nothing.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder crash-safety "${1:-$PWD}"
python3 Benchmarks/CrashSafety/crash_safety.py "${2:-5}" "${3:-12}"
