#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages and the tarball, and checks what a user gets: size, run paths, manual pages,
# completions, a first clip without the Swift toolchain, the Python module, and lintian.
#
#   Tests/check-packages.sh            the packages, unpacked
#   Tests/check-packages.sh --full     also installs, upgrades and removes them in a clean Debian
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Samples/install-packages.sh
. Samples/install-packages.sh
# shellcheck source=Tests/clean-debian.sh
. Tests/clean-debian.sh
install_packages lintian man-db zsh fish tmux python3 python3-numpy

fail() {
  echo "check-packages: $*" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
Samples/package.sh "$work/packages" >/dev/null
core=$(echo "$work"/packages/overcrank_*.deb)
full=$(echo "$work"/packages/overcrank-full_*.deb)
root=$work/root
dpkg-deb -x "$core" "$root"
dpkg-deb -x "$full" "$root"

# At most 60 MB, installed.
size=$(($(dpkg-deb -f "$core" Installed-Size) + $(dpkg-deb -f "$full" Installed-Size)))
echo "installed: $size kB, of which overcrank $(dpkg-deb -f "$core" Installed-Size) kB"
[ "$size" -le 60000 ] || fail "the packages take $size kB"

lintian --allow-root --fail-on error "$core" "$full" || fail "lintian has found errors"

# The files that the packages must contain.
for file in usr/bin/slowmo usr/bin/slowmo-full usr/lib/udev/rules.d/70-overcrank.rules \
  usr/share/bash-completion/completions/slowmo usr/share/zsh/vendor-completions/_slowmo \
  usr/share/fish/vendor_completions.d/slowmo.fish usr/share/man/man1/slowmo-full.1.gz \
  usr/lib/overcrank/libovercrank-{codes,faces}.so.1; do
  [ -e "$root/$file" ] || [ -L "$root/$file" ] || fail "$file is missing"
done
for schema in Sources/slowmo/Schemas/*.json; do
  cmp "$schema" "$root/usr/share/overcrank/schemas/${schema##*/}"
done

