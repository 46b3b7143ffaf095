"""Extraction by parts: comments are parted by a hash of their thread while they are read.

A message and its reply share a thread, so each part is joined and sorted by itself, on 64-bit
hashes of ids. `rows` has the types, `reading` makes blocks of comments, `store` keeps them in
memory or on disk (`batches`), `carried` has those of earlier extractions, `join` pairs the comments
of a part, `doubles` settles repeated ids, `merge` puts the pairs into the order of the output, and
`run` has the steps in order.
"""
