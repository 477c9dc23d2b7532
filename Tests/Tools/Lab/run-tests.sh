#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the emulated machine from inside, and runs in it the tests that need a real V4L2 driver or a
# newer Mesa, with existing build products:
#   swift build -c release --build-tests -Xswiftc -enable-testing
set -euo pipefail
cd "$(dirname "$0")/../../.."
programs=$(swift build -c release --show-bin-path)
bundle=$programs/OvercrankPackageTests.xctest
slowmo=$programs/slowmo
if ! [ -x "$bundle" ] || ! [ -x "$slowmo" ]; then
  echo "run-tests: build first: swift build -c release --build-tests -Xswiftc -enable-testing" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
camera=$programs/usb-camera
Tests/Tools/Lab/UsbCamera/build.sh "$camera"
# The frames of the camera's H.264 format: those of one thread are always the same.
ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=640x480:rate=30 -frames:v 240 -c:v libx264 \
  -preset ultrafast -tune zerolatency -x264-params aud=1:keyint=60:threads=1 -b:v 1M -f h264 "$camera.h264"
# The second vivid device is multi-planar; without it, the multi-planar tests have no node.
export LAB_VIVID=${LAB_VIVID:-n_devs=2 multiplanar=1,2}
# The run takes five minutes on two idle cores, and much longer on a busy machine.
export LAB_TIMEOUT=${LAB_TIMEOUT:-14400}
# Reading a file for the first time lets the guest's clock run on, so all programs are read
# beforehand.
mapfile -t tools < <(
  type -P aplay arecord bash cat ffmpeg ffprobe grep readlink seq sh sleep v4l2-ctl)
read_before=("$bundle" "$slowmo" "$camera" "${tools[@]}")
mapfile -t -O "${#read_before[@]}" read_before < <(
  ldd "${read_before[@]}" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u)
fork_server=$PWD/.build/fork-server
Tests/Tools/ForkServer/build.sh "$fork_server"
read_before+=("$fork_server"/*)
# Only the tests get the other Mesa; the programs that they call draw nothing.
mesa=$(Tests/Tools/Lab/fetch-mesa.sh)
Tests/Tools/Lab/run.sh "cat ${read_before[*]@Q} >/dev/null
  bash Tests/Tools/Lab/selftest-guest.sh '$PWD'
  . Tests/Tools/ForkServer/servers.sh
  start_fork_servers '$fork_server' /tmp/fork-servers '$slowmo' ffmpeg ffprobe
  cp '$camera' '$camera.h264' /tmp
  export SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0 OVERCRANK_FULL='${OVERCRANK_FULL-}'
  $mesa SLOWMO='$slowmo' USB_CAMERA=/tmp/usb-camera USB_CAMERA_H264=/tmp/usb-camera.h264 \
    '$bundle' --testing-library swift-testing \
    --filter 'VividTests|BufferImportTests'" 2>&1 |
  tee "$log"
if grep -q '^not ok ' "$log" || ! grep -q '^reached the end' "$log"; then
  echo "run-tests: the emulated machine is not what the tests need" >&2
  exit 1
fi
# If vivid failed to load, all tests would be skipped, which counts as a failure here.
if ! grep -q 'Test run with [1-9].* passed' "$log" ||
  grep -qE '(Test|Suite) .* skipped' "$log"; then
  echo "run-tests: not all tests ran and passed in the emulated machine" >&2
  exit 1
fi
