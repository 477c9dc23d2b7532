#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the emulated USB camera with slowmo, ffmpeg, GStreamer and v4l2-ctl in one run of the emulated
# machine, and prints their reported losses and their cost, with existing build products:
#   swift build -c release
set -euo pipefail
cd "$(dirname "$0")/../../../.."
programs=${1:-$(swift build -c release --show-bin-path)}
slowmo=$programs/slowmo
camera=$programs/usb-camera
Tests/Tools/Lab/UsbCamera/build.sh "$camera"
# Reading a file for the first time lets the guest's clock run on.
mapfile -t read_before < <(
  files=("$slowmo" "$camera" $(type -P bash cat ffmpeg gst-launch-1.0 grep sed sleep v4l2-ctl))
  printf '%s\n' "${files[@]}"
  ldd "${files[@]}" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u)
Tests/Tools/Lab/run.sh "cat ${read_before[*]@Q} >/dev/null
  bash Tests/Tools/Lab/UsbCamera/compare-guest.sh '$slowmo' '$camera'"
