#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kernel's own virtual camera vivid at 60 fps, in the emulated machine, recorded by slowmo and
# by its peers in turn, to a file in memory: frames delivered and lost, processor time a frame,
# and peak memory.
#
#   Benchmarks/Vivid/run.sh [SECONDS] [ROUNDS]       5 s and 3 rounds, unless told otherwise
#
# What was lost is the kernel's account, the same for every program: what is missing between the
# sequence numbers of the buffers it dequeued (v4l2_dqbuf). "starved" are those of them for which
# vivid had no buffer left (vb2_buf_done); of the others vivid skipped the frame itself, as it does
# on a slow machine. Times are those of an emulated processor, a nanosecond an instruction:
# compare them with each other. Each figure is the median of the rounds.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
mapfile -t lab_packages < <(grep -v '^#' Tests/Tools/Lab/packages)
prepare SLOWMO slowmo "${lab_packages[@]}" "${capture_peers[@]}"
seconds=${1:-5}
rounds=${2:-3}
# Five programs a round, twice each, and each takes its time to start.
export LAB_TIMEOUT=$((300 + 5 * rounds * (seconds + 40)))
exec Tests/Tools/Lab/run.sh "SLOWMO='$SLOWMO' python3 Benchmarks/Vivid/vivid.py '$seconds' '$rounds'"
