#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the time of short commands, beside `ffprobe -version`: `--help`, `devices` and `info`. The
# floor is a C program that only links FFmpeg's libraries: the dynamic linker loads about 150 of them.
#
#   Benchmarks/StartUp/run.sh [ROUNDS]      default: 30 rounds, 10 s after the build
#
# Exits with 1 when a command takes more than 0.5 of ffprobe's time.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg gcc
make_folder start-up
echo 'int main(void) { return 0; }' | gcc -x c - -o "$WORK/floor" -Wl,--no-as-needed \
  -lavformat -lavcodec -lswscale -lswresample -lavutil
python3 Benchmarks/StartUp/start_up.py "${1:-30}"
