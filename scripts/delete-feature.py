#!/usr/bin/env python3
"""Deletes a feature from a copy of the sources, as its README says: delete-feature.py NAME COPY

A feature is its crate, its files in the shared folders, the modules declared under its `#[cfg(feature = "NAME")]`,
and its lines in the manifest and in src/features.rs. `make test-release` deletes each one in a copy, and tests the rest.
"""

import pathlib
import re
import shutil
import sys

# What is a feature's by another name than its own.
PROTOS = {"envoy": ["proto/envoy", "proto/ratelimit"]}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    name, copy = sys.argv[1], pathlib.Path(sys.argv[2])
    if not (copy / "crates" / name).exists():
        sys.exit(f"delete-feature.py: {copy}/crates/{name} is no feature")
    modules(name, copy)
    manifest(name, copy / "Cargo.toml")
    line_of_the_list(name, copy / "src/features.rs")
    client(name, copy / "crates/load/src")
    places = [f"crates/{name}", f"lua/{name}", f"proto/weir/v1/{name}.proto", f"docs/{name}.md", *PROTOS.get(name, [])]
    for place in places:
        remove(copy / place)
    print("deleted; now `cargo build -p weir-proto --features generate` writes the code of the protos that are left")


def modules(name, copy):
    """Deletes the modules of src, tests and benches that only the feature has."""
    condition = rf'(?:all\([^\n]*)?feature = "{name}"[^\n]*'
    attributes, visible = r"((?: *#\[[^\n]*\n)*)", r"(?:pub(?:\(crate\))? )?"
    declared = re.compile(rf"^ *#\[cfg\({condition}\)\]\n{attributes} *{visible}mod (\w+);\n", re.M)
    for folder in ("src", "tests", "benches"):
        for file in sorted((copy / folder).rglob("*.rs")):
            if not file.exists():
                continue
            text = file.read_text()
            is_root = file.stem in ("main", "lib", file.parent.name) or file.parent.name == "benches"
            below = file.parent if is_root else file.with_suffix("")
            for found, module in declared.findall(text):
                path = re.search(r'path = "([^"]+)"', found)
                remove(file.parent / path[1] if path else below / f"{module}.rs")
                remove(below / module)
            file.write_text(declared.sub("", text))


def manifest(name, file):
    """Deletes the feature, its crate and its benches."""
    sections = file.read_text().split("\n[")
    for bench in [section for section in sections if f'required-features = ["{name}"]' in section]:
        sections.remove(bench)
        target = re.search(r'name = "(\w+)"', bench)[1]
        remove(file.parent / f"benches/{target}.rs")
        remove(file.parent / "benches" / target)
    text = "\n[".join(sections).replace(f'"{name}", ', "").replace(f', "{name}"', "")
    text = re.sub(rf"(?:# [^\n]*\n)*{name} = \[[^\n]*\n", "", text)
    text = re.sub(rf"weir-{name}[ .][^\n]*\n", "", text)
    # Attributes that ask for it are left, and are false.
    lints, allowed = "[workspace.lints.rust]\n", "unexpected_cfgs = \"allow\"\n"
    file.write_text(text if allowed in text else text.replace(lints, lints + allowed))


def line_of_the_list(name, file):
    file.write_text(re.sub(rf' *#\[cfg\(feature = "{name}"\)\]\n *&weir_{name}::[^\n]*\n', "", file.read_text()))


def client(name, folder):
    """Deletes the calls of the feature from the client of the commands."""
    declaring = folder / "client.rs"
    declaring.write_text(declaring.read_text().replace(f"mod {name};\n", ""))
    remove(folder / "client" / f"{name}.rs")


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


if __name__ == "__main__":
    main()
