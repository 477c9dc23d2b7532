#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the executed instructions of slowmo with those of another commit, counted by callgrind:
# capture, passthrough, constant rate, and audio at other speeds. Unlike times, the counts are free
# of noise.
#
#   Benchmarks/Instructions/run.sh [COMMIT]     default: HEAD~1; takes 10 minutes
#
# Both programs read the same movie, recorded by the present one. A ratio of 1.000 means no change.
# shellcheck source=Benchmarks/Instructions/programs.sh
. "$(dirname "$0")/programs.sh"

# count PROGRAM ARGUMENTS...: the number of instructions of one run.
count() {
  rm -f "$WORK"/out.*
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

printf '| Case | before | now | ratio |\n|---|---|---|---|\n'
measure() { # measure NAME ARGUMENTS...
  local name=$1 first second
  shift
  first=$(count "$before" "$@")
  second=$(count "$now" "${@/%pace=max/pace=max"$stripes"}")
  printf '| %s | %s | %s | %s |\n' "$name" "$first" "$second" \
    "$(python3 -c "print(f'{$second / $first:.4f}')")"
}
one='synthetic:640x480@240?pace=max'
# A commit whose camera knows no scenes draws the stripes, so both programs get them.
stripes=
"$before" modes "$one&scene=pattern" >/dev/null 2>&1 || stripes='&scene=pattern'
measure "record, copied" record "$one" -o "$WORK/out.mov" -t 1 --audio none --progress none
measure "record, stored raw" record "$one" --mode /grey --codec raw -o "$WORK/out.mov" -t 1 \
  --audio none --progress none
measure "passthrough" retime "$source" -o "$WORK/out.mov" --range 0.5..1 --speed 1/8 --copy \
  --pitch mute --progress none
measure "constant rate" retime "$source" -o "$WORK/out.mov" --range 0.5..1 --speed 1/2 --fps 30 \
  --codec ffv1 --pitch mute --progress none
for pitch in spectral time-domain varispeed; do
  measure "audio, $pitch" retime "$source" -o "$WORK/out.mov" --speed 1/2 --copy --pitch "$pitch" \
    --progress none
done

printf '\n| Scene, by the program of now | stripes | ball | ratio |\n|---|---|---|---|\n'
first=$(count "$now" record "$one&scene=pattern" -o "$WORK/out.mov" -t 1 --audio none --progress none)
second=$(count "$now" record "$one" -o "$WORK/out.mov" -t 1 --audio none --progress none)
printf '| record, copied | %s | %s | %s |\n' "$first" "$second" \
  "$(python3 -c "print(f'{$second / $first:.4f}')")"
