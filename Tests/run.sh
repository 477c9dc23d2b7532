#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything, and runs every test: format and layers, units,
# the command, the samples, and the real vivid driver in an emulated machine.
#
#   Tests/run.sh                      the tests; soaks run a sample of their cases
#   Tests/run.sh --full [GROUP ...]   the long tests, at most 75 minutes each; all groups by default:
#     cases        unit tests with all random plans, damaged files and wild plans
#     soaks        recordings that are killed or cut off, signals, full disks, foreign files, audits
#     peers        other programs on the fake driver, clusters, the emulated machine, the benchmarks
#     readers      other programs that read recordings and exports: ffprobe, PyAV, mpv, VLC, Chromium …
#     sanitizers   the sanitizers for threads and addresses
#     planted      mistakes made in the program on purpose, which the tests must find
#     clean        a bare clone, and the packages, in a clean Debian
set -euo pipefail
cd "$(dirname "$0")/.."
groups=()
if [[ ${1-} == --full ]]; then
  groups=("${@:2}")
  ((${#groups[@]})) || groups=(cases soaks peers readers sanitizers planted clean)
elif (($#)); then
  sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 64
fi
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
# shellcheck source=Tests/processor-time.sh
. Tests/processor-time.sh
# shellcheck source=Tests/Tools/ForkServer/servers.sh
. Tests/Tools/ForkServer/servers.sh
cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
# The kernel of the emulated machine serves all checkouts.
export LAB_CACHE=${LAB_CACHE:-$cache/lab}
# Read by Package.swift: the samples and the soaks as well.
export OVERCRANK_BUILD=all
# Swift Testing would look up a backtrace for each error that is thrown, expected ones included. That
# takes longer than all else that some tests do.
export SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0
# The same for each build, so that everything is compiled once.
export SWIFT_BUILD_FLAGS="-Xswiftc -enable-testing -Xswiftc -warnings-as-errors \
  --explicit-target-dependency-import-check error"
programs=.build/release
# By default, the test modules and the command are compiled without optimization or debug information;
# see the script. SwiftPM wants the libraries of the toolchain next to the compiler. The long tests
# compile everything as it is shipped.
compiler=$PWD/.build/test-compiler
if ! ((${#groups[@]})); then
  export SWIFT_EXEC=$compiler/bin/swiftc COMPILE_TIMES=$compiler/times
  SWIFT_BUILD_FLAGS+=" -debug-info-format none"
fi
# Debian's Python, because the steps install Debian's Python packages. The Python of a version manager
# calls about forty other programs each time it starts.
mkdir -p .build/test-programs
ln -sfn /usr/bin/python3 .build/test-programs/python3
export PATH=$PWD/.build/test-programs:$PATH
otio_python=$cache/python-otio/bin/python3
av_python=$cache/python-av/bin/python3
zxing_python=$cache/python-zxing/bin/python3
work=$(mktemp -d)
workers=
trap leave EXIT

# leave: ends what still runs, and repeats at the end of the log what failed, where a reader finds it.
leave() {
  [[ ! $workers ]] || kill -- "-$workers" 2>/dev/null || true
  local step
  for step in $(cat "$work/failed" 2>/dev/null); do
    echo "== failed: ${titles[$step]}"
    grep -A 12 -E 'recorded an issue|Fatal error|Crash' "$work/$step.log" || tail -n 60 "$work/$step.log"
  done >&2
  rm -rf "$work"
}

# --- Steps ---------------------------------------------------------------------------------------

# python_environment DIRECTORY PACKAGE...: an environment with exactly these packages from PyPI.
python_environment() {
  local directory=$1
  shift
  [[ $("$directory/bin/python3" -m pip freeze 2>/dev/null | grep -xFc "$(printf '%s\n' "$@")") != $# ]] ||
    return 0
  /usr/bin/python3 -m venv --clear "$directory"
  "$directory/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$@"
}

# must_fail COMMAND...: a soak that is careless on purpose must find that it is.
must_fail() {
  if "$@" >/dev/null 2>&1; then
    echo "$* does not find what it is there to find" >&2
    return 1
  fi
}

step_packages() {
  local lab_packages
  mapfile -t lab_packages < <(grep -v '^#' Tests/Tools/Lab/packages)
  install_packages "${build_packages[@]}" "${optional_packages[@]}" "${lab_packages[@]}" python3 \
    python3-jsonschema python3-venv ffmpeg mediainfo strace gstreamer1.0-tools \
    gstreamer1.0-plugins-base gstreamer1.0-plugins-good libimage-exiftool-perl libraw-bin \
    libheif-examples libde265-examples zint python3-numpy exiv2 python3-pil libgl1-mesa-dri libegl1 libgles2 \
    fonts-dejavu-core
  Samples/install-zxing.sh
  Samples/install-faces.sh
  Tests/Tools/FaceImages/fetch.sh >/dev/null
  # PyAV and OpenCV have libraries of their own, so they have an environment of their own.
  python_environment "${av_python%/bin/python3}" av==18.1.0 numpy==2.4.6 \
    opencv-python-headless==5.0.0.93
  # OpenTimelineIO's own library, which reads and writes our projects.
  python_environment "${otio_python%/bin/python3}" OpenTimelineIO==0.17.0 ||
    echo "OpenTimelineIO cannot be had from here: the test that asks it is skipped" >&2
  # The reader of codes with which ours is compared.
  python_environment "${zxing_python%/bin/python3}" zxing-cpp==3.1.1
  mkdir -p "$compiler/bin"
  cp Tests/Tools/TestCompiler/swiftc Tests/processor-time.sh "$compiler/bin/"
  ln -sfn "$(dirname "$(readlink -f "$(command -v swiftc)")")/../lib" "$compiler/lib"
}

step_format() {
  swift format lint --strict --recursive --parallel Package.swift Sources Tests Samples
  python3 Tests/check-imports.py
  python3 Tests/check-state.py --self-test
  python3 Tests/check-language.py --self-test
  Tests/planted.sh --check
  Tests/check-manifest.sh
}

step_build() {
  rm -f "$compiler/times"
  # shellcheck disable=SC2086  # Words, not one.
  swift build -c release $SWIFT_BUILD_FLAGS --build-tests
  # Public names are read from what was built.
  python3 Tests/check-language.py "$programs"
}

step_docs() { python3 Tests/check-docs.py "$programs" --self-test; }

step_units() {
  Tests/Tools/ForkServer/build.sh "$work/fork-server"
  start_fork_servers "$work/fork-server" "$work/fork-servers" "$programs/slowmo" ffmpeg ffprobe
  # A few at a time: each is by itself what it is beside a thousand others, and cameras keep their pace.
  OTIO_PYTHON=$otio_python ZXING_PYTHON=$zxing_python "$programs/OvercrankPackageTests.xctest" \
    --testing-library swift-testing --experimental-maximum-parallelization-width 12
}

step_kills() {
  python3 Tests/Tools/KillSoak/kill-soak.py "$programs/slowmo" --trials "$kills" \
    --jobs "$kill_jobs"
}

step_power_cuts() {
  python3 Tests/Tools/PowerCut/power-cut.py "$programs/slowmo" --trials "$power_cuts"
  must_fail python3 Tests/Tools/PowerCut/power-cut.py "$programs/slowmo" --trials 6 --never-synced
}

step_outputs() {
  local soak=(python3 Tests/Tools/OutputSoak/output-soak.py "$programs/slowmo")
  "${soak[@]}" --pairs "$output_pairs" --signals "$output_signals" --unread "$unread_outputs" \
    --full-disks "$full_disks"
  must_fail "${soak[@]}" --pairs 3 --signals 4 --unread 2 --full-disks 10 --careless
}

step_foreign_files() {
  python3 Tests/Tools/ForeignFiles/foreign-files.py "$programs/slowmo" --cases "$foreign_files" --planted
}

step_audits() {
  "$av_python" Tests/Tools/CheckSoak/check-soak.py "$programs/slowmo" --cases "$check_cases"
  must_fail "$av_python" Tests/Tools/CheckSoak/check-soak.py "$programs/slowmo" --cases 8 --careless
}

step_seams() {
  local soak=("$av_python" Tests/Tools/HEVCSeams/hevc-seams.py "$programs/slowmo" --cache "$cache/hevc")
  if ! ((${#groups[@]})); then
    soak+=(--short)
  else
    # GStreamer's encoder makes some of the movies.
    install_packages gstreamer1.0-plugins-bad || echo "gstreamer1.0-plugins-bad cannot be had from here"
    "${soak[@]}" --costs
  fi
  # The long run has other cases each time, and prints the first one.
  "${soak[@]}" --cases "$seam_cases" --first "${first_seam:-0}"
  "${soak[@]}" --planted
}

step_boxes() {
  local check=(python3 Tests/Tools/BoxCheck/box-check.py) boxes=$work/boxes take
  mkdir -p "$boxes"
  for take in mjpeg mjpeg-pcm h264 ffv1 raw-yuyv drops clip-h264 foreign killed-{mjpeg,h264,ffv1}; do
    gzip -dc "Tests/Fixtures/takes/$take.mov.gz" >"$boxes/$take.mov"
    if [[ $take == killed-* ]]; then
      "$programs/slowmo" recover "$boxes/$take.mov"
    else
      "$programs/slowmo" retime "$boxes/$take.mov" -o "$boxes/$take-copied.mov" --speed 1/2 --copy
      "$programs/slowmo" retime "$boxes/$take.mov" -o "$boxes/$take-made.mp4" --speed 1/2 --fps 30
    fi >>"$boxes/log"
  done
  "$programs/slowmo" record synthetic:128x96@240 -o "$boxes/new.mov" -t 0.3 --progress none >>"$boxes/log"
  ffmpeg -v error -i "$boxes/h264.mov" -c copy -movflags frag_keyframe "$boxes/fragments.mp4"
  "${check[@]}" "$boxes"/*.m??
  for take in new h264-copied mjpeg-made; do "${check[@]}" --planted "$boxes/$take".m??; done
}

step_seeks() {
  "$av_python" Tests/Tools/OpenCVSeeks/opencv-seeks.py "$programs/slowmo"
  must_fail "$av_python" Tests/Tools/OpenCVSeeks/opencv-seeks.py "$programs/slowmo" --careless
}

step_first_clip() { Samples/first-clip.sh "$work/clips"; }

step_python() { Tests/check-python.sh "$programs"; }

step_debian() { Tests/check-packages.sh; }

step_ledger() { "$programs/LedgerSoak" "$ledger_takes"; }

step_fuzz() {
  "$programs/FuzzSoak" "$fuzz_cases"
  "$programs/FuzzSoak" --planted
}

step_allocations() {
  "$programs/AllocationCheck"
  must_fail "$programs/AllocationCheck" --waste
}

step_lab() {
  Tests/Tools/Lab/run-tests.sh
}

step_lab_itself() { Tests/Tools/Lab/selftest.sh; }

step_usb_camera() { Tests/Tools/Lab/UsbCamera/compare.sh; }

step_benchmarks() { swift build --package-path Benchmarks -c release; }

step_fake_driver() {
  install_packages gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
  SLOWMO="$PWD/$programs/slowmo" Tests/Tools/FakeVideo4Linux/check.sh "$work/fake"
}

step_clusters() {
  # shellcheck disable=SC2046  # Words, not one.
  install_packages $(grep -v '^#' Tests/Tools/Cluster/packages)
  local dask_python=$cache/python-dask/bin/python3
  if ! "$dask_python" -c 'import distributed' 2>/dev/null; then
    /usr/bin/python3 -m venv "${dask_python%/bin/python3}"
    "$dask_python" -m pip install --quiet --only-binary :all: dask distributed
  fi
  python3 Tests/Tools/Cluster/check.py "$programs/slowmo" --dask-python "$dask_python"
  must_fail python3 Tests/Tools/Cluster/check.py "$programs/slowmo" --engine parallel --careless
}

step_movie_readers() {
  # A program that cannot be installed is skipped, and the reason is printed.
  local package
  for package in mpv vlc-bin vlc-plugin-base vlc-plugin-video-output chromium; do
    install_packages "$package" || echo "$package cannot be had from here"
  done
  local readers=("$av_python" Tests/Tools/MovieReaders/movie-readers.py "$programs/slowmo")
  "${readers[@]}"
  "${readers[@]}" --planted
  "$av_python" Tests/Tools/HEVCSeams/hevc-seams.py "$programs/slowmo" --cache "$cache/hevc" \
    --players 70 --first "$first_seam"
}

step_sanitizers() { Tests/sanitize.sh; }

step_planted() { Tests/planted.sh; }

step_clean_debian() { Tests/check-packages.sh --full; }

step_bare_clone() { Tests/check-clone.sh; }

declare -A titles=(
  [packages]="packages"
  [format]="format and layers"
  [build]="build, with warnings as errors"
  [docs]="documentation, and the Swift blocks of its articles"
  [units]="unit tests and command tests"
  [kills]="recordings killed at random instants"
  [power_cuts]="recordings whose unsynced writes are thrown away"
  [outputs]="two verbs on one name, signals at random instants, and full disks"
  [foreign_files]="playlists, scripts and damaged files, which must lead to no other file and to no network"
  [audits]="audits of clips with planted faults, written by PyAV"
  [seams]="cuts and joins of HEVC movies, judged by three decoders"
  [boxes]="the boxes of movies"
  [seeks]="seeks by frame number with OpenCV"
  [first_clip]="the first clip"
  [python]="the Python module"
  [debian]="the packages and the tarball"
  [ledger]="the ledger, over long takes with faults of every class"
  [fuzz]="damaged files and wild plans"
  [allocations]="memory that the capture thread asks for"
  [lab]="the real vivid driver, in the emulated machine"
  [lab_itself]="the emulated machine itself, and how its failures are reported"
  [usb_camera]="the emulated USB camera, in front of other programs"
  [benchmarks]="the package of the benchmarks"
  [fake_driver]="the fake driver, in front of other programs"
  [clusters]="batches on clusters, while exports, workers and hosts die"
  [movie_readers]="movies in other programs"
  [sanitizers]="under the sanitizers for threads and addresses"
  [planted]="mistakes made on purpose, which the tests must find"
  [clean_debian]="the packages in a clean Debian"
  [bare_clone]="a bare clone in a clean Debian"
)

# --- How they run --------------------------------------------------------------------------------

# run_steps STEP...: runs steps in turn, and notes what each has taken.
run_steps() {
  local step start before used
  for step in "$@"; do
    [[ ! -e $work/failed ]] || return 1
    printf '\n== %s (after %d s)\n' "${titles[$step]}" "$SECONDS"
    start=$SECONDS
    processor_milliseconds
    before=$used
    # In the background, for a condition around a step would suspend `set -e` in it.
    (("step_$step") 2>&1 | tee "$work/$step.log") &
    if ! wait $!; then
      echo "$step" >>"$work/failed"
      return 1
    fi
    echo "$step" >>"$work/passed"
    processor_milliseconds
    printf '%6d s %6d s  %s\n' $((SECONDS - start)) $(((used - before) / 1000)) "${titles[$step]}" >>"$work/table"
    printf '== took %d s: %s\n' $((SECONDS - start)) "${titles[$step]}"
  done
}

# run_beside COUNT STEP...: runs steps, in this order, COUNT at a time. The first is the longest, so the
# others leave the processor to it. The output of a step is shown when it has ended.
run_beside() {
  local count=$1 longest=$2
  shift
  printf '%s\n' "$@" >"$work/waiting"
  set -m
  (
    for ((worker = 0; worker < count; worker++)); do
      while step=$(next_step); do
        (
          [[ $step == "$longest" ]] || chrt --idle --pid 0 "$BASHPID"
          run_steps "$step"
        ) >"$work/output.$worker" 2>&1 &
        wait $! || true
        flock "$work/lock" cat "$work/output.$worker"
      done &
    done
    wait
  ) &
  workers=$!
  set +m
  wait "$workers"
  workers=
  local step
  for step in "$@"; do grep -qx "$step" "$work/passed"; done
}

# next_step: prints the next step of run_beside, and takes it off the list; 1 after the last.
next_step() {
  (
    flock 9
    read -r step <"$work/waiting" || exit 1
    sed -i 1d "$work/waiting"
    echo "$step"
  ) 9>>"$work/lock"
}

finish() {
  printf '\n== all of it passed, in %d s\n' "$SECONDS"
  printf '   wall processor\n'
  cat "$work/table"
}

# No condition may stand around this: it would suspend `set -e`.
run_steps packages
if ! ((${#groups[@]})); then
  ledger_takes=5 kills=15 kill_jobs=1 power_cuts=10 output_pairs=12 output_signals=60 full_disks=30
  unread_outputs=10
  foreign_files=30 fuzz_cases=100 check_cases=24 seam_cases=70
  run_steps format build
  # Five at a time on two processors: the emulated machine uses one of them, and cameras and signals wait
  # most of the time.
  run_beside 5 lab units outputs allocations debian fuzz python docs kills power_cuts foreign_files \
    audits seams boxes seeks first_clip ledger
  finish
  exit
fi

export OVERCRANK_FULL=1
ledger_takes=100 kills=1000 kill_jobs=$(nproc) power_cuts=200 output_pairs=200 output_signals=300
unread_outputs=50 full_disks=500 foreign_files=2000 fuzz_cases=10000 check_cases=500 seam_cases=2000
first_seam=$((EPOCHSECONDS / 60))
for group in "${groups[@]}"; do
  case $group in
    cases) run_steps build units fuzz ;;
    soaks) run_steps build kills power_cuts outputs foreign_files audits seams ledger ;;
    peers) run_steps build lab_itself usb_camera benchmarks fake_driver clusters ;;
    readers) run_steps build boxes movie_readers ;;
    sanitizers) run_steps sanitizers ;;
    planted) run_steps planted ;;
    clean) run_steps bare_clone clean_debian ;;
    *)
      echo "run.sh: '$group' is no group: cases, soaks, peers, readers, sanitizers, planted, clean" >&2
      exit 64
      ;;
  esac
done
finish
