#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the library fork-server.so and the program client. Usage: build.sh DIRECTORY
set -eu
directory=$(cd "$(dirname "$0")" && pwd)
output=${1:?usage: build.sh DIRECTORY}
for compiler in "${CC:-}" clang gcc cc; do
  if [ -n "$compiler" ] && command -v "$compiler" >/dev/null; then break; fi
done
mkdir -p "$output"
"$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -Wl,-z,initfirst -o "$output/fork-server.so" \
  "$directory/fork-server.c" -ldl
# Without shared libraries, the client starts in half a millisecond.
"$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -static -o "$output/client" "$directory/client.c"
