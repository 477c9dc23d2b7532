# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that need Debian packages.

# The packages that the library and the command are built with.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
build_packages=(
  pkg-config libv4l-dev libavcodec-dev libavformat-dev libswscale-dev libswresample-dev
  librubberband-dev libasound2-dev libturbojpeg0-dev
)

# Those of the optional libraries, which a build of everything needs besides: windows, HEIC photos,
# textures and the renderer that works without a GPU.
# shellcheck disable=SC2034  # Used by the scripts that source this file.
optional_packages=(
  libsdl2-dev libheif-dev libegl-dev libgles-dev libegl1 libgles2 libgl1-mesa-dri
)

# install_packages NAME...: installs the missing packages and prints their names.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
      missing+=("$name")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "Installing the Debian packages that are missing: ${missing[*]}" >&2
  local root=()
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  # A fresh machine has no package lists yet.
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  # Waits while another program installs packages.
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
    install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# download_package NAME DIRECTORY: unpacks a Debian package without installing it.
download_package() {
  local files
  files=$(mktemp -d)
  # A fresh machine has no package lists yet.
  (cd "$files" && apt-get download -qq -o APT::Sandbox::User=root "$1" >&2) || {
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    (cd "$files" && apt-get download -qq -o APT::Sandbox::User=root "$1" >&2)
  }
  dpkg-deb --extract "$files"/*.deb "$2"
  rm -rf "$files"
}

# install_library NAME VERSION DESCRIPTION [ARGUMENT...]: installs a shared library as the Debian
# package NAME, unless it is installed, or removes it if the argument is --remove. The script's own
# function build_library makes it: it is called with a directory for its work and that of the package's
# files, and prints nothing to stdout. The package is kept in ~/.cache/overcrank, so that it is built
# once for all checkouts. Prints the script's header for other arguments.
install_library() {
  # The script's own variables are seen by build_library, except those that have one of these names.
  local name=$1 package_version=$2 description=$3 root=() architecture cache package
  shift 3
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  if [ "${1-}" = --remove ]; then
    exec "${root[@]}" dpkg --purge "$name"
  fi
  [ $# -eq 0 ] || { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 64; }
  is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null)" = "installed $2" ]
  }
  ! is_installed "$name" "$package_version" || return 0

  architecture=$(dpkg --print-architecture)
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/overcrank
  package=$cache/${name}_${package_version}_$architecture.deb
  mkdir -p "$cache"
  # Another checkout may be building it now.
  exec 9>"$cache/$name.lock"
  flock 9
  ! is_installed "$name" "$package_version" || return 0
  if [ ! -f "$package" ]; then
    # Not local: the trap runs after the function.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/tree/DEBIAN"
    cat >"$work/tree/DEBIAN/control" <<CONTROL
Package: $name
Version: $package_version
Architecture: $architecture
Maintainer: Overcrank maintainers <maintainers@overcrank.org>
Section: libs
Priority: optional
Description: $description, which Overcrank loads at run time
 Made by Samples/$(basename "$0") of Overcrank.
CONTROL
    # The list of the dynamic loader.
    echo "activate-noawait ldconfig" >"$work/tree/DEBIAN/triggers"
    build_library "$work" "$work/tree"
    dpkg-deb --root-owner-group --build "$work/tree" "$work/package.deb" >&2
    # A copy that is interrupted must not be taken for the package.
    cp "$work/package.deb" "$package.new"
    mv "$package.new" "$package"
  fi
  "${root[@]}" dpkg --install "$package" >&2
}
