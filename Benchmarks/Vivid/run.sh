#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares slowmo with its peers in turn, recording the kernel's virtual camera vivid at 60 fps in
# the emulated machine, to a file in memory. Measured are delivered and lost frames, CPU time per
# frame in the middle of the take, and peak memory.
#
#   Benchmarks/Vivid/run.sh [SECONDS] [ROUNDS]       default: 5 s and 3 rounds
#
# Losses are counted by the kernel, the same way for every program: the gaps between sequence
# numbers of dequeued buffers (v4l2_dqbuf). "starved" are losses for which vivid had no buffer left
# (vb2_buf_done); the others are frames that vivid itself skipped, as it does on a slow machine.
# Times are those of an emulated processor with one nanosecond per instruction, so only compare them
# with each other. GStreamer and the row "v4l2-ctl, no file" run in the first round alone; the other
# figures are medians of the rounds.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
mapfile -t lab_packages < <(grep -v '^#' Tests/Tools/Lab/packages)
prepare SLOWMO slowmo "${lab_packages[@]}" "${capture_peers[@]}"
seconds=${1:-5}
rounds=${2:-3}
# Each round runs up to five programs, and each takes time to start.
export LAB_TIMEOUT=$((300 + 5 * rounds * (seconds + 40)))
# The machine can write to this directory alone.
export LAB_OUT=$PWD/.lab-cache/out
mkdir -p "$LAB_OUT"
rm -f "$LAB_OUT/figures"
status=0
Tests/Tools/Lab/run.sh "SLOWMO='$SLOWMO' PYTHONPATH='$PYTHONPATH' FIGURES='$LAB_OUT/figures' \
  BENCHMARK=Vivid python3 Benchmarks/Vivid/vivid.py '$seconds' '$rounds'" || status=$?
[[ -z ${FIGURES-} || ! -e $LAB_OUT/figures ]] || cat "$LAB_OUT/figures" >>"$FIGURES"
exit "$status"
