"""Markdown tables, and where they stand in a page."""


def table(head, lines):
    """A Markdown table of cells that are texts."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))


def write_between(path, mark, text, end="<!-- end -->"):
    """Replace what stands between a mark and the end after it.

    Raises:
        ValueError: if the page has no such mark.
    """
    page = path.read_text(encoding="utf-8")
    before, found, after = page.partition(f"{mark}\n")
    if not found or end not in after:
        raise ValueError(f"{path} has no place for the table: a line {mark}, and below it a line {end}.")
    path.write_text(f"{before}{mark}\n{text}\n{end}{after.partition(end)[2]}", encoding="utf-8")
