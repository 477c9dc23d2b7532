#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the share of frames that are lost, for each rate, size, pixel format and load, by slowmo,
# ffmpeg, GStreamer and v4l2-ctl. All record the same simulated camera at its real rate to a file in
# memory: MJPEG with a ninth of a byte for each pixel, and YUYV. The camera counts the losses. "Load"
# is a busy program on each core. The result is a table, and a heat map as SVG and PNG.
#
#   Benchmarks/Drops/run.sh [SECONDS] [DIRECTORY]     default: takes of 3 s; drop-map
#
# Takes 11 minutes. A recording that would need more than half of the free memory is left out.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo "${capture_peers[@]}" librsvg2-bin
make_folder drop-map
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
mkdir -p "${2:-drop-map}"
python3 Benchmarks/Drops/drops.py "${1:-3}" "${2:-drop-map}"
rsvg-convert --zoom 2 "${2:-drop-map}/drops.svg" --output "${2:-drop-map}/drops.png"
