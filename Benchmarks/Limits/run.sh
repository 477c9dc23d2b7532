#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a machine can take: long takes of fast cameras while another program keeps a core busy, and
# the highest rate of the synthetic camera without a loss, for each size and way to store it.
#
#   Benchmarks/Limits/run.sh [SECONDS] [SEARCH]      takes of 60 s, and of 1 s in the search
#
# The files are in memory. The synthetic camera draws its pictures in the same process and may be
# what ends the rate; the limit is found by halving, to a twentieth.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare CHECK AllocationCheck
prepare SLOWMO slowmo
make_folder limits-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
python3 Benchmarks/Limits/limits.py "${1:-60}" "${2:-1}"
echo
"$CHECK"
