#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it costs that a recording survives a crash, and what it is worth, beside ffmpeg in the same
# run: the same packets copied by slowmo (fragments, journal, syncs, and made plain at the end), by
# `ffmpeg -c copy` into a plain file and into fragments; then recordings of a live source killed at
# random instants, and how much of what they had been given can be read.
#
#   Benchmarks/crash-safety.sh [FOLDER] [ROUNDS] [KILLS]     here, 5 and 12, unless told otherwise
#
# FOLDER should lie on a real disk, since memory is synced for nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
install_packages "${build_packages[@]}" ffmpeg python3 >&2

# shellcheck disable=SC2086  # Words, not one.
swift build -c release ${SWIFT_BUILD_FLAGS-} --product slowmo >&2
SLOWMO=$(swift build -c release --show-bin-path)/slowmo
WORK=$(mktemp -d "${1:-$PWD}/crash-safety.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
export SLOWMO WORK PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 Benchmarks/crash_safety.py "${2:-5}" "${3:-12}"
