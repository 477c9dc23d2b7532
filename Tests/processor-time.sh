# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that measure their cost.

# processor_milliseconds: sets `used` to the processor time of the finished children of this shell.
processor_milliseconds() {
  local file
  file=$(mktemp)
  times >"$file" # Not in a pipe: a subshell has no children.
  # shellcheck disable=SC2034  # Used by the scripts that source this file.
  used=$(tr ms '  ' <"$file" | awk 'NR == 2 {printf "%d", ($1 * 60 + $2 + $3 * 60 + $4) * 1000}')
  rm "$file"
}
