# Installs packages of Debian and Ubuntu. Other scripts include this file (`. scripts/apt.sh`).
# shellcheck shell=sh

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Whether apt exists and can be used without a password.
can_apt() {
    command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
}

# Fetches the package lists only if the installation fails without that.
apt_install() {
    apt_try "$@" || { as_root apt-get update -q && apt_try "$@"; }
}

# Another script may be installing something else.
apt_try() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}
