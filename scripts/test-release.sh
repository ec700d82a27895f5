#!/usr/bin/env bash
# Builds what is released and uses it: image, archives, .deb. Each part prints its time; one that cannot run here prints why. Slow,
# because of the release builds: PROFILE=tests builds in a fifth of the time.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
skipped=0

part() {
    local name=$1 started=$SECONDS
    shift
    echo "== $name"
    # Not in a condition: there, the shell would go on after a failed line.
    (set -eu; "$@")
    case $? in
    0) ;;
    3) skipped=$((skipped + 1)); echo "== $name: SKIPPED" ;;
    *) status=1; echo "== $name: FAILED" ;;
    esac
    echo "== $name: $((SECONDS - started)) s"
}

# Ends a part that needs programs which are not there, or files that an earlier part has not made.
need() {
    local program
    for program; do
        if ! command -v "$program" >/dev/null; then echo "SKIPPED: $program is not there"; exit 3; fi
    done
}
need_file() { if ! [ -e "$1" ]; then echo "SKIPPED: there is no $1"; exit 3; fi; }

# Runs a program in the root $1 with nothing but loopback, read-only, as user 65532, and asks it for decisions. $2: the program, in words.
decide() {
    local mapped=--map-root-user
    [ "$(id -u)" -ne 0 ] || mapped=
    # shellcheck disable=SC2086
    if ! unshare $mapped --net --mount --pid --fork --kill-child true 2>/dev/null; then
        echo "SKIPPED: no decision is asked, this machine allows no namespaces"
        return
    fi
    # shellcheck disable=SC2016,SC2086 # the inner shell expands
    unshare $mapped --net --mount --pid --fork --kill-child sh -euc '
        root=$1 program=$2
        ip link set lo up
        mount --bind "$root" "$root"
        mount -o remount,bind,ro "$root"
        run() { chroot $user "$root" $program "$@"; }
        user=--userspec=65532:65532
        run --version >/dev/null 2>&1 || { user=; echo "user 65532 is not mapped here: run as root of the namespace"; }
        run serve --listen 0.0.0.0:8081 --admin 0.0.0.0:8080 2>"$3" &
        for _ in $(seq 100); do ! run health >/dev/null 2>&1 || break; sleep 0.1; done
        run health
        run allow api/orders bob
        # 20 at once, 10 a second: the second call is denied, also in an emulator, where each takes half a second.
        run allow --cost 20 api/orders carol >/dev/null
        status=0
        run allow --cost 20 api/orders carol || status=$?
        [ $status -eq 1 ] || { echo "the second call was not denied: $status"; exit 1; }
    ' sh "$1" "$2" "$work/log" || { cat "$work/log"; return 1; }
}

image() {
    rm -rf "$target/image"
    need go python3
    scripts/image.sh
}

# Finds an emulator of arm64, or installs it.
emulator() {
    command -v qemu-aarch64-static >/dev/null && return
    # shellcheck source=scripts/apt.sh
    . scripts/apt.sh
    can_apt && apt_install qemu-user-static >&2
}

# As a container runtime does: index, manifest, configuration, layers.
unpacked_image() {
    local layout=$target/image/weir root=$work/image
    need python3 file
    need_file "$layout/index.json"
    python3 - "$layout" "$root" <<'END'
import hashlib, json, pathlib, sys, tarfile
layout, root = map(pathlib.Path, sys.argv[1:])
def blob(descriptor):
    data = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"] and len(data) == descriptor["size"]
    return data
index = json.loads((layout / "index.json").read_text())
for entry in index["manifests"]:
    arch = entry["platform"]["architecture"]
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    assert (config["os"], config["architecture"]) == ("linux", arch)
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/weir"]
    assert config["config"]["Cmd"] == ["serve", "--listen", "0.0.0.0:8081", "--admin", "0.0.0.0:8080"]
    labels = config["config"]["Labels"]
    for label in ("title", "version", "revision", "licenses", "source"):
        assert labels["org.opencontainers.image." + label], label
    for layer in manifest["layers"]:
        blob(layer)
        with tarfile.open(layout / "blobs" / layer["digest"].replace(":", "/")) as archive:
            archive.extractall(root / arch, filter="tar")
            assert all(member.uid == 0 for member in archive)
    header = (root / arch / "weir").read_bytes()[:20]
    machine = {"amd64": 62, "arm64": 183}[arch]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == machine, arch
    print(arch, "image of", len(labels), "labels; ELF machine", machine)
END
    ! [ -e "$root/arm64" ] || file "$root/arm64/weir" | grep -q "statically linked"
    file "$root/amd64/weir" | grep -Eq "static(ally|-pie) linked"
    decide "$root/amd64" /weir
    test "$(readlink "$root/amd64/bin/ratelimit")" = ../weir
    if ! [ -e "$root/arm64" ]; then
        echo "SKIPPED: arm64 is not run, there is no image of it"
    elif ! emulator; then
        echo "SKIPPED: arm64 is not run, there is no qemu-aarch64-static (apt-get install qemu-user-static)"
    else
        cp "$(command -v qemu-aarch64-static)" "$root/arm64/emulator"
        decide "$root/arm64" "/emulator /weir"
    fi
}

