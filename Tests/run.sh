#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, and runs every test: format and layers, units,
# the command, the samples, and the real vivid driver in an emulated machine.
#
#   Tests/run.sh [--full]      --full: all random plans, takes and damaged files instead of a
#                              sample, other programs on the fake driver, the sanitizers, and
#                              mistakes planted in the program
set -euo pipefail
cd "$(dirname "$0")/.."
full=
soak_takes=10
kills=15
kill_jobs=1
power_cuts=10
output_pairs=12
output_signals=12
full_disks=30
foreign_files=60
fuzz_cases=250
check_cases=24
if [[ ${1-} == --full ]]; then
  full=yes
  export OVERCRANK_FULL=1
  soak_takes=100
  kills=1000
  kill_jobs=$(nproc)
  power_cuts=200
  output_pairs=200
  output_signals=200
  full_disks=500
  foreign_files=2000
  fuzz_cases=10000
  check_cases=500
fi
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
mapfile -t lab_packages < <(grep -v '^#' Tests/Tools/Lab/packages)

# Each step says how long it took, and a table of them ends the log.
step_name=
times=()
end_step() {
  [[ $step_name ]] || return 0
  times+=("$(printf '%5d s  %s' $((SECONDS - step_start)) "$step_name")")
  printf '== took %d s: %s\n' $((SECONDS - step_start)) "$step_name"
}
step() {
  end_step
  step_name=$*
  step_start=$SECONDS
  printf '\n== %s (after %d s)\n' "$*" "$SECONDS"
}

step "packages"
install_packages "${build_packages[@]}" "${optional_packages[@]}" "${lab_packages[@]}" python3 \
  python3-jsonschema python3-venv ffmpeg mediainfo strace gstreamer1.0-tools \
  gstreamer1.0-plugins-base gstreamer1.0-plugins-good libimage-exiftool-perl libraw-bin \
  libheif-examples zint python3-numpy exiv2 python3-pil
Samples/install-zxing.sh
Samples/install-faces.sh
Tests/Tools/FacePictures/fetch.sh >/dev/null

step "format and layers"
swift format lint --strict --recursive --parallel Package.swift Sources Tests Samples
python3 Tests/check-imports.py
python3 Tests/check-language.py --self-test
Tests/planted.sh --check

step "build, with warnings as errors"
# Once, optimised, for programs, samples and tests alike.
export SWIFT_BUILD_FLAGS="-Xswiftc -enable-testing -Xswiftc -warnings-as-errors \
  --explicit-target-dependency-import-check error"
# shellcheck disable=SC2086  # Words, not one.
swift build -c release $SWIFT_BUILD_FLAGS --build-tests
programs=.build/release
# Public names are read from what was built.
python3 Tests/check-language.py "$programs"

step "documentation, and the Swift blocks of its articles"
python3 Tests/check-docs.py "$programs" --self-test

step "OpenTimelineIO's own library, which reads and writes our projects"
# In a folder of its own, which is found again the next time.
otio=OpenTimelineIO==0.17.0
otio_python=$PWD/.build/python-otio/bin/python3
if ! "$otio_python" -m pip freeze 2>/dev/null | grep -qix "$otio"; then
  /usr/bin/python3 -m venv "${otio_python%/bin/python3}"
  "$otio_python" -m pip install --quiet --only-binary :all: "$otio" ||
    echo "it cannot be had from here: the test that asks it is skipped" >&2
fi

step "unit tests and command tests"
unit_log=$(mktemp)
# A few at a time: each is by itself what it is beside a thousand others, and cameras keep their pace.
if ! SLOWMO="$PWD/$programs/slowmo" OTIO_PYTHON=$otio_python \
  "$programs/OvercrankPackageTests.xctest" --testing-library swift-testing \
  --experimental-maximum-parallelization-width 8 2>&1 |
  tee "$unit_log"; then
  # Once more at the end, where whoever reads the log finds it.
  echo "== what failed:" >&2
  grep -A 12 -E 'recorded an issue|Fatal error|Crash' "$unit_log" >&2 || tail -n 50 "$unit_log" >&2
  exit 1
fi
rm -f "$unit_log"

step "recordings killed at random instants"
python3 Tests/Tools/KillSoak/kill-soak.py "$programs/slowmo" --trials "$kills" \
  --jobs "$kill_jobs"

step "recordings whose unsynced writes are thrown away"
python3 Tests/Tools/PowerCut/power-cut.py "$programs/slowmo" --trials "$power_cuts"
if python3 Tests/Tools/PowerCut/power-cut.py "$programs/slowmo" --trials 6 --never-synced >/dev/null; then
  echo "power-cut.py does not find what it is there to find" >&2
  exit 1
fi

step "two verbs on one name, signals at random instants, and full disks"
python3 Tests/Tools/OutputSoak/output-soak.py "$programs/slowmo" --pairs "$output_pairs" \
  --signals "$output_signals" --full-disks "$full_disks"
