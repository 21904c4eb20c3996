-- Outside of a transaction: nothing reads this index any more, and every end of an item writes it.
drop index concurrently if exists {s}.durable_item_ended;