archives() {
    rm -rf "$target/release-files"
    need_file "$work/image/amd64/weir"
    RELEASE_BINARY=$work/image/amd64/weir scripts/release.sh "$@"
    (cd "$target/release-files" && sha256sum --check --quiet SHA256SUMS)
    test -s "$target/release-files/NOTES.md"
}

unpacked_archive() {
    local folder
    need_file "$target/release-files/SHA256SUMS"
    mkdir -p "$work/archive"
    tar -xzf "$target"/release-files/weir-*-linux-amd64.tar.gz -C "$work/archive"
    folder=$(echo "$work"/archive/*)
    "$folder/weir" --version
    bash -n "$folder/completions/weir.bash"
    # shellcheck disable=SC1091 # it is written by the program
    (. "$folder/completions/weir.bash" && complete -p weir)
    for page in "$folder"/man/*.1; do
        grep -q '^\.TH' "$page"
    done
    test -e "$folder/man/weir-serve.1"
    decide "$folder" /weir
}

# Installed into a root of its own, with a database of packages of its own.
installed_deb() {
    local root=$work/installed deb
    need dpkg dpkg-deb
    need_file "$target/release-files/SHA256SUMS"
    deb=$(echo "$target"/release-files/weir_*_amd64.deb)
    mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
    : >"$root/var/lib/dpkg/status"
    # There is no shell in this root: the scripts of the package run from outside, and find no systemd.
    dpkg --root="$root" --force-script-chrootless --force-not-root --log=/dev/null --install "$deb"
    dpkg --root="$root" --status weir | grep -q "^Status: install ok installed"
    "$root/usr/bin/weir" check --config "$root/etc/weir"
    decide "$root" /usr/bin/weir
    for script in postinst prerm; do sh -n "$root/var/lib/dpkg/info/weir.$script"; done
    if command -v systemd-analyze >/dev/null; then
        sed "s|/usr/bin/weir|$root/usr/bin/weir|" "$root/usr/lib/systemd/system/weir.service" >"$work/weir.service"
        systemd-analyze verify --man=no "$work/weir.service"
        systemd-analyze security --offline=true --threshold=20 "$work/weir.service" | tail -1
    else
        echo "SKIPPED: systemd-analyze is not there (apt-get install systemd)"
    fi
}

# docs/clients.md has the table. There is one version of the server so far, and no client is published yet.
clients() {
    scripts/test-clients.sh test
    scripts/test-clients.sh oldest python
}

part "the image, as an OCI layout" image
part "a decision of the unpacked image" unpacked_image
part "archives, packages, checksums, notes" archives
part "a decision of the unpacked archive" unpacked_archive
part "a decision of the installed .deb, and its unit" installed_deb
part "the client libraries, with the newest and with the oldest libraries" clients
part "faults that are planted in the client libraries, and found" python3 clients/conformance/faults.py
part "the hooks of LiteLLM, in its real proxy" scripts/test-litellm.sh
part "each feature deleted in a copy, and the rest tested" scripts/test-deletion.sh
part "the long tests, in their full size" make test-long BUDGET=1800
part "the conformance suite of Connect, against the HTTP listener" scripts/test-conformance.sh
part "the clients of Connect in Go, TypeScript and Python, against the real server" scripts/test-connect.sh

if [ $status -eq 0 ]; then echo "make test-release: all tests passed ($skipped parts SKIPPED)"; else echo "make test-release: FAILED, see above"; fi
exit $status
