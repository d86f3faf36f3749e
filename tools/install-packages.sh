#!/bin/sh
# Installs the Debian packages named in the given lists (one name a line), and only those that are missing. A name is that
# of this machine's package, name:arm64 that of another architecture.
# usage: tools/install-packages.sh LIST...
set -eu

if [ $# -eq 0 ]; then
  echo "usage: $0 LIST..." >&2
  exit 2
fi

machine=$(dpkg --print-architecture 2>/dev/null || true)
installed() {
  wanted=$machine
  case $1 in *:*) wanted=${1#*:} ;; esac
  dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null | grep -qxE "($wanted|all) installed"
}

missing=""
for package in $(cat "$@"); do
  installed "$package" || missing="$missing $package"
done
if [ -z "$missing" ]; then
  exit 0
fi

fail() {
  echo "install-packages: $1" >&2
  echo "These packages are missing:$missing" >&2
  exit 1
}

command -v apt-get >/dev/null 2>&1 || fail "there is no apt-get here: this needs Debian 12, or the packages by other means."
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 ||
    fail "not root, and no sudo: run 'apt-get install' for them as root, then try again."
  as_root="sudo"
fi

echo "Installing missing packages:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -q update || fail "'apt-get update' failed: is the network there?"
# shellcheck disable=SC2086  # a list of names
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get -q -y install --no-install-recommends $missing </dev/null ||
  fail "'apt-get install' failed: its own message is above."
