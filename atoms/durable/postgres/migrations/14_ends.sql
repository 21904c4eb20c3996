-- Outside of a transaction: lists of ended items, and Prune. Statements about a key, or a lane, do not say "id > 0", so they cannot choose it.
create index concurrently durable_item_ends on {s}.durable_item (queue, state, ended) where state >= 16 and id > 0;
