#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages overcrank and overcrank-full and a tarball for other systems. All
# contain the Swift runtime, so that no compiler is needed to run the command.
#
#   Samples/package.sh DIRECTORY     DIRECTORY: where the packages and the tarball go
#
# DEBFULLNAME and DEBEMAIL name the maintainer, SOURCE_DATE_EPOCH the time of all files.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=Samples/install-packages.sh
. "$repo/Samples/install-packages.sh"
[ $# -eq 1 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0" >&2; exit 64; }
mkdir -p "$1"
target=$(cd "$1" && pwd)
install_packages "${build_packages[@]}" "${optional_packages[@]}" dpkg-dev patchelf python3
"$repo/Samples/install-zxing.sh"
"$repo/Samples/install-faces.sh"

# Tests/run.sh passes the flags of its own build.
for product in slowmo slowmo-full; do
  # shellcheck disable=SC2086  # Words, not one.
  swift build --package-path "$repo" -c release ${SWIFT_BUILD_FLAGS:-} --product "$product" >&2
done
build=$(swift build --package-path "$repo" -c release --show-bin-path)
version=$("$build/slowmo" --version | sed -n '1s/^slowmo //p')
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-Overcrank maintainers} <${DEBEMAIL:-maintainers@overcrank.org}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$repo" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
core=$work/overcrank
full=$work/overcrank-full

# put PROGRAM FILE: a program without debug data that finds the Swift runtime next to itself.
put() {
  install -D -m 755 "$build/$1" "$2"
  strip "$2"
  patchelf --set-rpath "\$ORIGIN/../lib/overcrank" "$2"
}
put slowmo "$core/usr/bin/slowmo"
put slowmo-full "$full/usr/bin/slowmo-full"

# The libraries that slowmo-full loads when codes or faces are first searched for, with those for newer
# processors.
system=/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)
(cd "$system" && find . -maxdepth 3 -name 'libovercrank-*.so.1') >"$work/libraries"
while read -r library; do
  install -D -m 644 "$system/$library" "$full/usr/lib/overcrank/$library"
  patchelf --set-rpath "\$ORIGIN" "$full/usr/lib/overcrank/$library"
done <"$work/libraries"

