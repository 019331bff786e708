#!/bin/sh
# Prints the CMake arguments that let the module be built by the given Python: nothing when its headers
# are there. Debian keeps them in a package of their own, which is installed (as root) or unpacked
# into build/ (as anyone).
set -eu
python=$1

include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
[ -e "$include/Python.h" ] && exit 0

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
fail() {
  echo "fairlap: Python's headers are missing ($include/Python.h), and $1." >&2
  echo "         Install them, on Debian and Ubuntu with: apt-get install python$version-dev" >&2
  exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get to fetch them with"
if [ "$(id -u)" = 0 ]; then
  apt-get update >&2 || true
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "libpython$version-dev" >&2 ||
    fail "installing libpython$version-dev did not work"
  exit 0
fi

headers=$(pwd)/build/python-headers
mkdir -p "$headers"
(cd "$headers" && apt-get download "libpython$version-dev" >&2) || fail "downloading libpython$version-dev did not work"
dpkg -x "$headers"/libpython*.deb "$headers"
echo "-DPython_INCLUDE_DIR=$headers/usr/include/python$version -DCMAKE_CXX_FLAGS=-I$headers/usr/include"
