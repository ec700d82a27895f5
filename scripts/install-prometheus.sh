#!/bin/sh
# Unpacks Debian's Prometheus into .cache/prometheus, for the test that runs the queries of dashboards. It is not installed, so
# that no service is started. Prints nothing if it is there. SKIP_PROMETHEUS=1 skips it: its test then passes without
# running, and says so.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

cache=$PWD/.cache/prometheus

say() { echo "install-prometheus: $*" >&2; }

# Anybody may download a package; only the lists may have to be fetched first.
fetch() {
    (cd "$cache" && apt-get download -q prometheus >&2) && return
    can_apt && as_root apt-get update -q >&2 && (cd "$cache" && apt-get download -q prometheus >&2)
}

if [ "${SKIP_PROMETHEUS:-}" = 1 ]; then
    say "SKIP_PROMETHEUS=1: the queries of dashboards are NOT run in a real Prometheus"
    exit 0
fi
if [ -x "$cache/prometheus" ]; then
    exit 0
fi
say "unpacking Prometheus (20 MB)"
rm -rf "$cache"
mkdir -p "$cache"
if ! command -v dpkg-deb >/dev/null || ! fetch; then
    say "the tests need Prometheus as a package of Debian or Ubuntu; SKIP_PROMETHEUS=1 skips the test that needs it"
    exit 1
fi
dpkg-deb -x "$cache"/prometheus_*.deb "$cache/package"
mv "$cache/package/usr/bin/prometheus" "$cache/prometheus"
rm -rf "$cache/package" "$cache"/prometheus_*.deb
