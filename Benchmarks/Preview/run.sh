#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how late a preview is, beside mpv, ffplay and GStreamer: a simulated camera with 640x480 at
# 60 fps paints the time of each frame, and a program reads the pixels of the X server 2000 times per
# second. The figure is the time from the camera's frame to the first pixels that show it, with
# software rendering. Then measures the upload of a 1280x720 frame as textures. Takes about a minute.
#
#   Benchmarks/Preview/run.sh [SECONDS]     default: 5 seconds per program
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo-full "${optional_packages[@]}" mpv ffmpeg gstreamer1.0-tools \
  gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-x xvfb libx11-6 clang
prepare TEXTURE_TIMING TextureTiming
make_folder preview-bench
Tests/Tools/FakeVideo4Linux/build.sh "$WORK/libfakevideo.so"
python3 Benchmarks/Preview/preview.py "${1:-5}"
"$TEXTURE_TIMING"
