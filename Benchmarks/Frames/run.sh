#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how fast frames become NumPy arrays: all frames of 4 s of 1920x1080 at 240 fps, H.264 and
# Motion JPEG, as yuv420p, and 100 random frames. The peers are ffmpeg's rawvideo, PyAV, and decord,
# which gives RGB.
#
#   Benchmarks/Frames/run.sh [RUNS]      default: 3 runs
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg python3-venv
make_folder frames-bench
python=$PWD/.build/python-frames/bin/python3
if ! "$python" -c 'import av, numpy' 2>/dev/null; then
  /usr/bin/python3 -m venv "${python%/bin/python3}"
  "$python" -m pip install --quiet --only-binary :all: av numpy
  "$python" -m pip install --quiet --only-binary :all: decord || echo "decord cannot be had from here" >&2
fi
"$python" Benchmarks/Frames/frames.py "$@"
