-- Outside of a transaction: lists of blocked items by lane.
create index concurrently durable_item_waits on {s}.durable_item (queue, lane, id) where state = 1;
