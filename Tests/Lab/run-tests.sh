#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a real V4L2 driver in the emulated machine, with what was built before:
# swift build -c release --build-tests -Xswiftc -enable-testing.
set -euo pipefail
cd "$(dirname "$0")/../.."
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
# Emulation is slow where other programs run beside it.
export LAB_TIMEOUT=${LAB_TIMEOUT:-1500}
# shellcheck disable=SC2016  # LAB_OUT is the guest's.
Tests/Lab/run.sh "OVERCRANK_FULL='${OVERCRANK_FULL-}' SLOWMO='$slowmo' '$bundle' --testing-library swift-testing --filter VividTests" 2>&1 |
  tee "$log"
# Where vivid failed to load all of them would be skipped, which is no success in here.
if ! grep -q 'Test run with [1-9].* passed' "$log" || grep -q 'skipped' "$log"; then
  echo "run-tests: not all tests ran and passed in the emulated machine" >&2
  exit 1
fi
