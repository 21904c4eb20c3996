-- Outside of a transaction: durable_item_again is in its place.
drop index concurrently if exists {s}.durable_item_retry;
