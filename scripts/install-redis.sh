#!/bin/sh
# Installs redis-server for the tests, which start and stop their own servers. Prints nothing if it is installed.
set -eu
cd "$(dirname "$0")/.."
. scripts/apt.sh

say() { echo "install-redis: $*" >&2; }

# The package may start and enable a service. The tests do not use it.
stop_service() {
    if [ -d /run/systemd/system ]; then
        as_root systemctl disable --now redis-server || say "could not disable the package's redis-server service"
    elif [ -x /etc/init.d/redis-server ]; then
        as_root /etc/init.d/redis-server stop || say "could not stop the package's redis-server service"
    fi
}

if command -v redis-server >/dev/null; then
    exit 0
fi
if ! can_apt; then
    say "the tests need redis-server (on Debian and Ubuntu: apt-get install redis-server)"
    exit 1
fi

say "installing redis-server"
apt_install redis-server >&2
stop_service >&2
command -v redis-server >/dev/null || { say "redis-server is installed, but not in the PATH"; exit 1; }
say "done"
