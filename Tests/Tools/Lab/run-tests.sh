#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a real V4L2 driver in the emulated machine, with what was built before:
# swift build -c release --build-tests -Xswiftc -enable-testing.
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
# The second vivid describes pictures by planes. One without has no plane-wise node to test.
export LAB_VIVID=${LAB_VIVID:-n_devs=2 multiplanar=1,2}
# Five minutes on two quiet cores. Where other programs run beside it, that takes as long as it takes.
export LAB_TIMEOUT=${LAB_TIMEOUT:-14400}
# The guest's clock runs on while it reads what it has not read before, so it reads all that now.
mapfile -t tools < <(type -P aplay arecord bash cat ffprobe grep sh sleep v4l2-ctl)
read_before=("$bundle" "$slowmo" "${tools[@]}")
mapfile -t -O "${#read_before[@]}" read_before < <(
  ldd "${read_before[@]}" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u)
Tests/Tools/Lab/run.sh "cat ${read_before[*]@Q} >/dev/null
  OVERCRANK_FULL='${OVERCRANK_FULL-}' SLOWMO='$slowmo' '$bundle' --testing-library swift-testing --filter VividTests" 2>&1 |
  tee "$log"
# Where vivid failed to load all of them would be skipped, which is no success in here.
if ! grep -q 'Test run with [1-9].* passed' "$log" || grep -q 'skipped' "$log"; then
  echo "run-tests: not all tests ran and passed in the emulated machine" >&2
  exit 1
fi
