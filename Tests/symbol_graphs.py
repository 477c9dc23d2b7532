# SPDX-License-Identifier: Apache-2.0
"""Symbol graphs of the modules that `swift build` made, for the checks of names and documentation."""
import json
import pathlib
import subprocess

# Modules that `import Overcrank` brings.
UMBRELLA = "Overcrank"


def module_maps(repo, build):
    """The module maps of C targets, of this package and its dependencies."""
    yield from repo.glob("Sources/*/module.modulemap")
    yield from repo.glob(".build/checkouts/*/Sources/*/include/module.modulemap")
    yield from build.glob("*.build/module.modulemap")


def compiler_options(repo, build):
    """The options with which a Swift compiler finds the modules of a build directory."""
    options = ["-I", str(build / "Modules")]
    for path in module_maps(repo, build):
        options += ["-Xcc", f"-fmodule-map-file={path}"]
    return options


def reexported_modules(repo):
    """The modules that the umbrella module exports."""
    source = (repo / "Sources" / UMBRELLA / f"{UMBRELLA}.swift").read_text()
    return [line.split()[-1] for line in source.splitlines() if line.startswith("@_exported")]


def extract(repo, build, module, directory, options=()):
    """Writes the symbol graph of a module's public symbols into a directory."""
    target = subprocess.run(
        ["swiftc", "-print-target-info"], check=True, capture_output=True, text=True).stdout
    subprocess.run(
        ["swift", "symbolgraph-extract", "-module-name", module,
         "-target", json.loads(target)["target"]["triple"], "-output-dir", str(directory),
         "-minimum-access-level", "public", "-skip-synthesized-members",
         *options, *compiler_options(repo, build)],
        check=True, capture_output=True)


def extract_umbrella(repo, build, directory):
    """Writes one symbol graph that has every public symbol under the name that users import."""
    modules = ",".join(reexported_modules(repo))
    extract(repo, build, UMBRELLA, directory, [
        "-skip-inherited-docs", f"-experimental-allowed-reexported-modules={modules}"])


def load(directory):
    """The symbol graphs of a directory, each with the name of its module."""
    for path in sorted(pathlib.Path(directory).glob("*.symbols.json")):
        yield path.name.split(".")[0].split("@")[0], json.loads(path.read_text())
