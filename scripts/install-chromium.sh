#!/bin/sh
# Installs Chromium for the tests of the page at /ui. Prints nothing if it is installed. SKIP_CHROMIUM=1 skips it: its
# tests then pass without running, and say so.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

say() { echo "install-chromium: $*" >&2; }

if [ "${SKIP_CHROMIUM:-}" = 1 ]; then
    say "SKIP_CHROMIUM=1: the page at /ui is NOT tested in a browser"
    exit 0
fi
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
    exit 0
fi
if ! can_apt; then
    say "the tests of the page at /ui need Chromium: install it (on Debian: apt-get install chromium);" \
        "SKIP_CHROMIUM=1 skips them"
    exit 1
fi
say "installing Chromium (100 MB)"
apt_install chromium >&2
