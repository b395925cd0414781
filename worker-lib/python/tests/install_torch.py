"""Installs PyTorch into this Python environment for tests on the CPU, without gigabytes of CUDA libraries.

PyTorch on PyPI for Linux is a CUDA build. Its libraries link a dozen NVIDIA libraries, a 3 GB download, but call none
of them without a GPU. This script therefore installs only the two that execute code when they are loaded (the runtime
and CUPTI, 14 MB), and builds stub libraries with the same symbols, which abort when called, in place of the others. It
requires `cc` and `readelf`. It is for tests only; for training, install PyTorch as its website describes.
"""

import collections
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

TORCH = "torch==2.15.0"
REAL = ["nvidia-cuda-runtime==13.2.*", "nvidia-cuda-cupti==13.2.*"]
# torchft requires PyTorch, and therefore the NVIDIA libraries; without dependencies, it does not.
TORCHFT = "torchft==0.2.0"
OF_TORCHFT = [f"opentelemetry-{part}>=1.39" for part in ("api", "sdk", "exporter-otlp-proto-http")]
# Stable-Baselines3 and its contributions require PyTorch too; without dependencies, pip leaves the installed one alone.
SB3 = ["stable-baselines3==2.9.2", "sb3-contrib==2.9.2"]
PURE = ["cloudpickle", "filelock", "sympy", "networkx", "jinja2", "fsspec", "typing-extensions", "numpy"]

SITE = Path(sysconfig.get_path("purelib"))
STUBS = SITE / "nvidia" / "cu13" / "lib"
# File with the names of the stubs built by an earlier run. They are rebuilt, because another version of PyTorch may
# need different symbols.
BUILT = STUBS / "stubs.txt"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def install(*packages):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *packages], check=True)


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library)))


def symbols(library):
    """Returns the library's dynamic symbols as (undefined, defined); undefined ones are `name` or `name@version`."""
    undefined, defined = set(), set()
    for line in run("readelf", "--dyn-syms", "-W", library).splitlines():
        # Num: Value Size Type Bind Vis Ndx Name [(version)]
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":") or fields[3] == "NOTYPE" and fields[4] == "WEAK":
            continue
        (undefined if fields[6] == "UND" else defined).add(fields[7])
    return undefined, defined


def versions(library):
    """Returns the library that provides each required symbol version."""
    owner, file = {}, None
    for line in run("readelf", "-VW", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            file = found[1]
        elif file and (found := re.search(r"Name: (\S+)", line)):
            owner[found[1]] = file
        elif "Version symbols section" in line or "Version definition section" in line:
            file = None
    return owner


def build(soname, wanted):
    """Builds a stub library; `wanted` maps each symbol version, or the empty string, to symbol names."""
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        names = sorted({name for names in wanted.values() for name in names})
        lines = ["void abort(void);"] + [f"void {name}(void) {{ abort(); }}" for name in names]
        source.write_text("\n".join(lines))
        nodes = [
            f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};"
            for version, names in wanted.items()
            if version
        ]
        script.write_text("\n".join(nodes))
        options = [f"-Wl,--version-script={script}"] if nodes else []
        run("cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{soname}", *options,
            "-o", str(STUBS / soname), str(source))  # fmt: skip


def main():
    install(*PURE, *OF_TORCHFT)
    install("--no-deps", TORCH, TORCHFT, *SB3, *REAL)
    libraries = sorted(map(str, (SITE / "torch" / "lib").glob("*.so")))
    built = set(BUILT.read_text().split()) if BUILT.exists() else set()
    present = {Path(library).name for library in libraries} | {path.name for path in STUBS.iterdir()} - built
    # Libraries that neither PyTorch, nor the two installed ones, nor the system provides.
    absent = set().union(*map(needed, libraries)) - present
    absent = {name for name in absent if name.startswith(("libcu", "libnv", "libnccl")) and name != "libcuda.so.1"}
    wanted = {soname: collections.defaultdict(set) for soname in sorted(absent)}
    unversioned, defined = set(), set()
    for library in libraries:
        owner = versions(library)
        undefined, own = symbols(library)
        defined |= {name.split("@")[0] for name in own}
        for symbol in undefined:
            name, _, version = symbol.partition("@")
            if not version:
                unversioned.add(name)
            elif owner.get(version) in absent:
                wanted[owner[version]][version].add(name)
    # Unversioned symbols do not name their library, so any stub may define them.
    rest = {name for name in unversioned - defined if re.match(r"(cu|nccl|nv)", name)}
    unversioned_home = next(soname for soname in wanted if not wanted[soname])
    wanted[unversioned_home][""] |= rest
    for soname, names in wanted.items():
        build(soname, names)
    BUILT.write_text("\n".join(wanted))
    run(sys.executable, "-c", "import torch.distributed as dist; assert dist.is_gloo_available()")


if __name__ == "__main__":
    main()
