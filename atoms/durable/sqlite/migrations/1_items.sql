-- Times are microseconds since 1970 by the clock of the host; 0 is none.
-- States: 1 blocked, 2 ready, 4 running, 8 retry, 16 halted, 32 done, 64 dead, 128 cancelled.
create table durable_item (
	id        integer primary key autoincrement,
	queue     text    not null,
	key       text    not null, -- '': no order
	lane      text    not null,
	rank      integer not null,
	state     integer not null,
	attempts  integer not null default 0,
	token     integer not null default 0, -- of the current or last claim
	unique_id text    not null,
	enqueued  integer not null,
	run_at    integer not null,
	started   integer not null default 0,
	ended     integer not null default 0,
	node      integer not null default 0, -- while running
	node_name text    not null default '',
	cancel    text    not null default '',
	err       text    not null default '',
	data      blob    not null
) strict;

-- At most one item of a key is its head.
create unique index durable_item_head on durable_item (queue, key) where key <> '' and state in (2, 4, 8, 16);
create index durable_item_blocked on durable_item (queue, key, rank, id, enqueued) where state = 1;
create index durable_item_due on durable_item (queue, lane, run_at, id, state, enqueued) where state in (2, 8);
create index durable_item_running on durable_item (queue, lane, node) where state = 4;
create index durable_item_ended on durable_item (queue, state, ended) where state >= 16;

create table durable_unique (
	queue     text    not null,
	unique_id text    not null,
	item      integer not null,
	until     integer not null,
	primary key (queue, unique_id)
) strict, without rowid;
create index durable_unique_until on durable_unique (queue, until);

create table durable_node (
	id      integer primary key autoincrement,
	queue   text    not null,
	name    text    not null,
	expires integer not null,
	note    text    not null default '',
	node    text    not null -- JSON
) strict;
create index durable_node_expires on durable_node (queue, expires);

-- Changes rises whenever items of the queue may have become free: processes look at it.
create table durable_queue (
	queue   text    not null primary key,
	paused  integer not null default 0,
	changes integer not null default 0
) strict, without rowid;

create table durable_token (last integer not null) strict;
insert into durable_token values (0);

create table durable_tick (
	schedule text    not null primary key,
	tick     integer not null
) strict, without rowid;
