"""The extraction as Ibis expressions, for any engine: comments in, pairs out.

Three stages, each a table that an engine keeps: `classified` (one row a comment, the first rule
that it breaks), `unique` (one row an id) and `pairs`. Only the first looks at whole texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.corpus.rules import Rule
from rejoinder.errors import MissingExtraError

try:
    import ibis
    import ibis.expr.types as ir
except ImportError:
    raise MissingExtraError("ibis-framework", "extract") from None

_COMMENT = "t1_"
_POST = "t3_"


@dataclass(frozen=True)
class Filters:
    """Which comments are looked at; the others count as filtered."""

    subreddits: tuple[str, ...] = ()
    """Sources, case folded; none: all."""
    since: int | None = None
    """Seconds since 1970, the first that is in."""
    until: int | None = None
    """Seconds since 1970, the first that is out."""


def classified(comments: ir.Table, rules: Sequence[Rule], filters: Filters) -> ir.Table:
    """Each comment with the first rule that it breaks (null: it is kept) and its clean text.

    Columns: id, parent (a comment's id without prefix; null for a post, none, or the comment
    itself), thread, source, rule, text.
    """
    broken = [(rule.broken_by(comments), rule.name) for rule in rules]
    if (outside := _outside(comments, filters)) is not None:
        broken = [(outside, "filtered"), *broken]
    parent = comments.parent
    return comments.select(
        "id",
        parent=ibis.cases(
            (parent.startswith(_COMMENT), parent.substr(3)),
            (parent.startswith(_POST) | (parent == ""), ibis.null("string")),
            else_=parent,
        ).nullif(comments.id),
        thread=ibis.ifelse(
            comments.thread.startswith(_POST), comments.thread.substr(3), comments.thread
        ).nullif(""),
        source=comments.source,
        rule=ibis.cases(*broken, else_=ibis.null("string")),
        text=comments.clean.coalesce(comments.text),
    )


def _outside(comments: ir.Table, filters: Filters) -> ir.BooleanValue | None:
    tests = []
    if filters.subreddits:
        tests.append(~comments.source.lower().isin(list(filters.subreddits)))
    if filters.since is not None or filters.until is not None:
        created = comments.created.try_cast("float64")
        tests.append(created.isnull())
        if filters.since is not None:
            tests.append(created < filters.since)
        if filters.until is not None:
            tests.append(created >= filters.until)
    if not tests:
        return None
    outside = tests[0]
    for test in tests[1:]:
        outside |= test
    return outside


def repeated_ids(table: ir.Table) -> ir.Table:
    """The ids of several rows: columns id, rows, different."""
    several = table.group_by("id").aggregate(rows=table.count()).filter(lambda t: t.rows > 1)
    rows = table.semi_join(several, "id")
    different = rows.distinct().group_by("id").aggregate(different=lambda t: t.count())
    return several.join(different, "id").select("id", "rows", "different")


def unique(table: ir.Table, repeated: ir.Table) -> ir.Table:
    """One row an id: of several, the one with the smallest text."""
    once = table.anti_join(repeated, "id")
    several = table.semi_join(repeated, "id")
    order = [several[name] for name in ("text", "parent", "thread", "source", "rule")]
    place = ibis.row_number().over(group_by=several.id, order_by=order)
    best = several.mutate(place=place).filter(lambda t: t.place == 0).drop("place")
    return once.union(best)


def first_roots(table: ir.Table) -> ir.Table:
    """For each comment what its parent's id says; itself where it has none, or its own thread."""
    return table.select(
        "id", root=ibis.ifelse(table.thread.isnull(), table.parent.coalesce(table.id), table.id)
    )


def next_roots(roots: ir.Table) -> ir.Table:
    """Twice as far up the chain of replies: the root of each root, where that is known."""
    above = roots.view()
    joined = roots.left_join(above, roots.root == above.id)
    return joined.select(
        roots.id, root=above.root.coalesce(roots.root), moved=above.root != roots.root
    )


