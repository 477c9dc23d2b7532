#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the directory with dlib's pictures of faces as PGM images, with the labels that come with them:
# boxes, and the points of a face (testing.xml and training.xml). They are in Debian's package
# libdlib19.1, which is unpacked into ~/.cache/overcrank, once for all checkouts, and not installed.
#
#   Tests/Tools/FacePictures/fetch.sh
set -euo pipefail
# shellcheck source=Samples/install-packages.sh
. "$(dirname "$0")/../../../Samples/install-packages.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
pictures=$cache/face-pictures-2
mkdir -p "$cache"
exec 9>"$cache/face-pictures.lock"
flock 9
if [ ! -d "$pictures" ]; then
  install_packages ffmpeg
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  download_package libdlib19.1 "$work/package"
  source=$work/package/usr/share/doc/libdlib19.1/examples/faces
  mkdir "$work/pictures"
  for picture in "$source"/*.jpg; do
    name=$(basename "$picture" .jpg)
    ffmpeg -v error -nostdin -i "$picture" -pix_fmt gray "$work/pictures/$name.pgm"
  done
  for labels in testing training; do
    cp "$source/${labels}_with_face_landmarks.xml" "$work/pictures/$labels.xml"
  done
  # A copy that is interrupted must not be taken for all of them.
  rm -rf "$pictures.new"
  cp -r "$work/pictures" "$pictures.new"
  mv "$pictures.new" "$pictures"
fi
echo "$pictures"
