#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of capture, playback and synthesized frames, and the C kernels of optical flow, under
# the thread sanitizer and the address sanitizer, each built in a separate directory. Every finding
# fails; nothing of this project is suppressed.
#
#   Tests/sanitize.sh [thread] [address]      both by default
set -euo pipefail
cd "$(dirname "$0")/.."
kinds=("$@")
((${#kinds[@]})) || kinds=(thread address)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
suites='^(CaptureTests|RecordingTests|PhotosTests|V4L2Tests|ALSATests|DeviceDiscoveryTests|FrameAccountingTests|PlaybackTests|RecognitionTests|RetimingTests\.(Frame|Shutter)[A-Za-z]*)[./]'
# Package.swift builds only the tests of these modules.
export OVERCRANK_TESTS=V4L2,ALSA,DeviceDiscovery,FrameAccounting,Capture,Recording,Photos,Playback,Recognition,Retiming

# Thousands of random cases on one thread show a sanitizer nothing that forty do not. The groups cases
# and soaks run them all.
unset OVERCRANK_FULL

fail() {
  echo "sanitize: $*" >&2
  exit 1
}

# A clean run counts only if the sanitizer finds planted mistakes.
finds() { # finds MISTAKE WORDS
  local said
  said=$(SANITIZER_MISTAKE=$1 "${tests[@]}" --filter 'SanitizerTests' 2>&1) &&
    fail "the mistake '$1' went unnoticed"
  grep -q "$2" <<<"$said" || fail "the mistake '$1' was reported as something else: $said"
  echo "sanitize: $kind: finds a $1"
}

# The kernels alone, with undefined behavior as well: sizes, formats, threads and SIMD instructions.
check_kernels() { # check_kernels SANITIZERS LINKING...
  local toolchain
  toolchain=$(dirname "$(command -v swiftc)")
  "$toolchain/clang" -Wall -Wextra -Werror -O1 -g -fno-sanitize-recover=all "-fsanitize=$1" \
    -ISources/COpticalFlow/include -o "$work/kernels" \
    Tests/Tools/Sanitizers/optical_flow.c Sources/COpticalFlow/*.c -lpthread -lm "${@:2}"
  "$work/kernels"
}

for kind in "${kinds[@]}"; do
  SECONDS=0
  # Optimized: only then are the standard library's accesses to raw memory, in which frames lie,
  # compiled into our own code, where the sanitizer sees them.
  build=(swift build -c release --scratch-path ".build-$kind")
  "${build[@]}" --product OvercrankPackageTests "--sanitize=$kind" -Xswiftc -enable-testing
  built=$SECONDS
  tests=("$("${build[@]}" --show-bin-path)/OvercrankPackageTests.xctest"
    --testing-library swift-testing --experimental-maximum-parallelization-width 8)
  case $kind in
    thread)
      "$(dirname "$(command -v swiftc)")/clang" -Wall -Wextra -Werror -O1 -shared -fPIC \
        -o "$work/runtime.so" Tests/Tools/Sanitizers/runtime.c -ldl
      # A few damaged frames suffice here, because the address sanitizer tests all of them.
      tests=(env TSAN_OPTIONS=exitcode=66 "LD_PRELOAD=$work/runtime.so"
        OVERCRANK_DAMAGED=200 "${tests[@]}")
      finds race 'ThreadSanitizer: .* race'
      runtime=$(dirname "$(command -v swiftc)")/../lib/swift/linux
      check_kernels thread -L"$runtime" -ldispatch -lBlocksRuntime "-Wl,-rpath,$runtime"
      ;;
    address)
      tests=(env "LSAN_OPTIONS=suppressions=$PWD/Tests/Tools/Sanitizers/leaks.txt"
        OVERCRANK_DAMAGED=10000 "${tests[@]}")
      finds overrun 'heap-buffer-overflow'
      finds leak 'LeakSanitizer: detected memory leaks'
      check_kernels address,undefined
      ;;
    *) fail "unknown sanitizer '$kind'; choose thread or address" ;;
  esac
  # A filter that matches too few tests would prove nothing.
  "${tests[@]}" --filter "$suites" | tee "$work/tests"
  ran=$(sed -n 's/.*Test run with \([0-9]*\) tests.*/\1/p' "$work/tests")
  due=$("${tests[@]}" --list-tests | grep -cE "$suites")
  ((ran == due)) || fail "$ran of $due tests ran"
  echo "sanitize: $kind: clean; built in $built s, run in $((SECONDS - built)) s"
done
