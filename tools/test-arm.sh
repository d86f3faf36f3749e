#!/bin/bash
# Builds tests for 64-bit ARM and runs them under qemu: those of base, tensor and every kernel, or of the folders named.
# On Debian 12 for x86-64. As root it adds what is missing, for which dpkg must know packages of arm64.
# usage: tools/test-arm.sh [FOLDER...]   FOLDER: below headlight/, as text or kernels/gemm
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "test-arm: $1" >&2
  exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "this is for x86-64, found $(uname -m): on ARM itself 'make test' runs these tests."
command -v dpkg >/dev/null 2>&1 || fail "there is no dpkg here: this needs Debian 12."
if ! dpkg --print-foreign-architectures | grep -qx arm64; then
  [ "$(id -u)" -eq 0 ] ||
    fail "packages of arm64 are not known here, and not root: run 'dpkg --add-architecture arm64' as root, then try again."
  echo "Adding the architecture arm64 to dpkg's"
  dpkg --add-architecture arm64
fi
tools/install-packages.sh tools/packages-arm.txt

if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046  # a list of names
  set -- $(find headlight/{base,tensor,kernels} -name '*_test.cc' ! -name '*_long_test.cc' -printf '%h\n' |
    sed 's,^headlight/,,' | sort -u)
fi
folders=()
for folder in "$@"; do
  ls "headlight/$folder"/*_test.cc >/dev/null 2>&1 || fail "there are no tests in headlight/$folder."
  folders+=("${folder//\//_}")
done

jobs=${JOBS:-$(nproc)}
cmake --preset arm64 -DHEADLIGHT_WERROR=ON >/dev/null
cmake --build --preset arm64 -j "$jobs" --target "${folders[@]/#/test_}"
# Not those that compare times: an emulator's say little, and take minutes.
labels=$(IFS='|'; echo "${folders[*]}")
ctest --preset arm64 -j "$jobs" -L "^($labels)\$" -E 'WorkIsProportional|CostNothing'
