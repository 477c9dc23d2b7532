# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the benchmarks: what each of them begins with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh

# What records beside slowmo.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
capture_peers=(
  ffmpeg v4l-utils gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
)
# Programs run where they lie, and leave nothing beside them.
export PYTHONDONTWRITEBYTECODE=1
# What several benchmarks share.
export PYTHONPATH=$PWD/Benchmarks/Support
# prepare VARIABLE PRODUCT PACKAGE...: installs what is missing, builds a program of ours as users
# do, and puts its path into a variable of the environment. Programs that are benchmarks themselves
# belong to the package in this folder.
prepare() {
  local variable=$1 product=$2 package=. folder
  [[ -d Benchmarks/$product ]] && package=Benchmarks
  shift 2
  install_packages "${build_packages[@]}" python3 "$@" >&2
  # As Tests/run.sh has built already, where it says how.
  # shellcheck disable=SC2086  # Words, not one.
  swift build --package-path "$package" -c release ${SWIFT_BUILD_FLAGS-} \
    --product "$product" >&2
  folder=$(swift build --package-path "$package" -c release --show-bin-path)
  declare -gx "$variable=$folder/$product"
}

# make_folder NAME [PLACE]: a folder in memory, so that no disk is measured, or in a place; WORK,
# until the script ends.
make_folder() {
  WORK=$(mktemp -d "${2:-/dev/shm}/$1.XXXXXX")
  export WORK
  trap 'rm -rf "$WORK"' EXIT
}
