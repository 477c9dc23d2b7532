#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds zxing-cpp, the library that reads codes, with the C interface of Samples/CodeReader, and
# installs it as the Debian package libovercrank-codes1: one shared library, which programs load when
# they first read codes. Debian 12 has an older version without a C interface. The source comes from
# PyPI, and its checksum is fixed here. The package is kept in ~/.cache/overcrank, so that it is built
# once for all checkouts; that takes a minute.
#
#   Samples/install-zxing.sh              installs the package, unless it is installed
#   Samples/install-zxing.sh --remove     removes it
set -euo pipefail
version=3.1.1
# To be increased with each change to Samples/CodeReader.
revision=3
checksum=1051a521b21a9fe206702ad4186aeb195154e3e1badcd99576d030723f36382b
name=libovercrank-codes1
directory=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=Samples/install-packages.sh
. "$directory/install-packages.sh"

build_library() {
  local work=$1 tree=$2 source libraries
  install_packages cmake make g++ python3 python3-venv
  echo "Building zxing-cpp $version ..." >&2
  # pip also fetches what it needs to read the version of a source package.
  /usr/bin/python3 -m venv "$work/python"
  printf 'zxing-cpp==%s --hash=sha256:%s\n' "$version" "$checksum" >"$work/requirements.txt"
  (cd "$work" && python/bin/pip download --quiet --no-binary zxing-cpp --no-deps \
    --require-hashes -r requirements.txt >&2)
  tar -xzf "$work/zxing_cpp-$version.tar.gz" -C "$work"
  source=$work/zxing_cpp-$version
  # Readers alone, with the C interface.
  cmake -S "$source/core" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DZXING_C_API=ON -DZXING_READERS=ON \
    -DZXING_WRITERS=OFF -DZXING_USE_BUNDLED_ZINT=OFF \
    -DCMAKE_CXX_COMPILER=/usr/bin/g++ -DCMAKE_C_COMPILER=/usr/bin/gcc >"$work/log" 2>&1 &&
    cmake --build "$work/build" --parallel "$(nproc)" >>"$work/log" 2>&1 ||
    { tail -n 40 "$work/log" >&2; exit 1; }
  libraries=$tree/usr/lib/$(/usr/bin/g++ -print-multiarch)
  mkdir -p "$libraries"
  /usr/bin/gcc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
    -I "$directory/../Sources/CCodeReader" -isystem "$source/core/src" -isystem "$work/build" \
    -c "$directory/CodeReader/code-reader.c" -o "$work/reader.o"
  echo "{ global: overcrank_code_functions_1; local: *; };" >"$work/exports"
  # Its one symbol; those of zxing-cpp stay inside.
  /usr/bin/g++ -shared -Wl,-soname,libovercrank-codes.so.1 "-Wl,--version-script=$work/exports" -Wl,--gc-sections \
    -Wl,-z,defs -s "$work/reader.o" "$(find "$work/build" -name 'libZXing.a')" -lpthread \
    -o "$libraries/libovercrank-codes.so.1"
  install -D -m 644 "$source/LICENSE" "$tree/usr/share/doc/$name/copyright"
}

install_library "$name" "$version-$revision" "zxing-cpp with a C interface" "$@"
