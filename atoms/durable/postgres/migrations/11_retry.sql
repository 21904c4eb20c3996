-- Outside of a transaction: lists of items that are tried again.
create index concurrently durable_item_retry on {s}.durable_item (queue, lane, run_at, id) where state = 8;
