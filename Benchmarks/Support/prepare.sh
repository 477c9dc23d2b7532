# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by all benchmarks: common setup.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh

# The packages of the programs that are compared with slowmo.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
capture_peers=(
  ffmpeg v4l-utils gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
)
# Python programs run from the source tree and must not write cache files into it.
export PYTHONDONTWRITEBYTECODE=1
# Python modules that several benchmarks share.
export PYTHONPATH=$PWD/Benchmarks/Support
# prepare VARIABLE PRODUCT PACKAGE...: installs missing packages, builds a release product, and
# exports its path in a variable. Products that are benchmarks belong to the package in this
# directory.
prepare() {
  local variable=$1 product=$2 package=. path
  [[ -d Benchmarks/$product ]] && package=Benchmarks
  shift 2
  install_packages "${build_packages[@]}" python3 "$@" >&2
  case $product in
    slowmo-full | CodeTiming)
      Samples/install-zxing.sh
      Samples/install-faces.sh
      ;;
  esac
  # The whole report builds each product once: BUILT is a directory with a link for each.
  if [[ -e ${BUILT:-/nonexistent}/$product ]]; then
    path=$(readlink "$BUILT/$product")
  else
    # The flags of Tests/run.sh, if it has already built with them.
    # shellcheck disable=SC2086  # Words, not one.
    swift build --package-path "$package" -c release ${SWIFT_BUILD_FLAGS-} \
      --product "$product" >&2
    path=$(swift build --package-path "$package" -c release --show-bin-path)/$product
    [[ -z ${BUILT-} ]] || ln -s "$path" "$BUILT/"
  fi
  declare -gx "$variable=$path"
}

# make_folder NAME [PARENT]: makes a temporary directory in memory, so that no disk is measured, or
# in PARENT. WORK names it until the script ends.
make_folder() {
  WORK=$(mktemp -d "${2:-/dev/shm}/$1.XXXXXX")
  export WORK
  trap 'rm -rf "$WORK"' EXIT
}
