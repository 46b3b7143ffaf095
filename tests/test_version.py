"""The commit that results name."""

import shutil
import subprocess
from importlib.util import module_from_spec, spec_from_file_location

import rejoinder.version


def commit_in(folder):
    """The commit that a copy of the module in a folder tells."""
    module = folder / "src" / "rejoinder" / "version.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(rejoinder.version.__file__, module)
    spec = spec_from_file_location("copied", module)
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.commit()


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", folder, *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_tells_its_commit_and_whether_files_changed(tmp_path):
    git(tmp_path, "init", "--quiet")
    assert commit_in(tmp_path) is None  # without a commit
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    git(tmp_path, "tag", "--annotate", "v1", "--message", "v1")  # a tag is not what is asked for
    commit = git(tmp_path, "rev-parse", "--short=12", "HEAD")
    assert commit_in(tmp_path) == commit
    (tmp_path / "new.txt").write_text("of no effect")
    assert commit_in(tmp_path) == commit
    module = tmp_path / "src" / "rejoinder" / "version.py"
    git(tmp_path, "mv", module, module.with_name("moved.py"))
    assert commit_in(tmp_path) == f"{commit}-dirty"


def test_an_installed_package_in_a_checkout_of_something_else_tells_none(tmp_path):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    assert commit_in(tmp_path / "venv" / "lib") is None
