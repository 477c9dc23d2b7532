#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts the calls between the project's modules, and the pairs of modules, in runs of slowmo, now
# and at another commit. callgrind counts them; inlined calls are not included.
#
#   Benchmarks/Instructions/crossings.sh [COMMIT]     default: HEAD~1
# shellcheck source=Benchmarks/Instructions/programs.sh
. "$(dirname "$0")/programs.sh"

# crossings PROGRAM ARGUMENTS...: the calls and pairs of one run.
crossings() {
  rm -f "$WORK"/out.*
  valgrind --tool=callgrind --callgrind-out-file="$WORK/calls" "$@" >/dev/null 2>&1
  python3 Benchmarks/Instructions/crossings.py "$WORK/calls"
}

printf '| Case | calls before | pairs | calls now | pairs |\n|---|---|---|---|---|\n'
measure() { # measure NAME ARGUMENTS...
  local name=$1
  shift
  printf '| %s | %s | %s |\n' "$name" "$(crossings "$before" "$@")" "$(crossings "$now" "$@")"
}
measure "passthrough, 120 of 480 frames at 1/8" retime "$source" -o "$WORK/out.mov" --range 0.5..1 \
  --speed 1/8 --copy --pitch mute --progress none
measure "audio, spectral, 2 s at 1/2" retime "$source" -o "$WORK/out.mov" --speed 1/2 --copy \
  --pitch spectral --progress none
