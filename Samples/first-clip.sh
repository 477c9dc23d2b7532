#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to a slow-motion clip. Installs missing packages, builds the command, and
# records four seconds of the first camera (or of the synthetic one). Then slows one second down
# eight times, and exports the result in two ways.
#
#   Samples/first-clip.sh [DIRECTORY]     DIRECTORY: where the clips go; default: ./Clips
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=Samples/install-packages.sh
. "$repo/Samples/install-packages.sh"

command -v swift >/dev/null || {
  echo "first-clip: swift is not on the PATH; install Swift 6.3 from https://swift.org/install" >&2
  exit 1
}
install_packages "${build_packages[@]}"

echo "Building the command (release) ..." >&2
# Tests/run.sh passes the flags of its own build.
# shellcheck disable=SC2086  # Words, not one.
swift build --package-path "$repo" -c release ${SWIFT_BUILD_FLAGS:-} --product slowmo >&2
slowmo="$(swift build --package-path "$repo" -c release --show-bin-path)/slowmo"

# The first real camera, if there is one. The synthetic camera is announced as such.
device=$("$slowmo" devices | grep -o -m 1 '/dev/video[0-9]*' || true)
if [ -n "$device" ]; then
  echo "Recording $device at its fastest mode."
else
  device=synthetic:1280x720@240
  echo "No camera found: recording the program's own synthetic one, $device."
fi

directory=${1:-$PWD/Clips}/$(date +%Y-%m-%d_%H%M%S)
mkdir -p "$directory"
"$slowmo" record "$device" -o "$directory/take.mov" -t 4
"$slowmo" retime "$directory/take.mov" -o "$directory/slow-passthrough.mov" \
  --range 1..2 --speed 1/8 --copy
"$slowmo" retime "$directory/take.mov" -o "$directory/slow-30fps.mp4" \
  --range 1..2 --speed 1/8 --fps 30

cat <<END

Your clips:
  $directory/take.mov               as it was captured
  $directory/slow-passthrough.mov   second 1..2 eight times slower, not re-encoded
  $directory/slow-30fps.mp4         the same at a constant 30 frames a second
Play them with mpv, VLC or ffplay (for example: mpv $directory/slow-30fps.mp4); browsers and
phones play the last one.
END
