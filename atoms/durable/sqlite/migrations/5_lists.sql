-- For lists.
create index durable_item_past on durable_item (queue, key, state, ended) where key <> '' and state >= 32;
create index durable_item_lane on durable_item (queue, lane, state, ended) where lane <> '' and state >= 16;
create index durable_item_waits on durable_item (queue, lane, id) where state = 1;
create index durable_item_retry on durable_item (queue, lane, run_at, id) where state = 8;
