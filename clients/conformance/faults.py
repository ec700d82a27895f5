"""Plants the faults of faults.json, one after the other, into a copy of each client. The tests of a fault must find it.

Without a fault they must pass. faults.py [python|typescript] [C-49 …]. It needs what scripts/test-clients.sh installs and
builds.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "typescript")
#: What a test that hangs may take.
LONGEST = 120


def main() -> int:
    """Returns 1 if no test finds one of the faults."""
    languages = [name for name in sys.argv[1:] if name in LANGUAGES] or LANGUAGES
    rules = {name for name in sys.argv[1:] if name not in LANGUAGES}
    faults = json.loads((ROOT / "clients/conformance/faults.json").read_text())
    chosen = [fault for fault in faults if fault["language"] in languages and rules <= set(fault["rules"])]
    with tempfile.TemporaryDirectory() as folder:
        copies = {language: copied(Path(folder) / language, language) for language in languages}
        for language, tests in sorted({(fault["language"], fault["tests"]) for fault in chosen}):
            ended, output = run(copies[language], language, shlex.split(tests))
            if ended != 0:
                print(f"{language}: {tests}: the tests fail without a fault\n{output[-3000:]}")
                return 1
        unfound = [fault for fault in chosen if not is_found(copies[fault["language"]], fault)]
    print(f"{len(chosen) - len(unfound)} of {len(chosen)} planted faults are found")
    return 1 if unfound or not chosen else 0


def copied(root: Path, language: str) -> Path:
    """Makes a tree with a copy of a client, beside what its tests read, and returns the client's folder."""
    client = root / "clients" / language
    shutil.copytree(ROOT / "clients" / language, client, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    for name in ("clients/conformance", "docs", "proto", "target", ".cache", f"clients/{language}/node_modules"):
        if (ROOT / name).exists():
            (root / name).symlink_to(ROOT / name)
    return client


def is_found(client: Path, fault: dict[str, object]) -> bool:
    """Plants a fault, runs its tests, takes it out again, and returns whether one of them fails."""
    file, old, new = client / str(fault["file"]), str(fault["old"]), str(fault["new"])
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {old!r} is there {text.count(old)} times"
    file.write_text(text.replace(old, new))
    began = time.monotonic()
    try:
        ended, output = run(client, str(fault["language"]), shlex.split(str(fault["tests"])))
    finally:
        file.write_text(text)
    # 1: tests have failed. Anything else, such as no test of this name, has found nothing.
    found = ended == 1
    what = " ".join(str(fault["tests"]).split())
    rules = ", ".join(map(str, fault["rules"]))  # type: ignore[call-overload]
    verdict = "found" if found else f"NOT FOUND (status {ended})"
    print(f"{fault['language']}: {rules}: {verdict} by {what}, {time.monotonic() - began:.0f} s", flush=True)
    if not found:
        print(output[-1500:], flush=True)
    return found


def run(client: Path, language: str, tests: list[str]) -> tuple[int, str]:
    """Runs tests, and returns their status. What hangs fails."""
    if language == "python":
        python = ROOT / ".cache/clients-python/bin/python"
        command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-x", *tests]
        folder = client / "tests"
    else:
        command = ["npx", "vitest", "run", "--bail=1", *tests]
        folder = client
    more = {"PYTHONPATH": str(client / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, "the tests hang"
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
