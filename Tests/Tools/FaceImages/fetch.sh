#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the directory with dlib's images of faces in PGM, and their labels: boxes, and the points of
# a face (testing.xml and training.xml). Debian's package libdlib19.1 contains them. It is unpacked
# into ~/.cache/overcrank, once for all checkouts, and not installed.
#
#   Tests/Tools/FaceImages/fetch.sh
set -euo pipefail
# shellcheck source=Samples/install-packages.sh
. "$(dirname "$0")/../../../Samples/install-packages.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
images=$cache/face-pictures-2
mkdir -p "$cache"
exec 9>"$cache/face-images.lock"
flock 9
if [ ! -d "$images" ]; then
  install_packages ffmpeg
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  download_package libdlib19.1 "$work/package"
  source=$work/package/usr/share/doc/libdlib19.1/examples/faces
  mkdir "$work/images"
  for image in "$source"/*.jpg; do
    name=$(basename "$image" .jpg)
    ffmpeg -v error -nostdin -i "$image" -pix_fmt gray "$work/images/$name.pgm"
  done
  for labels in testing training; do
    cp "$source/${labels}_with_face_landmarks.xml" "$work/images/$labels.xml"
  done
  # An interrupted copy must not count as complete.
  rm -rf "$images.new"
  cp -r "$work/images" "$images.new"
  mv "$images.new" "$images"
fi
echo "$images"