def with_threads(table: ir.Table, roots: ir.Table) -> ir.Table:
    """Comments whose thread is not given, put into that of the root of their chain."""
    named = table.filter(table.thread.notnull()).select(above="id", given="thread")
    found = roots.left_join(named, roots.root == named.above)
    roots = found.select(found.id, root=found.given.coalesce(found.root))
    joined = table.left_join(roots, table.id == roots.id)
    return joined.select(
        table.id,
        table.parent,
        table.source,
        table.rule,
        table.text,
        thread=table.thread.coalesce(roots.root),
    )


def replies(table: ir.Table) -> ir.Table:
    """Kept comments that answer a comment."""
    return table.filter(table.rule.isnull() & table.parent.notnull())


def pairs(table: ir.Table) -> ir.Table:
    """Kept comments joined with their kept parents."""
    below = replies(table)
    above = table.filter(table.rule.isnull()).view()
    joined = below.inner_join(above, below.parent == above.id)
    return joined.select(
        thread_id=below.thread,
        input_id=above.id,
        response_id=below.id,
        input=above.text,
        response=below.text,
        source=below.source,
    )


def splits(table: ir.Table, shares: tuple[float, float, float]) -> ir.Table:
    """The split of each thread, as its place in train, dev, test: by the MD5 of its id.

    The first 32 bits, in hexadecimal, are compared with the shares: any engine, on any machine,
    puts a thread into the same split.
    """
    threads = replies(table).select(thread_id="thread").distinct()
    head = threads.thread_id.hexdigest("md5").substr(0, 8)
    train, dev = split_borders(shares)
    return threads.select(
        "thread_id", part=ibis.cases((head < train, 0), (head < dev, 1), else_=2).cast("int8")
    )


def split_borders(shares: tuple[float, float, float]) -> tuple[str, str]:
    """The first hashes, in hexadecimal, that are not train, and not dev.

    >>> split_borders((95.0, 2.5, 2.5))
    ('f3333333', 'f9999999')
    """
    total = sum(shares)
    borders = [shares[0] / total, (shares[0] + shares[1]) / total]
    return tuple(  # type: ignore[return-value]
        f"{int(border * 2**32):08x}" if border < 1 else "g" for border in borders
    )


def capped(table: ir.Table, most: int) -> ir.Table:
    """At most so many pairs of one response, case folded: the first by thread and reply."""
    key = table.response.lower()
    order = [table.thread_id, table.response_id]
    place = ibis.row_number().over(group_by=key, order_by=order)
    return table.mutate(place=place).filter(lambda t: t.place < most).drop("place")


def output(table: ir.Table, parts: ir.Table) -> ir.Table:
    """Pairs with their split, in the order in which they are written."""
    joined = table.join(parts, "thread_id")
    return joined.order_by("part", "thread_id", "response_id")


def lost_parents(table: ir.Table) -> ir.Table:
    """How many kept replies have a parent that is not there, and one that was dropped."""
    below = replies(table)
    above = table.select(above_id="id", above_rule="rule")
    joined = below.left_join(above, below.parent == above.above_id)
    return joined.aggregate(
        not_found=joined.above_id.isnull().sum(), dropped=joined.above_rule.notnull().sum()
    )


def without_parents(table: ir.Table) -> ir.Table:
    """Kept replies whose parent is not there: columns id, parent."""
    return replies(table).anti_join(table.view(), [("parent", "id")]).select("id", "parent")


def near_misses(table: ir.Table) -> ir.Table:
    """Kept replies whose parent is not there, and an id that ends as that one does, but for case.

    Columns: id, parent, like.
    """
    lost = without_parents(table).mutate(end=lambda t: _end(t.parent))
    ends = table.filter(_end(table.id) != "").select(like="id", end=_end(table.id))
    joined = lost.inner_join(ends, "end")
    return joined.select("id", "parent", "like").order_by("id", "like")


def _end(ids: ir.StringValue) -> ir.StringValue:
    """The letters and digits with which ids end: what is left without a prefix."""
    return ids.strip().lower().re_extract("[a-z0-9]+$", 0)
