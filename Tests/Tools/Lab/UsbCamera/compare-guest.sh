#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of compare.sh that runs in the emulated machine. Usage: compare-guest.sh SLOWMO CAMERA
#
# Each program copies JPEG frames of 20000 bytes at 120 fps to a file in memory. The guest's clock counts
# instructions: each takes a nanosecond. The processor time of a program is therefore the number of its
# instructions, including those of the kernel on its behalf. The difference of a long and a short take
# leaves out what a program does once.
set -euo pipefail
cp "$1" "$2" /tmp
slowmo=/tmp/${1##*/} camera=/tmp/${2##*/}
log=/tmp/log errors=/tmp/errors report=/tmp/report
# A take of `long` frames shows a thousandth of the cost of a frame.
short=200 faulty=800 long=2600
# The places are behind the frames with which slowmo verifies the rate.
faults=(--fault 500:packets:3 --fault 560:skip --fault 620:mute --fault 680:truncate --fault 740:stuck)

plug() { # plug [OPTION...]
  "$camera" --log "$log" "$@" &
  plugged=$!
  node=
  while [[ -z $node ]]; do
    sleep 0.1
    for entry in /sys/class/video4linux/*; do
      if [[ $(<"$entry/name") == Emulated* && $(<"$entry/index") == 0 ]]; then node=/dev/${entry##*/}; fi
    done
  done
  sleep 1
}

unplug() {
  kill "$plugged"
  wait "$plugged"
  while [[ -e $node ]]; do sleep 0.1; done
}

take() { # take PROGRAM FRAMES
  case $1 in
    slowmo) "$slowmo" record "$node" -o /tmp/take.mov -y --mode 640x480@120/mjpg --frames "$2" --audio none \
      --json --progress none >"$report" ;;
    ffmpeg) ffmpeg -nostdin -y -f v4l2 -input_format mjpeg -framerate 120 -video_size 640x480 -i "$node" \
      -frames:v "$2" -c copy /tmp/take.mov ;;
    GStreamer) GST_DEBUG=v4l2src:2 gst-launch-1.0 -q v4l2src device="$node" num-buffers="$2" ! \
      image/jpeg,width=640,height=480,framerate=120/1 ! qtmux ! filesink location=/tmp/take.mov ;;
    v4l2-ctl) v4l2-ctl -d "$node" --set-fmt-video=width=640,height=480,pixelformat=MJPG --set-parm=120 \
      --stream-mmap=8 --stream-count="$2" --stream-to=/tmp/take.mjpg --verbose ;;
  esac 2>"$errors" >>"$errors.output"
}

# The processor time of a take in milliseconds.
cost() { # cost PROGRAM FRAMES
  local times TIMEFORMAT='%3U %3S'
  times=$({ time take "$1" "$2"; } 2>&1)
  times=${times//./}
  set -- $times
  echo $((10#$1 + 10#$2))
}

# The frames that a program itself reports as lost or damaged.
reported() { # reported PROGRAM
  case $1 in
    slowmo) sed -n '/"ledger"/,/}/p' "$report" |
      sed -n 's/.*"\(corrupt\|lost_device\|lost_kernel\|lost_queue\)" : \([0-9]*\).*/\2/p' | head -n 4 |
      paste -sd+ | bc ;;
    ffmpeg) grep -c 'corrupt' "$errors" || true ;;
    GStreamer) sed -n 's/.*lost frames detected: count = \([0-9]*\).*/\1/p' "$errors" | paste -sd+ | sed 's/^$/0/' | bc ;;
    v4l2-ctl) sed -n 's/.*dropped: \([0-9]*\).*/\1/p' "$errors" "$errors.output" | paste -sd+ | sed 's/^$/0/' | bc ;;
  esac
}

# The frames of the last stream that were lost or damaged on their way, from the log of the camera: a muted
# frame costs the next one, too.
lost() {
  awk '$1 == "start" { count = 0 }
    $1 == "frame" && $4 == "mute" { count++ }
    $1 == "frame" && $4 != "sent" { count++ }
    END { print count }' "$log"
}

printf '%-10s %20s %9s %25s\n' program 'lost or damaged' reported 'instructions per frame'
for program in slowmo ffmpeg GStreamer v4l2-ctl; do
  plug
  : >"$errors.output"
  take "$program" "$short"
  times=($(cost "$program" "$short") $(cost "$program" "$long"))
  unplug
  plug "${faults[@]}"
  : >"$errors.output"
  take "$program" "$faulty"
  found=$(reported "$program")
  unplug
  printf '%-10s %20s %9s %25s\n' "$program" "$(lost)" "$found" \
    $(((times[1] - times[0]) * 1000000 / (long - short)))
done
