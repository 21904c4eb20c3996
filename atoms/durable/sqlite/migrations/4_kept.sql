-- What is kept beside an item: its last attempts, and its result. Prune deletes both with the item.
create table durable_attempt (
	item      integer not null,
	token     integer not null, -- of the claim
	kind      integer not null, -- durable.EndKind
	node_name text    not null,
	started   integer not null,
	ended     integer not null,
	err       text    not null,
	primary key (item, token)
) strict, without rowid;
create table durable_result (
	item integer primary key,
	data blob not null
) strict;
