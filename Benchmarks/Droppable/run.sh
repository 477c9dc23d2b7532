#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of droppable H.264 frames: bits and quality beside a take without them, and the
# frames that a kill would lose because the encoder still has them. The scenes are the synthetic
# camera and two moving test images with noise, recorded from files.
#
#   Benchmarks/Droppable/run.sh [FRAMES] [N...]     default: 240 frames; 2 4 8 16
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg
make_folder droppable-bench
frames=${1:-240}
(($#)) && shift
(($#)) || set -- 2 4 8 16
python3 Benchmarks/Droppable/droppable.py "$frames" "$@"
