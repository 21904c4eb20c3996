-- Outside of a transaction: lists of blocked items by lane. Statements that do not say "id > 0" cannot choose it, whatever the
-- statistics say: the next item of a key is found in durable_item_blocked only.
create index concurrently durable_item_places on {s}.durable_item (queue, lane, id) where state = 1 and id > 0;
