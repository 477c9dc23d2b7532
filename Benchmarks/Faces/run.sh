#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds the labeled faces of dlib's pictures in three sizes, plain, in noise and in the dark: for each
# way to search, the faces that are found, and the processor time of an image at the median. dlib's own
# detector, on the same images and on images of twice their size, is the peer in the same run. Then the
# pictures are tilted by up to 45 degrees, and the roll of each face is compared with the labels. Fails
# if fewer faces are found than by dlib, or the roll is off.
#
#   Benchmarks/Faces/run.sh
#
# Takes some minutes after the build.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "$0")/../Support/prepare.sh"
install_packages "${build_packages[@]}" "${optional_packages[@]}" ffmpeg >&2
Samples/install-zxing.sh
Samples/install-faces.sh
export OVERCRANK_FULL=1
scratch=.build
flags=${SWIFT_BUILD_FLAGS-}
if [[ $flags != *-enable-testing* ]]; then
  # Only the tests of capture and recognition, in a folder of their own.
  export OVERCRANK_TESTS=capture
  scratch=.build-faces
  flags="$flags -Xswiftc -enable-testing"
fi
# shellcheck disable=SC2086  # Words, not one.
swift build -c release --scratch-path "$scratch" $flags --build-tests >&2
python3 Benchmarks/Faces/faces.py "$scratch/release/OvercrankPackageTests.xctest" \
  --testing-library swift-testing --no-parallel
