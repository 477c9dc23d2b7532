#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the build of a bare clone: Package.swift with each of its switches, and that every header
# of the C modules is in the Debian packages that the README names, or in those that they depend on.
#
#   Tests/check-manifest.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh

fail() {
  echo "check-manifest: $*" >&2
  exit 1
}

# targets [VARIABLE=VALUE...]: the names of the targets in the manifest.
targets() {
  env -u OVERCRANK_BUILD "$@" swift package dump-package |
    python3 -c 'import json, sys; print(*(t["name"] for t in json.load(sys.stdin)["targets"]))'
}
plain=" $(targets) "
all=" $(targets OVERCRANK_BUILD=all) "
some=" $(targets OVERCRANK_TESTS=Capture,Recording) "
for name in SloPoke FuzzSoak; do
  [[ $plain != *" $name "* ]] || fail "a plain build contains $name"
  [[ $all == *" $name "* ]] || fail "OVERCRANK_BUILD=all lacks $name"
done
[[ $plain == *" PhotosTests "* && $some != *" PhotosTests "* && $some == *" CaptureTests "* ]] ||
  fail "OVERCRANK_TESTS does not select tests"

# Their dependencies, and the packages that every compiler needs.
known=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
  --no-replaces --no-enhances "${build_packages[@]}" "${optional_packages[@]}" libc6-dev \
  linux-libc-dev gcc g++ | grep '^[a-z]' | sed 's/:.*//' | sort -u)
for header in Sources/C*/*.h Sources/C*/include/*.h; do
  directory=${header%/*}
  # shellcheck disable=SC2046  # Words, not one.
  files=$(/usr/bin/gcc -M -I "$directory" \
    $(pkg-config --cflags libv4l2 libavformat libavcodec libswscale libswresample libavutil rubberband \
      alsa libturbojpeg) "$header" | tr -d '\\' | tr -s ' \n' '\n' | grep '^/usr/include' || true)
  [[ $files ]] || continue
  owners=$(dpkg -S $files 2>/dev/null | sed 's/:.*//' | sort -u)
  strangers=$(comm -23 <(echo "$owners") <(echo "$known"))
  [[ ! $strangers ]] || fail "$header needs $strangers"
done
