-- What is kept beside an item: its last attempts, and its result. Prune deletes both with the item.
create table {s}.durable_attempt (
	queue     text        collate "C" not null,
	item      bigint      not null,
	token     bigint      not null, -- of the claim
	kind      smallint    not null, -- durable.EndKind
	node_name text        not null,
	started   timestamptz not null,
	ended     timestamptz not null,
	err       text        not null,
	primary key (queue, item, token)
);
create table {s}.durable_result (
	queue text   collate "C" not null,
	item  bigint not null,
	data  bytea  not null,
	primary key (queue, item)
);
