#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the library that adds the simulated devices to any program by LD_PRELOAD.
# Usage: build.sh OUT.so
set -eu
directory=$(cd "$(dirname "$0")" && pwd)
output=${1:?usage: build.sh OUT.so}
for compiler in "${CC:-}" clang gcc cc; do
  if [ -n "$compiler" ] && command -v "$compiler" >/dev/null; then break; fi
done
# Only the replacements of libc functions are exported; all other symbols stay hidden.
exec "$compiler" -std=gnu11 -O2 -g -Wall -Wextra -fPIC -shared -fvisibility=hidden \
  -Wl,-z,defs -o "$output" "$directory"/*.c "$directory"/preload/*.c -ldl -lpthread
