# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: builds slowmo at another commit, and sets $before, $now and $source,
# a take of 2 s at 640x480@240 that both programs get.
# shellcheck source=Benchmarks/Support/prepare.sh
. "$(dirname "${BASH_SOURCE[0]}")/../Support/prepare.sh"
commit=${1:-HEAD~1}
prepare SLOWMO slowmo valgrind binutils
make_folder instructions-bench "$PWD"
git worktree add --quiet --detach "$WORK/before" "$commit"
trap 'git worktree remove --force "$WORK/before"; rm -rf "$WORK"' EXIT
swift build --package-path "$WORK/before" -c release --product slowmo >&2
# valgrind cannot read the debug information that this compiler writes; names stay.
strip -g -o "$WORK/slowmo-before" \
  "$(swift build --package-path "$WORK/before" -c release --show-bin-path)/slowmo"
strip -g -o "$WORK/slowmo-now" "$SLOWMO"
before=$WORK/slowmo-before
now=$WORK/slowmo-now

source="$WORK/take.mov"
"$SLOWMO" record 'synthetic:640x480@240?pace=max' -o "$source" -t 2 --progress none >&2
