"""Looks the versions of requirements.lock up among known vulnerabilities, where that is possible.

    python .ci/audit.py [PYTHON]     # one that has pip-audit; by default this one

Ends with status 1 if one of them has a vulnerability that is fixed in a later version. Without
pip-audit, or where the registry tells nothing about vulnerabilities, one line says so.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(python: str) -> int:
    """Returns the exit status."""
    pinned = re.findall(r"(?m)^[\w.-]+==[^\s;]+", (ROOT / "requirements.lock").read_text("utf-8"))
    if not Path(python).exists():
        return skipped("pip-audit could not be installed")
    with tempfile.TemporaryDirectory() as folder:
        versions = Path(folder) / "versions.txt"
        versions.write_text("".join(f"{line}\n" for line in pinned), "utf-8")
        command = [python, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format=json"]
        command += ["--progress-spinner=off", "--timeout=15", "-r", str(versions)]
        try:
            ended = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=300
            )
        except subprocess.TimeoutExpired:
            return skipped("the registry did not answer within five minutes")
    try:
        packages = json.loads(ended.stdout)["dependencies"]
    except ValueError:
        lines = ended.stderr.strip().splitlines()
        return skipped(lines[-1][:200] if lines else f"pip-audit ended with {ended.returncode}")
    looked_up = [package for package in packages if "vulns" in package]
    if not looked_up:
        return skipped("the registry tells nothing about vulnerabilities")
    fixed = [(package, each) for package in looked_up for each in package["vulns"]]
    fixed = [(package, each) for package, each in fixed if each["fix_versions"]]
    for package, each in fixed:
        where = f"{package['name']} {package['version']}"
        say(f"{where}: {each['id']}, fixed in {', '.join(each['fix_versions'])}")
    say(f"audit: {len(looked_up)} of {len(pinned)} packages looked up, {len(fixed)} to update")
    return 1 if fixed else 0


def skipped(why: str) -> int:
    """Says that nothing was looked up."""
    say(f"audit: skipped, {why}")
    return 0


def say(line: str) -> None:
    """Prints a line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else sys.executable))
