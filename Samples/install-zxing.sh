#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds zxing-cpp, the library that reads codes, and installs it as the Debian package
# overcrank-zxing-dev: a static library and its C headers, in directories that compilers search.
# Debian 12 has an older version without a C interface. The source comes from PyPI, and its checksum
# is fixed here. The package is kept in ~/.cache/overcrank, so that it is built once for all
# checkouts; that takes a minute.
#
#   Samples/install-zxing.sh              installs the package, unless it is installed
#   Samples/install-zxing.sh --remove     removes it
set -euo pipefail
version=3.1.1
checksum=1051a521b21a9fe206702ad4186aeb195154e3e1badcd99576d030723f36382b
name=overcrank-zxing-dev
# shellcheck source=Samples/install-packages.sh
. "$(dirname "$0")/install-packages.sh"
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)
if [ "${1-}" = --remove ]; then
  exec "${root[@]}" dpkg --purge "$name"
fi
[ $# -eq 0 ] || { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 64; }

installed() { dpkg-query -W -f '${db:Status-Status} ${Version}' "$name" 2>/dev/null || true; }
[ "$(installed)" != "installed $version-1" ] || exit 0

architecture=$(dpkg --print-architecture)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
package=$cache/${name}_$version-1_$architecture.deb
mkdir -p "$cache"
# Another checkout may be building it now.
exec 9>"$cache/zxing.lock"
flock 9
[ "$(installed)" != "installed $version-1" ] || exit 0

if [ ! -f "$package" ]; then
  install_packages cmake make g++ python3 python3-venv
  echo "Building zxing-cpp $version ..." >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
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
  tree=$work/tree
  install -D -m 644 -t "$tree/usr/include/overcrank-zxing" "$source/core/src/ZXingC.h" \
    "$source/core/src/BarcodeFormat.h" "$work/build/Version.h"
  install -D -m 644 "$(find "$work/build" -name 'libZXing.a')" \
    "$tree/usr/lib/$(/usr/bin/g++ -print-multiarch)/libovercrank-zxing.a"
  install -D -m 644 "$source/LICENSE" "$tree/usr/share/doc/$name/copyright"
  mkdir -p "$tree/DEBIAN"
  cat >"$tree/DEBIAN/control" <<CONTROL
Package: $name
Version: $version-1
Architecture: $architecture
Maintainer: Overcrank maintainers <maintainers@overcrank.org>
Section: libdevel
Priority: optional
Description: zxing-cpp as a static library, for builds of Overcrank
 Made by Samples/install-zxing.sh of Overcrank from the source that PyPI has.
CONTROL
  dpkg-deb --root-owner-group --build "$tree" "$work/package.deb" >&2
  # A copy that is interrupted must not be taken for the package.
  cp "$work/package.deb" "$package.new"
  mv "$package.new" "$package"
fi
"${root[@]}" dpkg --install "$package" >&2
