-- Items whose process lost its lease, until their next ordinary end. This is no column of items: a
-- transaction that is open for long would keep the table from being altered, and meanwhile all others from it.
create table {s}.durable_loss (
	queue  text   not null,
	item   bigint not null,
	losses int    not null,
	token  bigint not null, -- of the last claim that was lost
	primary key (queue, item)
);
