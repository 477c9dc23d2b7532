#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the takes of Tests/Fixtures/takes that are not there, with a slowmo of one's choice. A
# take that is there stays as the command of its day made it, which is what it is for.
#
#   Tests/Fixtures/make-takes.sh SLOWMO
set -euo pipefail
slowmo=$(realpath "${1:?usage: make-takes.sh SLOWMO}")
here=$(cd "$(dirname "$0")" && pwd)
directory=$here/takes
mkdir -p "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The prefix of the command: a fake camera, or nothing.
front=()
fake_camera() {
  [ -e libfakevideo.so ] || "$here/../Tools/FakeVideo4Linux/build.sh" "$work/libfakevideo.so"
  front=(env "FAKEVIDEO=$1" "LD_PRELOAD=$work/libfakevideo.so")
}
no_camera() { front=(); }

has() { [ -e "$directory/$1.mov.gz" ]; }
keep() { gzip -9 -n <"$1.mov" >"$directory/$1.mov.gz"; }

# Records a take: NAME DEVICE OPTIONS…
take() {
  local name=$1 device=$2
  shift 2
  if has "$name"; then return; fi
  "${front[@]}" "$slowmo" record "$device" -o "$name.mov" --progress none "$@"
  keep "$name"
}

# Kills a recording when its file holds more than some bytes: NAME BYTES DEVICE OPTIONS…
killed() {
  local name=$1 bytes=$2 device=$3
  shift 3
  if has "$name"; then return; fi
  "${front[@]}" "$slowmo" record "$device" -o "$name.mov" --progress none "$@" >/dev/null &
  local recording=$!
  until [ "$(stat -c %s "$name.mov" 2>/dev/null || echo 0)" -gt "$bytes" ]; do sleep 0.02; done
  kill -KILL $recording
  wait $recording 2>/dev/null || true
  keep "$name"
}

small=synthetic:128x96@60
yuyv=$small/yuyv
gray=$small/grey

take mjpeg "$small" --frames 12
take mjpeg-encoded "$yuyv" --frames 12 --codec mjpeg
take mjpeg-pcm "$small" --frames 6 --audio-codec pcm
take mjpeg-silent "$small" --frames 6 --audio none
take h264 "$yuyv" --frames 40 --codec h264
take ffv1 "$yuyv" --frames 6 --codec ffv1
take ffv1-gray "$gray" --frames 6 --codec ffv1
take raw-yuyv "$yuyv" --frames 6 --codec raw
take raw-gray "$gray" --frames 6 --codec raw
take drops 'synthetic:128x96@60?drop=20%&seed=7' --frames 24 --audio none
take titled "$small" --frames 6 --audio none --title 'A drop' --faststart
take burst "$small" --frames 6 --audio none --burst
# By a key that is pressed after a second, when there is something from before it.
press() { sleep 1 && echo || true; }
take clip "$small" --pre 100ms --post 100ms --trigger key < <(press)
fake_camera 'raw-color; hfr-usb mjpegbytes=2000'
take raw-uyvy '/dev/fakevideo0' --mode /uyvy --frames 6 --codec raw
take raw-rgb24 '/dev/fakevideo0' --mode /rgb3 --frames 6 --codec raw
take camera '/dev/fakevideo1' --mode 640x360@120/mjpg --frames 24
no_camera
# Packets of a camera that compresses itself: a file, for want of such a camera.
gzip -dc "$directory/h264.mov.gz" >source.mov
take h264-copy 'file:source.mov?pace=max' --codec copy
# A file of another program: chapters, a rotated image, tags.
if ! has foreign; then
  gzip -dc "$directory/mjpeg.mov.gz" >source.mov
  printf ';FFMETADATA1\ntitle=Foreign\n%s\n%s\n' \
    $'[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=100\ntitle=One' \
    $'[CHAPTER]\nTIMEBASE=1/1000\nSTART=100\nEND=200\ntitle=Two' >chapters
  ffmpeg -v error -i source.mov -i chapters -map 0:v -map 0:a -map_metadata 1 -c copy \
    -metadata:s:v rotate=90 foreign.mov
  keep foreign
fi

# Long enough to be killed in the middle, or to be cut out of.
"$slowmo" record "$yuyv" -o long.mov -t 4 --codec h264 --progress none >/dev/null
take clip-h264 file:long.mov --codec copy --pre 100ms --post 100ms --trigger key < <(press)

killed killed-mjpeg 60000 "$small"
killed killed-h264 30000 "$yuyv" --codec h264
killed killed-ffv1 100000 "$yuyv" --codec ffv1
killed killed-raw-yuyv 300000 "$yuyv" --codec raw
killed killed-raw-gray 300000 "$gray" --codec raw
killed killed-drops 60000 'synthetic:128x96@60?drop=20%&seed=7' --audio none
fake_camera raw-color
killed killed-raw-uyvy 100000 /dev/fakevideo0 --mode /uyvy --codec raw
killed killed-raw-rgb24 100000 /dev/fakevideo0 --mode /rgb3 --codec raw
no_camera
killed killed-h264-copy 30000 file:long.mov --codec copy
