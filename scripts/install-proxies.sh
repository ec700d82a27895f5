#!/bin/sh
# Unpacks Debian's nginx, HAProxy and Caddy into .cache/proxies, for the tests of the recipes in deploy/http/, and builds the newest
# Caddy, a Go module. They are not installed, so that no service is started. Prints nothing if they are there. SKIP_PROXIES=1 skips
# them, and SKIP_GO=1 the newest Caddy: their tests then pass without running, and say so.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

cache=$PWD/.cache/proxies
packages="nginx haproxy caddy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1"
newest=v2.11.9

say() { echo "install-proxies: $*" >&2; }

# Anybody may download a package; only the lists may have to be fetched first.
fetch() {
    # shellcheck disable=SC2086
    (cd "$cache" && apt-get download -q $packages >&2) && return
    # shellcheck disable=SC2086
    can_apt && as_root apt-get update -q >&2 && (cd "$cache" && apt-get download -q $packages >&2)
}

debian_packages() {
    say "unpacking nginx, HAProxy and Caddy (20 MB)"
    rm -rf "$cache/usr" "$cache/etc" "$cache/lib" "$cache/var"
    mkdir -p "$cache"
    if ! command -v dpkg-deb >/dev/null || ! fetch; then
        say "the tests need nginx, HAProxy and Caddy as packages of Debian or Ubuntu; SKIP_PROXIES=1 skips the tests that need them"
        exit 1
    fi
    for package in "$cache"/*.deb; do
        dpkg-deb -x "$package" "$cache"
    done
    rm "$cache"/*.deb
}

newest_caddy() {
    command -v go >/dev/null ||
        { say "the newest Caddy needs Go 1.26 (on Debian and Ubuntu: apt-get install golang-go); SKIP_GO=1 skips its test"; exit 1; }
    say "building Caddy $newest (a minute)"
    rm -f "$cache"/caddy-*
    GOENV=off GOBIN="$cache/built" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 \
        nice -n 1 go install "github.com/caddyserver/caddy/v2/cmd/caddy@$newest" >&2
    mv "$cache/built/caddy" "$cache/caddy-$newest"
    rmdir "$cache/built"
}

if [ "${SKIP_PROXIES:-}" = 1 ]; then
    say "SKIP_PROXIES=1: the recipes of deploy/http are NOT run with the real proxies"
    exit 0
fi
if ! [ -x "$cache/usr/sbin/haproxy" ] || ! [ -x "$cache/usr/sbin/nginx" ] || ! [ -x "$cache/usr/bin/caddy" ]; then
    debian_packages
fi
if [ "${SKIP_GO:-}" = 1 ]; then
    say "SKIP_GO=1: the recipe of Caddy is NOT run with the newest one"
elif ! [ -x "$cache/caddy-$newest" ]; then
    newest_caddy
fi
