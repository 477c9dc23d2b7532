#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the face detector of dlib with the C interface of Samples/FaceDetector, and installs it as the
# Debian package libovercrank-faces1: one shared library, which programs load when they first search for
# faces, and the detector as a model file, as dlib stores those that it trained. A second library, for
# processors with AVX2 (x86-64-v3), is a tenth to a fifth faster; the dynamic loader chooses it. dlib
# comes from Debian's libdlib-dev, which is not installed: it needs X11 and OpenCV, and the detector
# needs neither. The package is kept in ~/.cache/overcrank, so that it is built once for all checkouts;
# that takes a minute.
#
#   Samples/install-faces.sh              installs the package, unless it is installed
#   Samples/install-faces.sh --remove     removes it
set -euo pipefail
# To be increased with each change to Samples/FaceDetector.
version=19.24-10
name=libovercrank-faces1
directory=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=Samples/install-packages.sh
. "$directory/install-packages.sh"

build_library() {
  local work=$1 tree=$2 headers libraries
  install_packages g++
  echo "Building the face detector of dlib ..." >&2
  download_package libdlib-dev "$work/dlib"
  headers=$work/dlib/usr/include
  # The detector needs no linear algebra and no image files.
  sed -i -E '/#define (DLIB_(USE_BLAS|USE_LAPACK|JPEG_SUPPORT|PNG_SUPPORT)|LAPACK_FORCE)/d' \
    "$headers/dlib/config.h"
  libraries=$(/usr/bin/g++ -print-multiarch)
  mkdir -p "$tree/usr/share/$name"
  /usr/bin/g++ -std=c++17 -O1 -no-pie -DDLIB_NO_GUI_SUPPORT -isystem "$headers" \
    "$directory/FaceDetector/write-model.cpp" "$work/dlib/usr/lib/$libraries/libdlib.a" -lpthread \
    -o "$work/write-model"
  "$work/write-model" "$tree/usr/share/$name/frontal.svm"
  # Its symbols; those of dlib stay inside.
  echo "{ global: overcrank_face_functions_1; overcrank_face_functions_2; overcrank_face_functions_3; local: *; };" >"$work/exports"
  # library DIRECTORY [FLAG...]: the library in a directory of the package.
  library() {
    local target=$tree/usr/lib/$libraries/$1
    shift
    mkdir -p "$target"
    /usr/bin/g++ -std=c++17 -O3 -fPIC -fvisibility=hidden -DDLIB_NO_GUI_SUPPORT "$@" -isystem "$headers" \
      -I "$directory/../Sources/CFaceDetector" "-Wa,-I$tree/usr/share/$name" \
      -c "$directory/FaceDetector/face-detector.cpp" -o "$work/detector.o"
    /usr/bin/g++ -shared -Wl,-soname,libovercrank-faces.so.1 "-Wl,--version-script=$work/exports" \
      -Wl,--gc-sections -Wl,-z,defs -s "$work/detector.o" -lpthread -o "$target/libovercrank-faces.so.1"
  }
  library .
  # https://sourceware.org/glibc/manual/latest/html_node/Hardware-Capability-Subdirectories.html
  case $(uname -m) in x86_64) library glibc-hwcaps/x86-64-v3 -march=x86-64-v3 ;; esac
  install -D -m 644 "$work/dlib/usr/share/doc/libdlib-dev/copyright" \
    "$tree/usr/share/doc/$name/copyright"
}

install_library "$name" "$version" "face detector of Debian's dlib with a C interface" "$@"
