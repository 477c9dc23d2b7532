#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the simulated driver: its self-test, and independent programs that stream from it. Usage:
# check.sh [DIRECTORY], the build directory. SLOWMO names a slowmo binary to test as well.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-$(mktemp -d)}
mkdir -p "$directory"
library=$directory/libfakevideo.so
truth=$directory/truth.json
output=$directory/output.txt
failures=0

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# with CONFIGURATION COMMAND…: runs a program on simulated devices and stores its output in a file.
with() {
  configuration=$1
  shift
  rm -f "$truth"
  FAKEVIDEO=$configuration FAKEVIDEO_TRUTH=$truth LD_PRELOAD=$library "$@" \
    >"$output" 2>&1 </dev/null || {
    fail "exit status $? of: $* (on \"$configuration\")"
    tail -n 5 "$output" >&2
  }
}

# says TEXT WHAT: checks that the output of the last program contains TEXT.
says() { grep -q -- "$1" "$output" || fail "$2: no \"$1\" in its output"; }

# streams FRAMES CONFIGURATION COMMAND…: checks that a program reads this many frames without loss.
# With four buffers of 4 ms, a busy machine may be too slow. A run is repeated if the only losses
# are frames without a free buffer.
streams() {
  frames=$1
  shift
  for try in $(seq 30); do
    with "$@"
    test -s "$truth" || { fail "no truth was written: $*"; return; }
    if grep -q '"corrupt":0,"lost_start":0,"lost_device":0,"lost_kernel":0' "$truth"; then break; fi
    if ! grep -q '"corrupt":0,"lost_start":0,"lost_device":0,"lost_kernel":' "$truth" ||
      test "$try" -eq 30; then
      fail "frames were lost: $* ($(cat "$truth"))"
      break
    fi
    echo "no buffer for a frame, which a busy machine may cause; try $try: $*" >&2
  done
  taken=$(sed -n 's/.*"dequeued":\([0-9]*\).*/\1/p' "$truth" | head -n 1)
  test "${taken:-0}" -ge "$frames" || fail "$taken frames of $frames: $*"
}

"$here/build.sh" "$library"
"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -o "$directory/selftest" \
  "$here"/*.c "$here"/selftest/*.c -lpthread
"$directory/selftest" || fail "the self-test"

if command -v v4l2-ctl >/dev/null; then
  with "" v4l2-ctl -d /dev/fakevideo0 --all
  says "Driver name *: uvcvideo" "v4l2-ctl --all"
  says "auto_exposure" "v4l2-ctl --all"
  with hfr-usb v4l2-ctl -d /dev/fakevideo0 --list-formats-ext
  says "(240.000 fps)" "v4l2-ctl --list-formats-ext"
  streams 480 hfr-usb v4l2-ctl -d /dev/fakevideo0 \
    --set-fmt-video=width=1280,height=720,pixelformat=MJPG --set-parm=240 \
    --stream-mmap=32 --stream-count=480
  streams 1000 tiny v4l2-ctl -d /dev/fakevideo0 --set-parm=1000 --stream-mmap=32 --stream-count=1000
else
  echo "no v4l2-ctl (package v4l-utils): not tried" >&2
fi

if command -v v4l2-compliance >/dev/null; then
  for description in uvc-webcam hfr-usb mono-hfr tiny odd-rates yuyv-1080p120 hdmi-card tv-card \
    stepwise-sensor continuous-sensor mplane-sensor two-planes; do
    with "$description" v4l2-compliance -s 10 -d /dev/fakevideo0
    says "Failed: 0" "v4l2-compliance on $description"
  done
else
  echo "no v4l2-compliance (package v4l-utils): not tried" >&2
fi

if command -v ffmpeg >/dev/null; then
  streams 480 hfr-usb ffmpeg -v error -y -f v4l2 -input_format mjpeg -video_size 1280x720 \
    -framerate 240 -i /dev/fakevideo0 -frames:v 480 -c copy "$directory/take.mov"
  count=$(ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 \
    "$directory/take.mov" | tr -cd 0-9)
  test "${count:-0}" = 480 || fail "ffmpeg wrote $count frames of 480"
  ffmpeg -v error -xerror -i "$directory/take.mov" -frames:v 20 -f null - >"$output" 2>&1 \
    || fail "the JPEGs do not decode: $(head -n 1 "$output")"
  test ! -s "$output" || fail "a decoder complains: $(head -n 1 "$output")"
else
  echo "no ffmpeg: not tried" >&2
fi

if command -v gst-launch-1.0 >/dev/null; then
  streams 480 hfr-usb gst-launch-1.0 -q v4l2src device=/dev/fakevideo0 num-buffers=480 \
    ! image/jpeg,width=1280,height=720,framerate=240/1 ! fakesink
else
  echo "no gst-launch-1.0 (package gstreamer1.0-tools): not tried" >&2
fi

if [ -n "${SLOWMO:-}" ]; then
  with hfr-usb "$SLOWMO" modes /dev/fakevideo0
  says "1280x720@240/mjpg" "slowmo modes"
  streams 480 hfr-usb "$SLOWMO" record /dev/fakevideo0 --mode 1280x720@240/mjpg --frames 480 \
    -y -o "$directory/slowmo.mov"
fi

test "$failures" -eq 0 || exit 1
echo "the fake driver works: every tested program streamed without a loss"