# The parts of the Swift runtime that the programs load, which are those beside libswiftCore.
ldd "$build/slowmo" "$build/slowmo-full" | awk '/=> \//{print $3}' | sort -u >"$work/libraries"
runtime=$(dirname "$(grep '/libswiftCore\.so$' "$work/libraries")")
while read -r library; do
  [ "$(dirname "$library")" = "$runtime" ] || continue
  installed=$core/usr/lib/overcrank/${library##*/}
  install -D -m 644 "$library" "$installed"
  strip --strip-unneeded "$installed"
  patchelf --set-rpath "\$ORIGIN" "$installed"
done <"$work/libraries"

# compressed FILE: the file as Debian keeps documentation.
compressed() { gzip -9n "$1"; }
man=$core/usr/share/man/man1
python3 "$repo/Samples/Packaging/manual-pages.py" "$build/slowmo" "$man"
for page in "$man"/*.1; do compressed "$page"; done
mkdir -p "$full/usr/share/man/man1"
ln -s slowmo.1.gz "$full/usr/share/man/man1/slowmo-full.1.gz"

completions() { "$build/slowmo" --generate-completion-script "$1"; }
mkdir -p "$core/usr/share/bash-completion/completions" "$core/usr/share/zsh/vendor-completions" \
  "$core/usr/share/fish/vendor_completions.d"
completions bash | sed '1{/^#!/d}' >"$core/usr/share/bash-completion/completions/slowmo"
completions zsh >"$core/usr/share/zsh/vendor-completions/_slowmo"
completions fish >"$core/usr/share/fish/vendor_completions.d/slowmo.fish"
install -D -m 644 -t "$core/usr/share/overcrank/schemas" "$repo"/Sources/slowmo/Schemas/*.json
install -D -m 644 -t "$core/usr/lib/udev/rules.d" "$repo/Samples/Packaging/70-overcrank.rules"
install -D -m 644 -t "$core/usr/lib/python3/dist-packages/overcrank" \
  "$repo"/Samples/python/overcrank/*.py "$repo/Samples/python/overcrank/py.typed"

# package NAME ROOT DEPENDS DESCRIPTION [FIELD...]: the documentation, the control file, the package.
package() {
  local name=$1 root=$2 depends=$3 description=$4
  shift 4
  local doc=$root/usr/share/doc/$name
  install -D -m 644 "$repo/Samples/Packaging/copyright" "$doc/copyright"
  {
    printf '%s (%s-1) unstable; urgency=medium\n\n' "$name" "$version"
    printf '  * Version %s; the file changelog.gz has the list of changes.\n\n' "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >"$doc/changelog.Debian"
  cp "$repo/CHANGELOG.md" "$doc/changelog"
  compressed "$doc/changelog.Debian"
  compressed "$doc/changelog"
  mkdir -p "$root/DEBIAN"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  {
    printf 'Package: %s\nSource: overcrank\nVersion: %s-1\n' "$name" "$version"
    printf 'Architecture: %s\nMaintainer: %s\n' "$architecture" "$maintainer"
    printf 'Installed-Size: %s\n' "$(du -sk --exclude=DEBIAN "$root" | cut -f1)"
    printf 'Depends: %s\n' "$depends"
    [ $# -eq 0 ] || printf '%s\n' "$@"
    printf 'Section: video\nPriority: optional\nDescription: %s\n' "$description"
  } >"$root/DEBIAN/control"
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz -z3 --build "$root" \
    "$target/${name}_${version}-1_$architecture.deb" >&2
}

# libraries FILE...: the packages of the libraries that they load, from Debian's own lists.
libraries() {
  mkdir -p "$work/debian"
  printf 'Source: overcrank\n\nPackage: overcrank\nArchitecture: any\n' >"$work/debian/control"
  (cd "$work" && dpkg-shlibdeps -O --ignore-missing-info -l"$core/usr/lib/overcrank" \
    "${@/#/-e}" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

mkdir -p "$core/DEBIAN"
cat >"$core/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  py3compile -p overcrank
fi
# Cameras that are already plugged in get the access of the new rule at once.
if [ "$1" = configure ] && [ -d /run/udev ] && command -v udevadm >/dev/null; then
  udevadm control --reload || true
  udevadm trigger --subsystem-match=video4linux --subsystem-match=media --action=change || true
fi
POSTINST
cat >"$core/DEBIAN/prerm" <<'PRERM'
#!/bin/sh
set -e
# Files that py3compile has made, and those of another version of Python.
rm -rf /usr/lib/python3/dist-packages/overcrank/__pycache__
PRERM
chmod 755 "$core/DEBIAN/postinst" "$core/DEBIAN/prerm"

text='high-frame-rate capture and exact slow motion
 Overcrank records cameras at high frame rates and accounts for every frame. It
 changes the speed of a part of a clip exactly, with or without encoding it
 again.'
package overcrank "$core" \
  "python3:any, $(libraries "$core/usr/bin/slowmo" "$core"/usr/lib/overcrank/*)" "$text
 .
 This package contains the command slowmo and the Python module overcrank, which
 needs python3-numpy." 'Recommends: python3-numpy, fonts-dejavu-core' \
  'Suggests: overcrank-full, v4l-utils, fonts-noto-core, fonts-noto-cjk'
package overcrank-full "$full" \
  "overcrank (= $version-1), $(libraries "$full/usr/bin/slowmo-full" "$full"/usr/lib/overcrank/*.so*)" "$text
 .
 This package contains slowmo-full, which adds the windows of slowmo play,
 slowmo preview and slowmo record --preview, HEIC photos, and codes in frames
 with slowmo scan."

# The tarball has both programs, and works from any directory.
root=$work/overcrank-$version-linux-$(uname -m)
mkdir -p "$root"
cp -a "$core/usr/." "$root"
cp -a "$full/usr/." "$root"
mv "$root/lib/udev/rules.d/70-overcrank.rules" "$root/share/overcrank"
mv "$root/lib/python3/dist-packages" "$root/share/overcrank/python"
rm -r "$root/lib/udev" "$root/lib/python3" "$root/share/doc/overcrank-full"
cp "$repo/LICENSE" "$root"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf \
  "$target/${root##*/}.tar.gz" "${root##*/}"
ls -l "$target"
