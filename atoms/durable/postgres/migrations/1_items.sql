create sequence {s}.durable_item_id cache 1;
create sequence {s}.durable_node_id cache 1;
create sequence {s}.durable_token cache 1;

-- States: 1 blocked, 2 ready, 4 running, 8 retry, 16 halted, 32 done, 64 dead, 128 cancelled.
create table {s}.durable_item (
	id        bigint      primary key,
	queue     text        collate "C" not null,
	key       text        collate "C" not null, -- '': no order
	lane      text        collate "C" not null,
	rank      int         not null,
	state     smallint    not null,
	attempts  int         not null default 0,
	token     bigint      not null default 0, -- of the current or last claim
	unique_id text        not null,
	enqueued  timestamptz not null,
	run_at    timestamptz not null,
	started   timestamptz,
	ended     timestamptz,
	node      bigint,                         -- while running
	node_name text        not null default '',
	cancel    text        not null default '',
	err       text        not null default '',
	data      bytea       not null
);

-- At most one item of a key is its head.
create unique index durable_item_head on {s}.durable_item (key, queue) where key <> '' and state in (2, 4, 8, 16);
create index durable_item_blocked on {s}.durable_item (key, queue, rank, id) where state = 1;
create index durable_item_due on {s}.durable_item (queue, lane, run_at, id) where state in (2, 8);
create index durable_item_running on {s}.durable_item (queue, lane, node) where state = 4;
create index durable_item_ended on {s}.durable_item (queue, state, id) where state >= 16;

create table {s}.durable_unique (
	queue     text        collate "C" not null,
	unique_id text        collate "C" not null,
	item      bigint      not null,
	until     timestamptz not null,
	primary key (queue, unique_id)
);
create index durable_unique_until on {s}.durable_unique (queue, until);

create table {s}.durable_node (
	id      bigint      primary key,
	queue   text        not null,
	name    text        not null,
	lease   interval    not null,
	expires timestamptz not null,
	note    text        not null default '',
	slots   int         not null,
	cluster int         not null,
	lanes   jsonb       not null
);

create table {s}.durable_queue (
	queue  text    primary key,
	paused boolean not null
);

create table {s}.durable_tick (
	schedule text        primary key,
	tick     timestamptz not null
);
