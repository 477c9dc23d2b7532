#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the camera. Usage: build.sh OUT
set -eu
directory=$(cd "$(dirname "$0")" && pwd)
output=${1:?usage: build.sh OUT}
for compiler in "${CC:-}" clang gcc cc; do
  if [ -n "$compiler" ] && command -v "$compiler" >/dev/null; then break; fi
done
# The frames are those of the simulated driver.
exec "$compiler" -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -I"$directory/../../FakeVideo4Linux" \
  -o "$output" "$directory"/*.c "$directory/../../FakeVideo4Linux/jpeg.c"
