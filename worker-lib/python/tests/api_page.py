"""Writes docs/python-api.md from the signatures and docstrings of the package. Needs griffe (pip install griffe).

    python tests/api_page.py
"""

import re
from collections.abc import Iterator
from pathlib import Path

import griffe

PACKAGE = Path(__file__).resolve().parents[1] / "python"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "python-api.md"
MODULES = (
    "iswitch",
    "iswitch.torch",
    "iswitch.torchft",
    "iswitch.switch",
    "iswitch.policy",
    "iswitch.train",
    "iswitch.studies",
)
# A longer signature has a line for each parameter.
LINE_CHARACTERS = 110
HEADER = """\
# Python API

This page describes every public name of the package, with its signature and docstring. [Python and PyTorch](python.md) explains how the
parts work together. `worker-lib/python/tests/api_page.py` writes this page.
"""
SECTIONS = {
    griffe.DocstringSectionKind.attributes: "Attributes",
    griffe.DocstringSectionKind.parameters: "Arguments",
    griffe.DocstringSectionKind.returns: "Returns",
    griffe.DocstringSectionKind.raises: "Raises",
}


def prose(text: str) -> Iterator[str]:
    """Yields the paragraphs of a text, with examples as code blocks."""
    for paragraph in text.split("\n\n"):
        # Griffe separates examples from the text before them; the prompt has four characters.
        if paragraph.startswith(">>> "):
            paragraph = "\n".join(["```python", *(line[4:] for line in paragraph.splitlines()), "```"])
        yield paragraph


def docstring(member: griffe.Object) -> Iterator[str]:
    """Yields the blocks of Markdown that a docstring becomes."""
    if member.docstring is None:
        raise ValueError(f"{member.path} has no docstring, expected one")
    # The parameters of a class, which its docstring describes, are those of its constructor; griffe warns about that.
    for part in member.docstring.parse("google", warnings=False, returns_multiple_items=False):
        if part.kind == griffe.DocstringSectionKind.text:
            yield from prose(part.value)
        elif part.kind == griffe.DocstringSectionKind.examples:
            for _, text in part.value:
                yield from prose(text)
        else:
            yield f"{SECTIONS[part.kind]}:"
            yield "\n".join(f"- {item(entry)}" for entry in part.value)


def item(entry: griffe.DocstringNamedElement | griffe.DocstringReturn | griffe.DocstringRaise) -> str:
    text = " ".join(entry.description.split())
    if isinstance(entry, griffe.DocstringReturn):
        return text
    names = entry.name if isinstance(entry, griffe.DocstringNamedElement) else str(entry.annotation)
    return ", ".join(f"`{name}`" for name in names.strip("()").split(", ")) + f": {text}"


def parameters(function: griffe.Function) -> Iterator[str]:
    has_star = False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(parameter.kind, "")
        if parameter.kind == griffe.ParameterKind.keyword_only and not has_star:
            yield "*"
        has_star |= stars == "*" or parameter.kind == griffe.ParameterKind.keyword_only
        default = f" = {parameter.default}" if parameter.default is not None and not stars else ""
        yield f"{stars}{parameter.name}: {parameter.annotation}{default}"


def signature(function: griffe.Function, name: str) -> str:
    is_class = function.name in ("__init__", "__new__")
    result = "" if is_class else f" -> {function.returns}"
    all_of_them = list(parameters(function))
    line = f"{name}({', '.join(all_of_them)}){result}"
    if len(line) > LINE_CHARACTERS:
        line = "\n".join([f"{name}(", *(f"    {one}," for one in all_of_them), f"){result}"])
    return line


def declaration(member: griffe.Object) -> str:
    if isinstance(member, griffe.Function):
        return signature(member, member.name)
    if isinstance(member, griffe.Attribute):
        value = f" = {member.value}" if member.value is not None else ""
        return f"{member.name}: {member.annotation}{value}" if member.annotation else f"{member.name}{value}"
    constructor = member.members.get("__new__") or member.members.get("__init__")
    if constructor is not None:
        return signature(constructor, member.name)
    return f"class {member.name}({', '.join(map(str, member.bases))})"


def entry(member: griffe.Object, heading: str) -> Iterator[str]:
    yield f"{heading} `{member.name}`"
    yield f"```text\n{declaration(member)}\n```"
    yield from docstring(member)
    # A method without a docstring overrides one that another library documents.
    for one in member.members.values() if isinstance(member, griffe.Class) else ():
        if one.docstring is not None and not one.name.startswith("_"):
            yield from entry(one, heading + "#")


def page() -> str:
    """Returns the text of the page."""
    loader = griffe.GriffeLoader(search_paths=[PACKAGE])
    package = loader.load("iswitch")
    loader.resolve_aliases()
    blocks = [HEADER]
    for name in MODULES:
        module = package if name == "iswitch" else package[name.removeprefix("iswitch.")]
        blocks += [f"## {name}", *docstring(module)]
        # Errors come last.
        for exported in sorted(map(str, module.exports or ()), key=lambda exported: exported.endswith("Error")):
            member = module[exported]
            blocks += entry(member.final_target if member.is_alias else member, "###")
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(blocks)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
