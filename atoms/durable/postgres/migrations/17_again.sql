-- Outside of a transaction: lists of items that are tried again. Statements about them cannot choose durable_item_due, which has ready ones, too.
create index concurrently durable_item_again on {s}.durable_item (queue, lane, run_at, id) where state + 0 = 8;
