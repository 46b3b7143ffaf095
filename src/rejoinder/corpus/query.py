"""The extraction query as Ibis expressions, for any engine: comments in, pairs out.

An engine keeps a table after each of three stages: `classified` (a row per comment with the first
rule that it breaks), `unique` (a row per id) and `pairs`. Only the first stage reads full texts.
"""

import ibis
import ibis.expr.types as ir

from rejoinder.corpus.options import COMMENTS, ExtractOptions, profile

ORDER = ("part", "thread_id", "response_id")
"""The columns that order the output. Strings are compared as bytes of UTF-8."""

_COMMENT = "t1_"
_POST = "t3_"


def comments_table(name: str) -> ir.Table:
    """Returns the table of comments that readers deliver, `COMMENTS`, by its name in an engine."""
    return ibis.table(ibis.schema(COMMENTS), name=name)


def classified(comments: ir.Table, options: ExtractOptions, *, numbered: bool = False) -> ir.Table:
    """Returns each comment with its clean text and the first rule that it breaks.

    Columns: id, parent (a comment's id without prefix; null if the parent is a post, missing, or
    the comment itself), thread, source, rule (null for a kept comment; if `numbered`, its position
    in `options.rule_names`, from 1, and 0 for a kept comment), text.
    """
    broken = [(rule.broken_by(comments), rule.name) for rule in profile(options.rules)]
    if (outside := _outside(comments, options)) is not None:
        broken = [(outside, "filtered"), *broken]
    if numbered:
        numbers = [(test, number) for number, (test, _) in enumerate(broken, 1)]
        rule = ibis.cases(*numbers, else_=0).cast("uint8")
    else:
        rule = ibis.cases(*broken, else_=ibis.null("string"))
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
        rule=rule,
        text=comments.clean.coalesce(comments.text),
    )


def _outside(comments: ir.Table, options: ExtractOptions) -> ir.BooleanValue | None:
    tests = []
    if options.subreddits:
        tests.append(~comments.source.lower().isin(list(options.subreddits)))
    if options.since is not None or options.until is not None:
        created = comments.created.try_cast("float64")
        tests.append(created.isnull() | created.isnan())
        if options.since is not None:
            tests.append(created < options.since)
        if options.until is not None:
            tests.append(created >= options.until)
    return ibis.or_(*tests) if tests else None


def repeated_ids(table: ir.Table) -> ir.Table:
    """Returns ids with several rows: columns id, rows, different (number of distinct rows)."""
    several = table.group_by("id").aggregate(rows=table.count()).filter(lambda t: t.rows > 1)
    rows = table.semi_join(several, "id")
    different = rows.distinct().group_by("id").aggregate(different=lambda t: t.count())
    return several.join(different, "id").select("id", "rows", "different")


def repeated_counts(repeated: ir.Table) -> ir.Table:
    """Counts the rows that `unique` removes: duplicates and conflicts, null for none."""
    different = repeated.different.sum()
    return repeated.aggregate(
        duplicates=repeated.rows.sum() - different, conflicts=different - repeated.count()
    )


def unique(table: ir.Table, repeated: ir.Table) -> ir.Table:
    """Returns one row per id; if there are several, the row with the smallest text."""
    once = table.anti_join(repeated, "id")
    several = table.semi_join(repeated, "id")
    order = [several[name] for name in ("text", "parent", "thread", "source", "rule")]
    index = ibis.row_number().over(group_by=several.id, order_by=order)
    best = several.mutate(index=index).filter(lambda t: t.index == 0).drop("index")
    return once.union(best)


def first_roots(table: ir.Table) -> ir.Table:
    """Returns each comment's parent, or the comment itself if it has no parent or has a thread."""
    return table.select(
        "id", root=ibis.ifelse(table.thread.isnull(), table.parent.coalesce(table.id), table.id)
    )


def next_roots(roots: ir.Table) -> ir.Table:
    """Goes twice as far up the chain of replies: returns the root of each root, if known."""
    above = roots.view()
    joined = roots.left_join(above, roots.root == above.id)
    return joined.select(
        roots.id, root=above.root.coalesce(roots.root), moved=above.root != roots.root
    )


def with_threads(table: ir.Table, roots: ir.Table) -> ir.Table:
    """Returns the comments; if a thread is missing, uses the thread of the chain's root."""
    given = table.filter(table.thread.notnull()).select(above="id", given="thread")
    matched = roots.left_join(given, roots.root == given.above)
    roots = matched.select(matched.id, root=matched.given.coalesce(matched.root))
    joined = table.left_join(roots, table.id == roots.id)
    kept = [table[name] for name in ("id", "parent", "source", "rule", "text")]
    return joined.select(*kept, thread=table.thread.coalesce(roots.root))


def replies(table: ir.Table) -> ir.Table:
    """Returns the kept comments that answer a comment."""
    return table.filter(table.rule.isnull() & table.parent.notnull())


def pairs(table: ir.Table) -> ir.Table:
    """Returns the pairs: kept comments joined with their kept parents."""
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
    """Returns the split of each thread, by the MD5 of its id: 0 train, 1 dev, 2 test.

    The first 32 bits, in hexadecimal, are compared with the shares. So every engine on every
    machine puts a thread into the same split.
    """
    threads = replies(table).select(thread_id="thread").distinct()
    return threads.select("thread_id", part=split_of(threads.thread_id, shares))


def split_of(thread_id: ir.StringValue, shares: tuple[float, float, float]) -> ir.IntegerValue:
    """Returns the split of each thread, see `splits`."""
    head = thread_id.hexdigest("md5").substr(0, 8)
    train, dev = split_borders(shares)
    return ibis.cases((head < train, 0), (head < dev, 1), else_=2).cast("int8")


def split_borders(shares: tuple[float, float, float]) -> tuple[str, str]:
    """Returns the first hash that is not train, and the first that is test, in hexadecimal.

    >>> split_borders((95.0, 2.5, 2.5))
    ('f3333333', 'f9999999')
    """
    total = sum(shares)
    borders = [shares[0] / total, (shares[0] + shares[1]) / total]
    return tuple(  # type: ignore[return-value]
        f"{int(border * 2**32):08x}" if border < 1 else "g" for border in borders
    )


def capped(table: ir.Table, most: int) -> ir.Table:
    """Returns at most `most` pairs per response, case folded: the first by thread and reply."""
    # engines differ in lower-casing final sigma and dotted I
    key = table.response.lower().replace("ς", "σ").replace("i\u0307", "i")
    order = [table.thread_id, table.response_id]
    index = ibis.row_number().over(group_by=key, order_by=order)
    return table.mutate(index=index).filter(lambda t: t.index < most).drop("index")


def ordered(table: ir.Table, limit: int | None) -> ir.Table:
    """Returns pairs in the order of the output, only the first `limit` if given."""
    table = table.order_by(*ORDER)
    return table if limit is None else table.limit(limit)


def lost_parents(table: ir.Table) -> ir.Table:
    """Counts the kept replies whose parent is missing (`not_found`) or was dropped (`dropped`)."""
    below = replies(table)
    above = table.select(above_id="id", above_rule="rule")
    joined = below.left_join(above, below.parent == above.above_id)
    return joined.aggregate(
        not_found=joined.above_id.isnull().sum(), dropped=joined.above_rule.notnull().sum()
    )


def without_parents(table: ir.Table) -> ir.Table:
    """Returns the kept replies whose parent is missing: columns id, parent."""
    return replies(table).anti_join(table.view(), [("parent", "id")]).select("id", "parent")
