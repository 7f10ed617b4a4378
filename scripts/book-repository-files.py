"""mdBook preprocessor: a link to a file outside of docs/ becomes its path in the repository, one to a README.md leads to its page.

Such links work in a checkout and on a code host, but the book has no page for them. If BOOK_REPOSITORY_URL is set (such as
https://example.org/owner/repository/blob/main), they lead there instead.
"""

import json
import os
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^()\s#:]+)(#[^()\s]*)?\)")


def replaced(match, folder, base):
    text, target, anchor = match[1], match[2], match[3] or ""
    path = posixpath.normpath(posixpath.join("docs", folder, target))
    if path.startswith("docs/"):
        # The page of a README.md is index.html.
        target = re.sub(r"(^|/)README\.md$", r"\1index.md", target)
        return f"[{text}]({target}{anchor})"
    if base:
        return f"[{text}]({base.rstrip('/')}/{path}{anchor})"
    return text if f"`{path}`" == text else f"{text} (`{path}`)"


def rewrite(items, base):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter is None:
            continue
        folder = posixpath.dirname(chapter.get("source_path") or "")
        chapter["content"] = LINK.sub(lambda match: replaced(match, folder, base), chapter["content"])
        rewrite(chapter["sub_items"], base)


if len(sys.argv) > 1 and sys.argv[1] == "supports":
    sys.exit(0)
_, book = json.load(sys.stdin)
rewrite(book.get("items") or book.get("sections") or [], os.environ.get("BOOK_REPOSITORY_URL", ""))
json.dump(book, sys.stdout)
