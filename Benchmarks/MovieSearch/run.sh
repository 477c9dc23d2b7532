#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches movies of 1280x720 at 240 fps with `slowmo scan`: codes that change every five frames, each
# with more blur and noise than the one before; a still code beside something that moves, as H.264; and
# faces that move. Prints the frames in which the code is read, the wrong texts, and the processor time
# and the duration for ten seconds of the movie. The peer for codes, in the same run and on the same
# frames, is zxing-cpp's Python module, which reads each frame by itself. The last search is limited by
# --processor-share, and its greatest share over ten seconds is measured.
#
#   Benchmarks/MovieSearch/run.sh [CODES]     default: 48 codes, which are 240 frames
#
# Takes three minutes after the build. Exits with 1 if a goal is missed.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
prepare SLOWMO_FULL slowmo-full "${optional_packages[@]}" zint python3-numpy python3-venv ffmpeg
make_folder movie-search
/usr/bin/python3 -m venv "$WORK/python"
"$WORK/python/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
  zxing-cpp==3.1.1
FACES=$(Tests/Tools/FaceImages/fetch.sh | tail -n 1)
export FACES
/usr/bin/python3 Benchmarks/MovieSearch/movie-search.py "${1:-48}"
