#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest half of selftest.sh. The argument is the checkout's path on the host. Prints an "ok" or
# "not ok" line for each check, and a final line that shows that the end was reached.

set -uo pipefail

check() { # check NAME COMMAND...
  local name=$1
  shift
  if "$@"; then echo "ok $name"; else echo "not ok $name"; fi
}

contains() { # contains TEXT PATTERN
  grep -qE -- "$2" <<<"$1"
}

refuses() { # refuses COMMAND...
  ! "$@" 2>/dev/null
}

as_other_user() { # as_other_user GROUPS COMMAND...
  local groups=$1
  shift
  setpriv --reuid=nobody --regid=nogroup "$groups" "$@"
}

camera=(v4l2-ctl -d /dev/video0)
tracing=/sys/kernel/tracing

# --- Environment ---------------------------------------------------------------------------------

check "the command starts in the checkout, at the host's path" test "$PWD" = "$1"
check "the checkout cannot be written" refuses touch "$1/written-by-the-lab"
check "/tmp, /dev/shm, /run and HOME can be written" \
  touch /tmp/file /dev/shm/file /run/file "$HOME/file"
check "LAB_OUT can be written" cp Package.swift "$LAB_OUT/from-the-guest"
check "the loopback interface is up" test $(($(cat /sys/class/net/lo/flags) & 1)) -eq 1
check "a program can allocate a terminal" script -qec 'test -t 0' /dev/null

# --- The camera ----------------------------------------------------------------------------------

check "/dev/video0 is vivid" contains "$("${camera[@]}" --info)" 'Driver name *: vivid$'
inputs=$("${camera[@]}" --list-inputs)
check "the inputs are webcam, TV, S-Video, HDMI" \
  test "$(sed -n 's/^\tName *: //p' <<<"$inputs" | tr '\n' ,)" = 'Webcam 0,TV 0,S-Video 0,HDMI 0,'
check "320x180 YUYV has 60 fps" contains \
  "$("${camera[@]}" --list-frameintervals=width=320,height=180,pixelformat=YUYV)" '\(60\.000 fps\)'
"${camera[@]}" --set-fmt-video=width=320,height=180,pixelformat=YUYV >/dev/null
"${camera[@]}" --set-parm=60 >/dev/null

"${camera[@]}" --stream-mmap --stream-count=30 --stream-to=/tmp/frames 2>/dev/null
check "30 frames of 320x180 YUYV stream" \
  test "$(stat -c %s /tmp/frames)" = $((30 * 320 * 180 * 2))

# --- The kernel's trace --------------------------------------------------------------------------

echo 1 >$tracing/events/v4l2/v4l2_dqbuf/enable
"${camera[@]}" --stream-mmap --stream-count=600 2>/dev/null
echo 0 >$tracing/events/v4l2/v4l2_dqbuf/enable
sequences=$(sed -n 's/.* v4l2_dqbuf: minor = 0,.* sequence = \([0-9]*\)$/\1/p' $tracing/trace)
check "the trace has one line for each of 600 buffers" test "$(wc -l <<<"$sequences")" -eq 600
# vivid may give two frames the same number when its thread runs late, so equal numbers are allowed.
check "their sequence numbers never fall" sort -nc <<<"$sequences"
check "no trace line was overwritten" refuses grep -q '^overrun: [1-9]' $tracing/per_cpu/cpu*/stats

# --- Permissions ---------------------------------------------------------------------------------

check "the user nobody cannot open /dev/video0" contains \
  "$(as_other_user --clear-groups "${camera[@]}" --info 2>&1)" 'Permission denied'
check "the user nobody can, in the group video" \
  contains "$(as_other_user --groups=video "${camera[@]}" --info)" 'Driver name'
check "the user nobody can reopen and write to standard error" \
  as_other_user --clear-groups bash -c 'true >/dev/stderr'

# --- Audio ---------------------------------------------------------------------------------------

check "aplay sees the loopback card" contains "$(aplay -l)" '^card 0: Loopback'
check "arecord sees the loopback card" contains "$(arecord -l)" '^card 0: Loopback'

echo "reached the end"
