#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the face detector of dlib with a C interface (Samples/FaceDetector), and installs it as the
# Debian package overcrank-faces-dev: a static library and its header, in directories that compilers
# search. dlib comes from Debian's libdlib-dev, which is not installed: it needs X11 and OpenCV, and
# the detector needs neither. The package is kept in ~/.cache/overcrank, so that it is built once for
# all checkouts; that takes 20 seconds.
#
#   Samples/install-faces.sh              installs the package, unless it is installed
#   Samples/install-faces.sh --remove     removes it
set -euo pipefail
# To be increased with each change to Samples/FaceDetector.
version=19.24-1
name=overcrank-faces-dev
directory=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=Samples/install-packages.sh
. "$directory/install-packages.sh"
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
if [ "${1-}" = --remove ]; then
  exec "${root[@]}" dpkg --purge "$name"
fi
[ $# -eq 0 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 64; }

installed() { dpkg-query -W -f '${db:Status-Status} ${Version}' "$name" 2>/dev/null || true; }
[ "$(installed)" != "installed $version" ] || exit 0

architecture=$(dpkg --print-architecture)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
package=$cache/${name}_${version}_$architecture.deb
mkdir -p "$cache"
# Another checkout may be building it now.
exec 9>"$cache/faces.lock"
flock 9
[ "$(installed)" != "installed $version" ] || exit 0

if [ ! -f "$package" ]; then
  install_packages g++ binutils
  echo "Building the face detector of dlib ..." >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
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
  tree=$work/tree
  install -D -m 644 -t "$tree/usr/include/overcrank-faces" \
    "$directory/FaceDetector/face-detector.h"
  mkdir -p "$tree/usr/lib/$libraries" "$tree/DEBIAN"
  ar rcs "$tree/usr/lib/$libraries/libovercrank-faces.a" "$work/faces.o"
  install -D -m 644 "$work/dlib/usr/share/doc/libdlib-dev/copyright" \
    "$tree/usr/share/doc/$name/copyright"
  cat >"$tree/DEBIAN/control" <<CONTROL
Package: $name
Version: $version
Architecture: $architecture
Maintainer: Overcrank maintainers <maintainers@overcrank.org>
Section: libdevel
Priority: optional
Description: face detector of dlib as a static library, for builds of Overcrank
 Made by Samples/install-faces.sh of Overcrank with Debian's dlib.
CONTROL
  dpkg-deb --root-owner-group --build "$tree" "$work/package.deb" >&2
  # A copy that is interrupted must not be taken for the package.
  cp "$work/package.deb" "$package.new"
  mv "$package.new" "$package"
fi
"${root[@]}" dpkg --install "$package" >&2
