#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the limits of a machine: long takes of fast cameras while another program keeps a core
# busy, and the maximum rate of the synthetic camera without a loss, for each size and storage
# method.
#
#   Benchmarks/Limits/run.sh [SECONDS] [SEARCH]      default: takes of 60 s, and of 1 s in the search
#
# The files are in memory. The synthetic camera draws its frames in the same process and may itself
# limit the rate. The limit is found by bisection, to within 5 %.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo
make_folder limits-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
python3 Benchmarks/Limits/limits.py "${1:-60}" "${2:-1}"