if python3 Tests/Tools/OutputSoak/output-soak.py "$programs/slowmo" --pairs 3 --signals 3 --full-disks 3 \
  --careless >/dev/null 2>&1; then
  echo "output-soak.py does not find what it is there to find" >&2
  exit 1
fi

step "playlists, scripts and damaged files, which must lead to no other file and to no network"
python3 Tests/Tools/ForeignFiles/foreign-files.py "$programs/slowmo" --cases "$foreign_files"
if [[ $full ]] && python3 Tests/Tools/ForeignFiles/foreign-files.py "$programs/slowmo" --careless \
  >/dev/null 2>&1; then
  echo "foreign-files.py does not find what it is there to find" >&2
  exit 1
fi

step "audits of clips with planted faults, written by PyAV"
# PyAV and OpenCV have libraries of their own, in an environment of their own.
av_python=$PWD/.build/python-av/bin/python3
av_packages=(av==18.1.0 numpy==2.4.6 opencv-python-headless==5.0.0.93)
if [[ $("$av_python" -m pip freeze 2>/dev/null | tr -d '\n') != "$(printf %s "${av_packages[@]}")" ]]; then
  /usr/bin/python3 -m venv --clear "${av_python%/bin/python3}"
  "$av_python" -m pip install --quiet --only-binary :all: "${av_packages[@]}"
fi
"$av_python" Tests/Tools/CheckSoak/check-soak.py "$programs/slowmo" --cases "$check_cases"
if "$av_python" Tests/Tools/CheckSoak/check-soak.py "$programs/slowmo" --cases 8 --careless \
  >/dev/null 2>&1; then
  echo "check-soak.py does not find what it is there to find" >&2
  exit 1
fi

step "seeks by frame number with OpenCV"
"$av_python" Tests/Tools/OpenCVSeeks/opencv-seeks.py "$programs/slowmo"
if "$av_python" Tests/Tools/OpenCVSeeks/opencv-seeks.py "$programs/slowmo" --careless >/dev/null 2>&1; then
  echo "opencv-seeks.py does not find what it is there to find" >&2
  exit 1
fi

step "the samples"
clips=$(mktemp -d)
trap 'rm -rf "$clips"' EXIT
Samples/first-clip.sh "$clips"

step "the Python module"
Tests/check-python.sh "$programs"

step "the packages and the tarball"
Tests/check-packages.sh ${full:+--full}

# The emulated machine leaves a processor to what measures no time; what it says is shown behind.
lab_log=$(mktemp)
lab_start=$SECONDS
set -m
(Tests/Tools/Lab/selftest.sh && Tests/Tools/Lab/run-tests.sh && echo "lab: $((SECONDS - lab_start)) s") \
  >"$lab_log" 2>&1 &
lab=$!
set +m
trap 'kill -- "-$lab" 2>/dev/null || true; rm -rf "$clips" "$lab_log"' EXIT

step "the ledger, over long takes with faults of every class"
"$programs/LedgerSoak" "$soak_takes"

step "damaged files and wild plans"
"$programs/FuzzSoak" "$fuzz_cases"
"$programs/FuzzSoak" --planted

step "memory that the capture thread asks for"
"$programs/AllocationCheck"
if "$programs/AllocationCheck" --waste >/dev/null; then
  echo "AllocationCheck does not find what it is there to find" >&2
  exit 1
fi

step "the real vivid driver, in the emulated machine, begun beside those before"
tail -n +1 -f --pid="$lab" "$lab_log"
wait "$lab"

if [[ $full ]]; then
  step "the package of the benchmarks"
  swift build --package-path Benchmarks -c release

  step "the fake driver, in front of other programs"
  install_packages gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
  SLOWMO="$PWD/$programs/slowmo" Tests/Tools/FakeVideo4Linux/check.sh "$clips/fake"

  step "batches on clusters, while exports, workers and hosts die"
  # shellcheck disable=SC2046  # Words, not one.
  install_packages $(grep -v '^#' Tests/Tools/Cluster/packages)
  dask_python=$PWD/.build/python-dask/bin/python3
  if ! "$dask_python" -c 'import distributed' 2>/dev/null; then
    /usr/bin/python3 -m venv "${dask_python%/bin/python3}"
    "$dask_python" -m pip install --quiet --only-binary :all: dask distributed
  fi
  python3 Tests/Tools/Cluster/check.py "$programs/slowmo" --dask-python "$dask_python"
  if python3 Tests/Tools/Cluster/check.py "$programs/slowmo" --engine parallel --careless \
    >/dev/null 2>&1; then
    echo "check.py of the clusters does not find what it is there to find" >&2
    exit 1
  fi

  step "under the sanitizers for threads and addresses"
  Tests/sanitize.sh

  step "mistakes made on purpose, which the tests must find"
  Tests/planted.sh
fi

end_step
printf '\n== all of it passed, in %d s\n' "$SECONDS"
printf '%s\n' "${times[@]}"
