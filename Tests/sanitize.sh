#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the way of a frame under the sanitizers for threads and for addresses, each
# built in a folder of its own. What they find fails; nothing of this project is suppressed.
#
#   Tests/sanitize.sh [thread] [address]      both, unless told otherwise
set -euo pipefail
cd "$(dirname "$0")/.."
kinds=("$@")
((${#kinds[@]})) || kinds=(thread address)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms='^(CaptureTests|RecordingTests|V4L2Tests|FormatDiscoveryTests)\.'

fail() {
  echo "sanitize: $*" >&2
  exit 1
}

# A sanitizer's silence counts only where it speaks when it should.
finds() { # finds MISTAKE PROBE WORDS
  local said
  said=$("$2" "$1" 2>&1) && fail "the mistake '$1' went unnoticed"
  grep -q "$3" <<<"$said" || fail "the mistake '$1' was taken for something else: $said"
}

"$(dirname "$(command -v swiftc)")/clang" -Wall -Wextra -Werror -O1 -shared -fPIC \
  -o "$work/mutex.so" Tests/Sanitizers/mutex.c -ldl

for kind in "${kinds[@]}"; do
  scratch=.build-$kind
  SECONDS=0
  swiftc -swift-version 6 -parse-as-library -Onone "-sanitize=$kind" -o "$work/probe-$kind" \
    Tests/Sanitizers/probe.swift 2>"$work/errors" || fail "$(<"$work/errors")"
  # Optimised: only then are the standard library's accesses to raw memory, in which frames lie,
  # compiled into our own code, where the sanitizer sees them.
  swift build --build-tests "--sanitize=$kind" --scratch-path "$scratch" -Xswiftc -O
  built=$SECONDS
  tests=("$(swift build --scratch-path "$scratch" --show-bin-path)/OvercrankPackageTests.xctest"
    --testing-library swift-testing --filter "$rooms")
  case $kind in
    thread)
      finds race "$work/probe-thread" 'race'
      export TSAN_OPTIONS=exitcode=66
      LD_PRELOAD=$work/mutex.so "$work/probe-thread" lock ||
        fail "a lock was taken for a race: Swift's Mutex is not what Tests/Sanitizers/mutex.c knows"
      LD_PRELOAD=$work/mutex.so "${tests[@]}"
      ;;
    address)
      finds overrun "$work/probe-address" 'heap-buffer-overflow'
      finds leak "$work/probe-address" 'LeakSanitizer'
      LSAN_OPTIONS=suppressions=$PWD/Tests/Sanitizers/leaks.txt "${tests[@]}"
      ;;
    *) fail "there is no sanitizer '$kind' here: thread, address" ;;
  esac
  echo "sanitize: $kind: clean; built in $built s, run in $((SECONDS - built)) s"
done
