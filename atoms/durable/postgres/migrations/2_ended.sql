-- Outside of a transaction: this step builds an index beside the work of all processes.
create index concurrently durable_item_over on {s}.durable_item (queue, state, ended) where state >= 16;
