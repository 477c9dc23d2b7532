# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts in this directory: builds slowmo at another commit, and sets $before, $now
# and $source, a recording of 2 s at 640x480@240 as input of both programs.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "${BASH_SOURCE[0]}")/../Support/prepare.sh"
commit=${1:-HEAD~1}
prepare SLOWMO slowmo valgrind binutils
make_folder instructions-bench "$PWD"
git worktree add --quiet --detach "$WORK/before" "$commit"
trap 'git worktree remove --force "$WORK/before"; rm -rf "$WORK"' EXIT
swift build --package-path "$WORK/before" -c release --product slowmo >&2
# valgrind cannot read this compiler's debug information, so it is stripped; symbol names stay.
strip -g -o "$WORK/slowmo-before" \
  "$(swift build --package-path "$WORK/before" -c release --show-bin-path)/slowmo"
strip -g -o "$WORK/slowmo-now" "$SLOWMO"
before=$WORK/slowmo-before
now=$WORK/slowmo-now

source="$WORK/take.mov"
"$SLOWMO" record 'synthetic:640x480@240?pace=max' -o "$source" -t 2 --progress none >&2
