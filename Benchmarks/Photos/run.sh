#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the processor time of a 1080p JPEG file with Exif and a thumbnail. The peers in the same
# run are libjpeg-turbo's cjpeg, with the same quality and chroma, and ffmpeg's encoder; both write
# neither. Reported are milliseconds per image, as medians of the rounds.
#
#   Benchmarks/Photos/run.sh [ROUNDS] [QUALITY]      default: 9 rounds of quality 90
#
# Takes about 20 s after the build. Exits with 1 when an image takes more than 8 ms.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare ENCODE_PHOTOS EncodePhotos ffmpeg libjpeg-turbo-progs libimage-exiftool-perl
make_folder photo-bench
python3 Benchmarks/Photos/photos.py "${1:-9}" "${2:-90}"
