#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests/Tools/Lab/run.sh COMMAND: runs a shell command line in the emulated machine, where
# /dev/video0 is the kernel's virtual camera. See README.md in this directory.

set -eEuo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd "$lab/../../.." && pwd -P)

usage() {
  cat <<EOF
Usage: Tests/Tools/Lab/run.sh COMMAND

Boots an emulated machine with a virtual camera (vivid) and a loopback sound card, runs the shell
command line COMMAND there in this checkout, prints its output and exits with its status.

  124  the time was up        125  the lab itself failed

Environment (default):
  LAB_OUT      the one host directory that the guest may write, at the same path in the guest
               (.lab-cache/out)
  LAB_CACHE    where the kernel is kept; several checkouts may share it (.lab-cache)
  LAB_TIMEOUT  seconds for boot and command together (600)
  LAB_MOUNTS   more host directories to show below /tmp, /run or /dev/shm, separated by colons ()
  LAB_VIVID    parameters of the vivid module (n_devs=1)
  LAB_MEMORY   memory of the guest, of which /tmp may take three quarters (2G)
  LAB_ACCEL    an accelerator of qemu's, and with it two processors on the host's clock; by default
               one processor whose clock counts its own instructions (see README.md)
EOF
}

fail() {
  echo "lab: $*" >&2
  exit 125
}

# An unexpected failure must not be mistaken for the command's own status.
trap 'fail "run.sh itself failed at line $LINENO"' ERR

# Returns an absolute path without symbolic links, as the guest mounts it.
absolute() {
  mkdir -p -- "$1" && (cd -- "$1" && pwd -P)
}

case ${1-} in
  -h | --help)
    usage
    exit 0
    ;;
  '')
    usage >&2
    exit 125
    ;;
esac

cache=$(absolute "${LAB_CACHE:-$checkout/.lab-cache}") || fail "cannot make the directory LAB_CACHE"
out=$(absolute "${LAB_OUT:-$checkout/.lab-cache/out}") || fail "cannot make the directory LAB_OUT"
limit=${LAB_TIMEOUT:-600}
[[ $limit =~ ^[1-9][0-9]*$ ]] || fail "LAB_TIMEOUT is '$limit', not a number of seconds"

# --- Requirements --------------------------------------------------------------------------------

missing=()
while read -r package; do
  [[ $package == '' || $package == '#'* ]] && continue
  # shellcheck disable=SC2016 # the dollar is dpkg-query's
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
    missing+=("$package")
