"""Extracts a module and its submodules from the generated Verilog, and inserts properties."""

import re
from pathlib import Path

PROPERTIES = Path(__file__).parent / "properties"


class NetlistError(Exception):
    """The Verilog does not have the structure that the proofs expect."""


class Netlist:
    """The modules of a generated file, indexed by their paths below the top module, such as `datapath/sums`."""

    def __init__(self, path):
        text = Path(path).read_text()
        found = re.findall(r"^module ([\w$]+)\(.*?^endmodule // \1$", text, re.S | re.M)
        bodies = re.finditer(r"^module ([\w$]+)\(.*?^endmodule // \1$", text, re.S | re.M)
        if not found:
            raise NetlistError(f"{path}: no module found")
        self.top = found[0]
        self.modules = {match.group(1): match.group(0) for match in bodies}

    def name(self, path):
        """Returns the name of the module at a path."""
        name = "$".join([self.top, *path.split("/")]) if path else self.top
        if name not in self.modules:
            raise NetlistError(f"no module {name}")
        return name

    def below(self, path):
        """Returns the module at a path and its submodules, by name."""
        name = self.name(path)
        return {key: text for key, text in self.modules.items() if key == name or key.startswith(name + "$")}

    def cut(self, path, cuts):
        """Returns the module at a path and its submodules. The modules at `cuts` are replaced by stubs."""
        modules = self.below(path)
        for name in map(self.name, cuts):
            for inner in [key for key in modules if key.startswith(name + "$")]:
                del modules[inner]
            modules[name] = stub(modules[name])
        return modules

    def limit_margin(self, path):
        """Returns the number of slots that are still free when a queue reports that it has no room."""
        text = self.modules[self.name(path)]
        limit = re.search(r"localparam  limit = 8'h([0-9a-f]+);", text)
        if limit is None:
            raise NetlistError(f"{path} is not a queue")
        return (1 << width(text, "write_at$q")) - int(limit.group(1), 16)


def width(text, name):
    """Returns the width of a signal of a module, in bits."""
    match = re.search(rf"^    (?:input|output)? ?(?:wire|reg)  (?:\[(\d+):0\] )?{re.escape(name)};$", text, re.M)
    if match is None:
        raise NetlistError(f"no signal {name}")
    return int(match.group(1) or 0) + 1


def array(text, name):
    """Returns the names of the registers of an array in a module, the last one first."""
    found = {int(i) for i in re.findall(rf"^    wire  (?:\[\d+:0\] )?{re.escape(name)}\$(\d+)\$q;$", text, re.M)}
    if found != set(range(len(found))) or not found:
        raise NetlistError(f"no array {name}")
    return [f"{name}${i}$q" for i in reversed(range(len(found)))]


def stub(text):
    """Returns a module with the same ports, whose outputs may have any value at any time."""
    head = text[:text.index(");\n") + 3]
    ports = re.findall(r"^    (input wire|output reg)  (\[\d+:0\] )?([\w$]+);$", text, re.M)
    lines = [f"    {kind}  {bits}{name};" for kind, bits, name in ports]
    for kind, bits, name in ports:
        if kind == "output reg":
            lines += [f"    (* anyseq *) reg {bits}f_any_{name};", f"    always @(*) {name} = f_any_{name};"]
    return head + "\n".join(lines) + "\n" + text[text.rindex("endmodule"):]


def properties(file, text, tokens):
    """Returns a file of properties for a module, in which `@WIDTH(signal)@`, `@VECTOR(array)@`, `@COUNT(array)@` and
    the given tokens are replaced by their values."""
    source = (PROPERTIES / file).read_text()
    source = re.sub(r"@WIDTH\(([\w$]+)\)@", lambda match: str(width(text, match.group(1))), source)
    source = re.sub(r"@COUNT\((\w+)\)@", lambda match: str(len(array(text, match.group(1)))), source)
    vector = lambda match: "{" + ", ".join(array(text, match.group(1))) + "}"
    source = re.sub(r"@VECTOR\((\w+)\)@", vector, source)
    for token, value in tokens.items():
        source = source.replace(f"@{token}@", str(value))
    left = re.search(r"@\w+", source)
    if left:
        raise NetlistError(f"{file}: {left.group(0)} has no value")
    return source


def mutate(text, old, new):
    """Returns a module with a fault. The pattern must occur exactly once."""
    mutated, count = re.subn(old, new, text)
    if count != 1:
        raise NetlistError(f"the fault {old!r} occurs {count} times, expected 1")
    return mutated
