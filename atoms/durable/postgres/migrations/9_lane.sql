-- Outside of a transaction: lists of ended items by lane, of queues that have lanes.
create index concurrently durable_item_lane on {s}.durable_item (queue, lane, state, ended) where lane <> '' and state >= 16;