# No file refers to a directory of the build machine, and no library of Swift is missing.
shopt -s globstar
for file in "$root"/usr/bin/* "$root"/usr/lib/overcrank/**/*.so*; do
  path=$(readelf -d "$file" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p')
  [[ $path == "\$ORIGIN"* && $path != *:* ]] || fail "${file#"$root"} has the run path $path"
  foreign=$(env -i ldd "$file" | grep -E '/swift/|not found' || true)
  [ -z "$foreign" ] || fail "${file#"$root"} loads $foreign"
done

# The code reader and the face detector export one symbol for each version of their interfaces.
declare -A exported=(
  [code]=overcrank_code_functions_1
  [face]='overcrank_face_functions_1 overcrank_face_functions_2 overcrank_face_functions_3'
)
for library in "$root"/usr/lib/overcrank/**/libovercrank-*; do
  name=${library##*/libovercrank-}
  symbols=$(readelf -W --dyn-syms "$library" | awk '$7 != "UND" && $5 != "LOCAL" && $8 {print $8}' | sed 1d |
    sort | xargs)
  [ "$symbols" = "${exported[${name%s.so.1}]}" ] || fail "${library##*/} exports $symbols"
done

# The tarball, from any directory and without any environment. Its first clip.
mkdir "$work/tar"
tar -xf "$work"/packages/*.tar.gz -C "$work/tar"
bin=$(echo "$work"/tar/*/bin)
(
  cd "$work"
  start=$SECONDS
  env -i "$bin/slowmo" record 'synthetic:320x240@240?pace=max' -o take.mov -t 1 --progress none
  env -i "$bin/slowmo-full" retime take.mov -o slow.mp4 --speed 1/8 --fps 30 --progress none
  env -i "$bin/slowmo" retime take.mov -o text.mp4 --trim 0..0.2 --speed 1/8 --fps 30 \
    --burn-in time,font=monospace --progress none
  # The libraries of the tarball are loaded, not those of this machine.
  env -i strace -f -e trace=openat -o opened "$bin/slowmo" scan take.mov --types qr,faces >codes
  for library in codes faces; do
    # Possibly that for newer processors, in a directory of its own.
    grep -q "lib/overcrank/.*libovercrank-$library.so.1.*) = [0-9]" opened || exit 1
  done
  echo "first clip: $((SECONDS - start)) s"
) >"$work/log" 2>&1 || fail "no first clip: $(cat "$work/log")"
grep '^first clip' "$work/log"

# The Python module of the package and of the tarball, with the command next to it.
for module in "$root/usr/lib/python3/dist-packages" "${bin%/bin}/share/overcrank/python"; do
  stored=$(PYTHONPATH=$module SLOWMO=$bin/slowmo PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c "
import overcrank
assert overcrank.__file__.startswith('$module'), overcrank.__file__
times = [frame.time for frame in overcrank.frames('$work/take.mov', at=[0.5])]
print(len(overcrank.frame_times('$work/take.mov')), times)")
  [ "$stored" = '240 [0.5]' ] || fail "the Python module in $module prints $stored"
  [ -e "$module/overcrank/py.typed" ] || fail "$module has no py.typed"
done

# A manual page for each verb, rendered without a warning.
verbs=$("$bin/slowmo" --help | sed -n '/^CAMERAS/,/^OPTIONS/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 10 ] || fail "the verbs were not found in the help: $verbs"
for verb in $verbs; do
  [ -e "$root/usr/share/man/man1/slowmo-$verb.1.gz" ] || fail "$verb has no manual page"
done
for page in "$root"/usr/share/man/man1/*.1.gz; do
  [ -L "$page" ] && continue
  warnings=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$warnings" ] || fail "${page##*/}: $warnings"
done

# Completion in each shell, as the tab key causes it.
bash -n "$root/usr/share/bash-completion/completions/slowmo"
zsh -n "$root/usr/share/zsh/vendor-completions/_slowmo"
fish -n "$root/usr/share/fish/vendor_completions.d/slowmo.fish"
hostile_names=20
[[ ${1-} == --full ]] && hostile_names=200
python3 Tests/check-completion.py "$root/usr" "$hostile_names"

[[ ${1-} == --full ]] || exit 0

# A clean Debian: the packages are installed with their dependencies, used, upgraded and removed.
install_packages debootstrap
debian=$work/debian
trap 'remove_clean_debian "$debian"; rm -rf "$work"' EXIT
make_clean_debian "$debian" || fail "no clean Debian"
mkdir "$debian/packages"
cp "$core" "$full" "$debian/packages"
# The same programs as a later version.
dpkg-deb -R "$core" "$work/later"
sed -i 's/^Version: .*/&+later/' "$work/later/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/later" "$debian/packages/later.deb" >/dev/null
cat >"$debian/use.sh" <<'USE'
set -eu
export DEBIAN_FRONTEND=noninteractive HOME=/root
apt-get update -qq
find / -xdev \( -name '*overcrank*' -o -name '*slowmo*' \) ! -path '/packages*' | sort >/before
apt-get install -y -qq --no-install-recommends /packages/overcrank_*.deb /packages/overcrank-full_*.deb
start=$(date +%s)
cd /tmp
slowmo record synthetic:640x480@240 -o take.mov -t 2 --progress none
slowmo retime take.mov -o slow.mp4 --range 0.5..1 --speed 1/8 --fps 30 --progress none
slowmo info slow.mp4
echo "first clip in a clean root: $(($(date +%s) - start)) s"
slowmo-full --version
apt-get install -y -qq --no-install-recommends python3-numpy
python3 -c 'import overcrank
for frame in overcrank.frames("take.mov", at=[1]): print(frame.index, frame.image.shape)' |
  grep -qx '240 (480, 640, 3)'
mkdir -p /root/.config/overcrank
echo kept >/root/.config/overcrank/test
dpkg --force-depends -i /packages/later.deb
slowmo --version
[ "$(cat /root/.config/overcrank/test)" = kept ]
rm -r /root/.config/overcrank
apt-get purge -y -qq overcrank-full overcrank
find / -xdev \( -name '*overcrank*' -o -name '*slowmo*' \) ! -path '/packages*' | sort >/after
diff /before /after
USE
chroot "$debian" sh /use.sh >"$work/log" 2>&1 || fail "in a clean root: $(tail -n 30 "$work/log")"
grep '^first clip' "$work/log"
