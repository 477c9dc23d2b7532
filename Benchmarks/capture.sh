#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same fake camera, at native speed, recorded by slowmo and by its peers in turn, to a file in
# memory: frames delivered and lost, processor time a frame, and peak memory.
#
#   Benchmarks/capture.sh [SECONDS] [ROUNDS]     5 s and 3 rounds, unless told otherwise
#
# What was lost is the camera's own account; "starved" are those of them that were lost for want of
# a buffer. The fake runs inside each program, so its cost is in every figure alike; v4l2-ctl
# without a file shows how much that is. Each figure is the median of the rounds.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
install_packages ffmpeg v4l-utils gstreamer1.0-tools gstreamer1.0-plugins-base \
  gstreamer1.0-plugins-good python3 >&2

seconds=${1:-5}
rounds=${2:-3}
swift build -c release --product slowmo >&2
slowmo=$(swift build -c release --show-bin-path)/slowmo
work=$(mktemp -d /dev/shm/capture-bench.XXXXXX)
trap 'rm -rf "$work"' EXIT
Tests/FakeVideo4Linux/build.sh "$work/libfakevideo.so"
export SLOWMO="$slowmo" WORK="$work"
exec python3 Benchmarks/capture.py "$seconds" "$rounds"
