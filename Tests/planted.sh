#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the tests find mistakes: builds the program with one planted mistake at a time, in a
# copy of the checkout, and runs the tests that must then fail.
#
#   Tests/planted.sh [NAME ...]          the named mistakes, or all: frame tone clock key exit
#                                        packet title conversion search
#   Tests/planted.sh --check [NAME ...]  only checks that each can still be planted; builds nothing
set -euo pipefail
cd "$(dirname "$0")/.."
only_checks=
if [[ ${1-} == --check ]]; then
  only_checks=1
  shift
fi
names=("$@")
((${#names[@]})) || names=(frame tone clock key exit packet title conversion search)
copy=$PWD/.build-planted/checkout
# Read by Package.swift: the modules of the tests below.
export OVERCRANK_TESTS=Capture,Export,Recognition,slowmo
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
  echo "planted: $*" >&2
  exit 1
}

# A debug build compiles only the changed files again.
build() {
  swift build --package-path "$copy" --build-tests >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2 && fail "the copy does not build"; }
}

# Runs the tests of some suites in the copy, and returns whether they passed.
passes() { # passes FILTER
  "$copy/.build/debug/OvercrankPackageTests.xctest" --testing-library swift-testing --filter "$1" \
    >"$log" 2>&1
}

# Puts a mistake into a file of the copy, expects tests to fail with a certain message, and removes
# the mistake.
plant() { # plant WHAT FILE SED-SCRIPT FILTER WORDS
  local what=$1 file=$2 script=$3 filter=$4 words=$5
  [[ -e $file ]] && ! sed "$script" "$file" | cmp -s - "$file" ||
    fail "$file no longer has the line for the mistake: $what"
  [[ ! $only_checks ]] || return 0
  sed -i "$script" "$copy/$file"
  build
  passes "$filter" && fail "$what went unnoticed by $filter"
  grep -qE "$words" "$log" || { tail -n 30 "$log" >&2 && fail "$what was reported as something else"; }
  echo "planted: $what: found ($(grep -c 'recorded an issue' "$log") issues in $filter)"
  cp -p "$file" "$copy/$file"
}

if [[ ! $only_checks ]]; then
  # A copy of the checkout. Build products of an earlier copy are used again.
  mkdir -p "$copy"
  find "$copy" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
  git ls-files --cached --others --exclude-standard -z | xargs -0 cp -p --parents -t "$copy"
  build
  passes 'SlowMotionTests|LevelMeterTests|SampleClockTests|DocumentTests|BadInputTests|PassthroughTests|HostileFileTests|MovieSearchTests' ||
    { grep -A 5 'recorded an issue' "$log" >&2 && fail "the tests also fail without a mistake"; }
fi
for name in "${names[@]}"; do
  case $name in
    frame)
      plant "one frame lost without a report" Sources/Recording/Pipeline/TakeFileWriter.swift \
        's/^    try append(bytes, sample)$/    if storedCount != 37 { try append(bytes, sample) }/' \
        SlowMotionTests 'painted|frames'
      ;;
    tone)
      plant "a tone that reads 1 dB too loud" Sources/Capture/Audio/LevelMeter.swift \
        's/20 \* log10(peak)/20 * log10(peak) + 1/' LevelMeterTests 'peakDBFS'
      ;;
    clock)
      plant "a clock 0.5 % off" Sources/Capture/Audio/SampleClock.swift \
        's|^    slope = fitted$|    slope = Slope(rise: fitted.rise / 200 * 201, run: fitted.run)|' \
        SampleClockTests 'SampleClockTests.swift'
      ;;
    key)
      plant "a key that is renamed" Sources/Recording/Take/RecordingReport.swift \
        's/"maxBitRate"/"topBitRate"/' DocumentTests 'max_bit_rate'
      ;;
    exit)
      plant "an exit code that is changed" Sources/slowmo/JSON/CommandError.swift \
        's/case noInput = 66/case noInput = 67/' BadInputTests '67'
      ;;
    packet)
      plant "a packet that is not copied" Sources/Export/Planning/ExportOutput.swift \
        's/^    try writer?.copy($/    if dts == 7 * duration { return }\n&/' \
        PassthroughTests 'PassthroughTests.swift'
      ;;
    title)
      plant "a title that is not escaped" Sources/slowmo/Terminal/Output.swift \
        's/-> Bool { write(text.terminalBytes + newline) }$/-> Bool { write(text.systemBytes + newline) }/' \
        HostileFileTests 'HostileFileTests.swift'
      ;;
    conversion)
      plant "a conversion that is not checked" Sources/Photos/Files/ExifMetadata.swift \
        's/let units = UInt64((abs(value) \* 36_000_000).rounded())/let units = UInt32((abs(value) * 36_000_000).rounded())/' \
        HostileFileTests 'HostileFileTests.swift'
      ;;
    search)
      plant "a search that skips every second frame" Sources/Recognition/MovieSchedule.swift \
        's/^    let isDue = isDue(at: frame.time)$/    let isDue = frame.index.isMultiple(of: 2)/' \
        MovieSearchTests 'MovieSearchTests.swift'
      ;;
    *) fail "unknown mistake: $name" ;;
  esac
done