done <"$lab/packages"
if ((${#missing[@]})); then
  fail "missing packages, install them first: apt-get install ${missing[*]}"
fi

# --- The kernel and the initramfs, cached between runs -------------------------------------------

# Load order: first the virtio and 9p modules for the shares, then the devices.
transport=(virtio_pci 9pnet_virtio 9p)
devices=(vivid snd-aloop snd-hrtimer snd-dummy vhci-hcd uvcvideo snd-usb-audio gspca_ov534)

fetch_kernel() {
  local name
  kernel_name() {
    LC_ALL=C apt-cache depends linux-image-amd64 2>/dev/null |
      sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1 || true
  }
  name=$(kernel_name)
  if [[ -z $name ]]; then
    apt-get -qq update >&2 || fail "apt-get update failed; it is needed once, to find the kernel"
    name=$(kernel_name)
  fi
  [[ -n $name ]] || fail "apt knows no kernel package behind linux-image-amd64"

  rm -rf "$cache/fetching"
  mkdir "$cache/fetching"
  echo "lab: fetching $name" >&2
  # apt's sandbox user could not write to this directory. Outdated package lists may name a version
  # that the archive no longer has, so the lists are updated on failure.
  (
    cd "$cache/fetching"
    download=(apt-get -qq -o APT::Sandbox::User=root download "$name")
    "${download[@]}" >&2 || { apt-get -qq update >&2 && "${download[@]}" >&2; }
  ) || fail "apt-get could not download $name"
  dpkg -x "$cache/fetching"/*.deb "$cache/fetching" || fail "dpkg could not unpack $name"
  rm "$cache/fetching"/*.deb
  depmod -b "$cache/fetching" "${name#linux-image-}" || fail "depmod failed on $name"
  echo "${name#linux-image-}" >"$cache/fetching/version"
  mv "$cache/fetching" "$cache/kernel"
}

# Adds the named modules and their dependencies to the image, and their load order to a list.
add_modules() { # add_modules IMAGE LIST MODULE...
  local image=$1 list=$2 order verb file name
  shift 2
  order=$(modprobe -d "$cache/kernel" -S "$version" --show-depends -a "$@") ||
    fail "the kernel package lacks one of the modules $*"
  while read -r verb file _; do
    [[ $verb == insmod ]] || continue
    name=$(basename "$file")
    # Newer kernels ship compressed modules, which busybox may not support.
    case $name in
      *.xz) name=${name%.xz} && xz -dc "$file" >"$image/modules/$name" ;;
      *.zst) name=${name%.zst} && zstd -qdc "$file" >"$image/modules/$name" ;;
      *) cp "$file" "$image/modules/$name" ;;
    esac || fail "cannot unpack the module $file"
    # A module needed by several others is listed once.
    grep -qsxF "$name" "$image"/modules/{transport,devices} ||
      echo "$name" >>"$image/modules/$list"
  done <<<"$order"
}

build_initramfs() { # build_initramfs FILE
  local image=$cache/building applet
  rm -rf "$image"
  mkdir -p "$image"/{bin,control,dev,modules,proc,root,sys}
  cp /bin/busybox "$image/bin/busybox"
  for applet in $(/bin/busybox --list); do
    [[ $applet == busybox ]] || ln -s busybox "$image/bin/$applet"
  done
  install -m 755 "$lab/init" "$image/init"
  add_modules "$image" transport "${transport[@]}"
  add_modules "$image" devices "${devices[@]}"
  (cd "$image" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$1.part"
  mv "$1.part" "$1"
  rm -rf "$image"
}

# The lock serializes checkouts that share a cache. Files appear by an atomic rename, and the
# image's name contains a hash of its inputs. The lock is therefore needed only to find them.
exec {lock}>"$cache/lock"
flock "$lock"
[[ -e $cache/kernel/version ]] || fetch_kernel
version=$(<"$cache/kernel/version")
made_of=$({
  echo "$version ${transport[*]} / ${devices[*]}"
  declare -f add_modules build_initramfs
  cat "$lab/init" /bin/busybox
} | sha256sum)
initramfs=$cache/initramfs-${made_of:0:16}.gz
[[ -e $initramfs ]] || build_initramfs "$initramfs"
exec {lock}>&-

# --- The machine ---------------------------------------------------------------------------------

control=$(mktemp -d)
qemu=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
  [[ -z $qemu ]] || kill "$qemu" 2>/dev/null || true
  rm -rf "$control"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

shares=()
add_share() { # add_share TAG MODE PATH
  local readonly=off
  [[ $2 == rw ]] || readonly=on
  # qemu reads a doubled comma in a value as one comma.
  shares+=(-virtfs "local,path=${3//,/,,},mount_tag=$1,security_model=none,readonly=$readonly,multidevs=remap")
}

add_share control rw "$control"
add_share root ro /
{
  add_share checkout ro "$checkout"
  echo "checkout ro $checkout"
  number=0
  IFS=: read -r -a directories <<<"${LAB_MOUNTS:-}"
  for directory in ${directories[@]+"${directories[@]}"}; do
    [[ -d $directory ]] || fail "LAB_MOUNTS names '$directory', which is not a directory"
    directory=$(cd "$directory" && pwd -P)
    number=$((number + 1))
    add_share "more$number" ro "$directory"
    echo "more$number ro $directory"
  done
  # The output directory comes last, because it may lie inside another one.
  add_share out rw "$out"
  echo "out rw $out"
} >"$control/mounts"

# System directories come first, because wrappers in a user's home may need programs that the guest
# lacks.
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
[[ ! -d /opt/swift/usr/bin ]] || path+=:/opt/swift/usr/bin
printf '%s\n' "$path" >"$control/path"
printf '%s\n' "$out" >"$control/out"
printf '%s\n' "$checkout" >"$control/directory"
printf '%s\n' "${LAB_VIVID:-n_devs=1}" >"$control/vivid"
printf '%s\n' "$*" >"$control/command"
: >"$control/stdout"
: >"$control/stderr"
: >"$control/console"

# Emulation, because the build machines lack KVM. Each instruction takes the guest one nanosecond
# and idle time passes at once, so a busy host does not affect the guest.
if [[ ${LAB_ACCEL-} ]]; then
  processors=(-accel "$LAB_ACCEL" -smp 2)
else
  processors=(-accel tcg,thread=single -icount shift=0,sleep=off -smp 1)
fi
# timeout starts its own process group and forwards the signal to qemu.
timeout --kill-after=5 "$limit" \
  qemu-system-x86_64 "${processors[@]}" -cpu max \
  -m "${LAB_MEMORY:-2G}" \
  -nodefaults -nic none -display none -no-reboot -serial "file:$control/console" \
  -kernel "$cache/kernel/boot/vmlinuz-$version" -initrd "$initramfs" \
  -append "console=ttyS0 quiet panic=1" "${shares[@]}" \
  </dev/null >"$control/qemu" 2>&1 &
qemu=$!

# Output is forwarded as it arrives; each descriptor keeps its read position.
exec {output}<"$control/stdout" {errors}<"$control/stderr"
pass_on() {
  cat <&"$output"
  cat <&"$errors" >&2
}
ended=0
while kill -0 "$qemu" 2>/dev/null; do
  sleep 1 &
  nap=$!
  # The wait ends with the machine, before the second has passed.
  wait -n "$qemu" "$nap" || true
  kill "$nap" 2>/dev/null || true
  pass_on
done
wait "$qemu" || ended=$?
qemu=
pass_on

if [[ -s $control/status ]]; then
  exit "$(<"$control/status")"
fi

# Carriage returns and colors of the console are removed from the log.
{
  echo "lab: the end of the console:"
  tail -n 60 "$control/console" | sed 's/\r//g; s/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\x1bc//g'
  cat "$control/qemu"
} >&2
if ((ended == 124 || ended == 137)); then
  echo "lab: the machine did not finish within $limit s (LAB_TIMEOUT) and was killed" >&2
  exit 124
fi
reason=$(grep -m 1 -oE 'Kernel panic.*|lab: .*' "$control/console" | tr -d '\r' || true)
fail "the machine ended before it could report the command's exit status" \
  "(${reason:-no reason on the console}; qemu's own status $ended)"
