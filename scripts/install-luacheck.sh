#!/bin/sh
# Installs luacheck, which checks the scripts for Redis. Prints nothing if it is installed.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

say() { echo "install-luacheck: $*" >&2; }

if command -v luacheck >/dev/null; then
    exit 0
fi
if ! can_apt; then
    say "\`make lint\` needs luacheck (on Debian and Ubuntu: apt-get install lua-check)"
    exit 1
fi
say "installing luacheck"
apt_install lua-check >&2
command -v luacheck >/dev/null || { say "luacheck is installed, but not in the PATH"; exit 1; }
