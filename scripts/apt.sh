# Packages of Debian and Ubuntu, for the scripts that need some: to be read by them (`. scripts/apt.sh`).
# shellcheck shell=sh

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Whether there is apt, and may be used without being asked for a password.
can_apt() {
    command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
}

# The package lists are only fetched when there are none, or when they are out of date.
apt_install() {
    apt_try "$@" || { as_root apt-get update -q && apt_try "$@"; }
}

# Another script may be installing something else.
apt_try() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}
