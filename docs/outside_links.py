"""mdBook preprocessor: links to files outside the book become links to the repository.

In the repository, the pages link to sources, examples and the specification with relative paths. The book holds only the
pages of this directory, so there these links lead to `git-repository-url` of book.toml.
"""

import json
import os.path
import re
import sys

BRANCH = "main"
LINK = re.compile(r"\]\((?!#|[a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")


def rewritten(text: str, page: str, repository: str) -> str:
    """Returns the text of a page, with links out of the book replaced. `page` is its path in the book."""

    def replacement(link: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join("docs", os.path.dirname(page), link[1]))
        is_inside = path.startswith("docs" + os.sep)
        return link[0] if is_inside else f"]({repository}/blob/{BRANCH}/{path}{link[2] or ''})"

    return LINK.sub(replacement, text)


def rewrite(items: list, repository: str) -> None:
    """Rewrites chapters and those below them, in place."""
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter["source_path"]:
            chapter["content"] = rewritten(chapter["content"], chapter["source_path"], repository)
            rewrite(chapter["sub_items"], repository)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    rewrite(book["items"], context["config"]["output"]["html"]["git-repository-url"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
