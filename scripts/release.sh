#!/bin/sh
# Builds the files of a release into target/release-files: for each architecture an archive (program, completions, man pages, licence,
# SBOM) and a .deb with a systemd unit, the chart, checksums, and the section of the changelog as notes. What cannot be had on this
# machine is skipped with a line. RELEASE_BINARY=FILE takes this static binary for amd64 instead of a build.
#
#   release.sh [ARCHITECTURE...]     amd64 and arm64 by default
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=$target/release-files
owner=${OWNER:-OWNER}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The same sources give the same archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

say() { echo "release: $*" >&2; }

# The static binary of architecture $1.
binary() {
    if [ "$1" = amd64 ] && [ -n "${RELEASE_BINARY:-}" ]; then echo "$RELEASE_BINARY"; return; fi
    folder=$(scripts/build-static.sh "$1") || return $?
    echo "$folder/weir"
}

# Components of the program, from Cargo.lock, as CycloneDX.
sbom() {
    tools=$PWD/.cache/cargo-tools
    if ! [ -x "$tools/bin/cargo-cyclonedx" ] && [ "${SKIP_SBOM:-}" != 1 ]; then
        say "building cargo-cyclonedx"
        nice "${CARGO:-cargo}" install --quiet --locked --root "$tools" cargo-cyclonedx@0.5.9 >&2 || true
    fi
    if [ "${SKIP_SBOM:-}" = 1 ] || ! [ -x "$tools/bin/cargo-cyclonedx" ]; then
        say "SKIPPED: no SBOM, cargo-cyclonedx cannot be had (or SKIP_SBOM=1)"
        return
    fi
    "$tools/bin/cargo-cyclonedx" cyclonedx --quiet --format json --manifest-path Cargo.toml --override-filename weir-sbom
    mv weir-sbom.json "$out/weir-$version.cdx.json"
    find crates -name weir-sbom.json -exec rm {} +
}

# The files that archive and .deb share, into folder $1.
documents() {
    for file in LICENSE NOTICE THIRD-PARTY.md CHANGELOG.md README.md SECURITY.md; do
        if [ -e "$file" ]; then cp "$file" "$1/"; else say "SKIPPED: there is no $file"; fi
    done
    [ ! -e "$out/weir-$version.cdx.json" ] || cp "$out/weir-$version.cdx.json" "$1/"
}

archive() {
    name=weir-$version-linux-$1
    mkdir -p "$work/$name"
    install -m 755 "$2" "$work/$name/weir"
    cp -r "$work/files/completions" "$work/files/man" "$work/$name/"
    documents "$work/$name"
    sed "s/OWNER/$owner/g" deploy/systemd/weir.service >"$work/$name/weir.service"
    tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" |
        gzip --no-name --best >"$out/$name.tar.gz"
}

deb() {
    command -v dpkg-deb >/dev/null || { say "SKIPPED: no .deb, dpkg-deb is not there"; return; }
    root=$work/deb-$1
    doc=$root/usr/share/doc/weir
    mkdir -p "$root/DEBIAN" "$doc" "$root/usr/bin" "$root/usr/lib/systemd/system" "$root/usr/share/man/man1" "$root/etc/weir" \
        "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
    install -m 755 "$2" "$root/usr/bin/weir"
    sed "s/OWNER/$owner/g" deploy/systemd/weir.service >"$root/usr/lib/systemd/system/weir.service"
    install -m 644 deploy/systemd/weir.yaml "$root/etc/weir/weir.yaml"
    cp "$work/files/completions/weir.bash" "$root/usr/share/bash-completion/completions/weir"
    cp "$work/files/completions/_weir" "$root/usr/share/zsh/vendor-completions/_weir"
    cp "$work/files/completions/weir.fish" "$root/usr/share/fish/vendor_completions.d/weir.fish"
    for page in "$work"/files/man/*.1; do gzip --no-name --best <"$page" >"$root/usr/share/man/man1/$(basename "$page").gz"; done
    documents "$doc"
    [ ! -e LICENSE ] || cp LICENSE "$doc/copyright"
    echo /etc/weir/weir.yaml >"$root/DEBIAN/conffiles"
    cat >"$root/DEBIAN/control" <<END
Package: weir
Version: $version
Section: net
Priority: optional
Architecture: $1
Maintainer: The Weir authors <$owner@users.noreply.github.com>
Homepage: https://github.com/$owner/weir
Installed-Size: $(du -sk "$root" | cut -f1)
Description: exact rate-limit decisions over gRPC
 Weir decides whether a call may pass, on an embedded store, Redis or a Redis
 Cluster. It also serves in the place of envoyproxy/ratelimit.
END
    # The service starts when the administrator enables it: its first file is an example.
    cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart weir.service
fi
END
    cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl --no-reload disable --now weir.service; fi
END
    chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
    dpkg-deb --root-owner-group --build "$root" "$out/weir_${version}_$1.deb" >/dev/null
}

# The section of this version, or what is unreleased where the version has none yet.
notes() {
    section "$version" | grep . || section Unreleased
}

section() { awk -v title="## $1" '/^## / { on = $0 == title || index($0, title " ") == 1; next } on' CHANGELOG.md; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
sbom
[ $# -gt 0 ] || set -- amd64 arm64
for arch do
    status=0
    program=$(binary "$arch") || status=$?
    case $status in
    0) ;;
    3) say "SKIPPED $arch: it cannot be built here"; continue ;;
    *) exit $status ;;
    esac
    # The same for all architectures: the first binary that runs here writes them.
    if ! [ -d "$work/files" ]; then
        "$program" release-files "$work/files" || { say "$program does not run here: build amd64 first"; exit 1; }
    fi
    archive "$arch" "$program"
    deb "$arch" "$program"
done
if [ -x .cache/helm/helm ]; then make --silent chart OWNER="$owner" >&2 && cp "$target"/chart/*.tgz "$out/"; else say "SKIPPED: no chart, run scripts/install-helm.sh first"; fi
notes >"$out/NOTES.md"
(cd "$out" && sha256sum -- *.tar.gz *.deb *.tgz *.json 2>/dev/null >SHA256SUMS || [ -s SHA256SUMS ])
ls -l "$out"
