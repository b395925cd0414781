"""Installs PyTorch into the environment of this Python, for tests on the CPU, without gigabytes of CUDA.

On PyPI PyTorch for Linux is a build for CUDA, whose libraries want a dozen of NVIDIA's to be there when they are loaded,
3 GB to download. Nothing of them is called without a GPU. So only the two are installed that run as they are loaded
(the runtime and CUPTI, 14 MB); in place of the others there are libraries with the same symbols, that abort. Needs `cc`
and `readelf`. For tests only: who trains installs PyTorch as its site says.
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
PURE = ["filelock", "sympy", "networkx", "jinja2", "fsspec", "typing-extensions", "numpy"]

SITE = Path(sysconfig.get_path("purelib"))
STUBS = SITE / "nvidia" / "cu13" / "lib"
# Names of the stubs that an earlier run built: they are built again, as another PyTorch may need other symbols.
BUILT = STUBS / "stubs.txt"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def install(*packages):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *packages], check=True)


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library)))


def symbols(library):
    """Names of the library's dynamic symbols as (undefined, defined); undefined ones as `name` or `name@version`."""
    undefined, defined = set(), set()
    for line in run("readelf", "--dyn-syms", "-W", library).splitlines():
        # Num: Value Size Type Bind Vis Ndx Name [(version)]
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":") or fields[3] == "NOTYPE" and fields[4] == "WEAK":
            continue
        (undefined if fields[6] == "UND" else defined).add(fields[7])
    return undefined, defined


def versions(library):
    """Which library each needed version is of."""
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
    """Makes a library with these symbols; `wanted` maps a version, or the empty string, to names."""
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
    install(*PURE)
    install("--no-deps", TORCH, *REAL)
    libraries = sorted(map(str, (SITE / "torch" / "lib").glob("*.so")))
    built = set(BUILT.read_text().split()) if BUILT.exists() else set()
    present = {Path(library).name for library in libraries} | {path.name for path in STUBS.iterdir()} - built
    # What neither PyTorch, nor the two, nor the system has.
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
    # Whose they are nobody says; who defines them does not matter.
    rest = {name for name in unversioned - defined if re.match(r"(cu|nccl|nv)", name)}
    unversioned_home = next(soname for soname in wanted if not wanted[soname])
    wanted[unversioned_home][""] |= rest
    for soname, names in wanted.items():
        build(soname, names)
    BUILT.write_text("\n".join(wanted))
    run(sys.executable, "-c", "import torch.distributed as dist; assert dist.is_gloo_available()")


if __name__ == "__main__":
    main()
