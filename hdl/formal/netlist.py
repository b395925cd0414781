"""Cuts a module with all below it out of the generated Verilog, and puts properties into it."""

import re
from pathlib import Path

PROPERTIES = Path(__file__).parent / "properties"


class NetlistError(Exception):
    """The Verilog is not as the proofs expect it."""


class Netlist:
    """The modules of a generated file by their path below the top, such as `datapath/sums`."""

    def __init__(self, path):
        text = Path(path).read_text()
        found = re.findall(r"^module ([\w$]+)\(.*?^endmodule // \1$", text, re.S | re.M)
        bodies = re.finditer(r"^module ([\w$]+)\(.*?^endmodule // \1$", text, re.S | re.M)
        if not found:
            raise NetlistError(f"{path}: no module found")
        self.top = found[0]
        self.modules = {match.group(1): match.group(0) for match in bodies}

    def name(self, path):
        """The name of the module at a path."""
        name = "$".join([self.top, *path.split("/")]) if path else self.top
        if name not in self.modules:
            raise NetlistError(f"there is no module {name}")
        return name

    def below(self, path):
        """The module at a path and all below it, each under its name."""
        name = self.name(path)
        return {key: text for key, text in self.modules.items() if key == name or key.startswith(name + "$")}

    def cut(self, path, cuts):
        """The modules from that path on; of those at `cuts` nothing is left but what may come out of them."""
        modules = self.below(path)
        for name in map(self.name, cuts):
            for inner in [key for key in modules if key.startswith(name + "$")]:
                del modules[inner]
            modules[name] = stub(modules[name])
        return modules

    def limit_margin(self, path):
        """Places that a queue keeps free when it says that it has no room."""
        text = self.modules[self.name(path)]
        limit = re.search(r"localparam  limit = 8'h([0-9a-f]+);", text)
        if limit is None:
            raise NetlistError(f"{path} is no queue")
        return (1 << width(text, "write_at$q")) - int(limit.group(1), 16)


def width(text, name):
    """Bits of a signal of a module."""
    match = re.search(rf"^    (?:input|output)? ?(?:wire|reg)  (?:\[(\d+):0\] )?{re.escape(name)};$", text, re.M)
    if match is None:
        raise NetlistError(f"there is no signal {name}")
    return int(match.group(1) or 0) + 1


def array(text, name):
    """The registers of an array in a module, the last one first."""
    found = {int(i) for i in re.findall(rf"^    wire  (?:\[\d+:0\] )?{re.escape(name)}\$(\d+)\$q;$", text, re.M)}
    if found != set(range(len(found))) or not found:
        raise NetlistError(f"there is no array {name}")
    return [f"{name}${i}$q" for i in reversed(range(len(found)))]


def stub(text):
    """A module of that shape whose outputs may be anything at any time."""
    head = text[:text.index(");\n") + 3]
    ports = re.findall(r"^    (input wire|output reg)  (\[\d+:0\] )?([\w$]+);$", text, re.M)
    lines = [f"    {kind}  {bits}{name};" for kind, bits, name in ports]
    for kind, bits, name in ports:
        if kind == "output reg":
            lines += [f"    (* anyseq *) reg {bits}f_any_{name};", f"    always @(*) {name} = f_any_{name};"]
    return head + "\n".join(lines) + "\n" + text[text.rindex("endmodule"):]


def properties(file, text, tokens):
    """A file of properties for that module: `@WIDTH(signal)@`, `@VECTOR(array)@`, `@COUNT(array)@` and tokens are
    filled in."""
    source = (PROPERTIES / file).read_text()
    source = re.sub(r"@WIDTH\(([\w$]+)\)@", lambda match: str(width(text, match.group(1))), source)
    source = re.sub(r"@COUNT\((\w+)\)@", lambda match: str(len(array(text, match.group(1)))), source)
    vector = lambda match: "{" + ", ".join(array(text, match.group(1))) + "}"
    source = re.sub(r"@VECTOR\((\w+)\)@", vector, source)
    for token, value in tokens.items():
        source = source.replace(f"@{token}@", str(value))
    left = re.search(r"@\w+", source)
    if left:
        raise NetlistError(f"{file}: {left.group(0)} is not filled in")
    return source


def mutate(text, old, new):
    """A module with a fault: the pattern must be found once."""
    mutated, count = re.subn(old, new, text)
    if count != 1:
        raise NetlistError(f"the fault {old!r} fits {count} places, expected 1")
    return mutated
