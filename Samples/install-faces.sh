#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the face detector of dlib with a C interface (Samples/FaceDetector), and installs it as the
# Debian package overcrank-faces-dev: a static library and its header, in directories that compilers
# search, and the detector as a model file, as dlib stores those that it trained. dlib comes from
# Debian's libdlib-dev, which is not installed: it needs X11 and OpenCV, and the detector needs neither.
# The package is kept in ~/.cache/overcrank, so that it is built once for all checkouts; that takes 40
# seconds.
#
#   Samples/install-faces.sh              installs the package, unless it is installed
#   Samples/install-faces.sh --remove     removes it
set -euo pipefail
# To be increased with each change to Samples/FaceDetector.
version=19.24-4
name=overcrank-faces-dev
directory=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=Samples/install-packages.sh
. "$directory/install-packages.sh"

build_library() {
  local work=$1 tree=$2 headers libraries
  install_packages g++ binutils
  echo "Building the face detector of dlib ..." >&2
  download_package libdlib-dev "$work/dlib"
  headers=$work/dlib/usr/include
  # The detector needs no linear algebra and no image files.
  sed -i -E '/#define (DLIB_(USE_BLAS|USE_LAPACK|JPEG_SUPPORT|PNG_SUPPORT)|LAPACK_FORCE)/d' \
    "$headers/dlib/config.h"
  libraries=$(/usr/bin/g++ -print-multiarch)
  /usr/bin/g++ -std=c++17 -O3 -fPIC -fvisibility=hidden -DDLIB_NO_GUI_SUPPORT -isystem "$headers" \
    -c "$directory/FaceDetector/face-detector.cpp" -o "$work/detector.o"
  # With the few objects of dlib that it uses, as one object whose other names are its own.
  ld -r --force-group-allocation -o "$work/faces.o" "$work/detector.o" "$work/dlib/usr/lib/$libraries/libdlib.a"
  objcopy --wildcard --keep-global-symbol='overcrank_face_detector_*' "$work/faces.o"
  install -D -m 644 -t "$tree/usr/include/overcrank-faces" \
    "$directory/FaceDetector/face-detector.h"
  mkdir -p "$tree/usr/lib/$libraries"
  ar rcs "$tree/usr/lib/$libraries/libovercrank-faces.a" "$work/faces.o"
  /usr/bin/g++ -std=c++17 -O1 -DDLIB_NO_GUI_SUPPORT -isystem "$headers" \
    "$directory/FaceDetector/write-model.cpp" "$work/dlib/usr/lib/$libraries/libdlib.a" -lpthread \
    -o "$work/write-model"
  mkdir -p "$tree/usr/share/$name"
  "$work/write-model" "$tree/usr/share/$name/frontal.svm"
  install -D -m 644 "$work/dlib/usr/share/doc/libdlib-dev/copyright" \
    "$tree/usr/share/doc/$name/copyright"
}

install_library "$name" "$version" "face detector of Debian's dlib as a static library" "$@"
