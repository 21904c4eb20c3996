-- Outside of a transaction: lists of ended items by key.
create index concurrently durable_item_past on {s}.durable_item (key, queue, state, ended) where key <> '' and state >= 32;
