-- The tables of a file. Times are microseconds since 1970 by the clock of the host; 0 is none.

-- Items. States: 1 blocked, 2 ready, 4 running, 8 retry, 16 halted, 32 done, 64 dead, 128 cancelled.
create table durable_item (
	id        integer primary key autoincrement,
	queue     text    not null,
	key       text    not null,            -- '': no order
	lane      text    not null,            -- of an item of a class: char(1) || class || char(1) || lane, so that each class has a part of the indexes of its own
	rank      integer not null,            -- the place of the lane; 0 is the highest
	state     integer not null,
	attempts  integer not null default 0,
	losses    integer not null default 0,  -- of its process's lease, since the last ordinary end
	token     integer not null default 0,  -- of the current or last claim; below 0 after a lost lease
	unique_id text    not null,            -- '': none
	enqueued  integer not null,
	run_at    integer not null,            -- not claimed before
	started   integer not null default 0,  -- of the last claim
	ended     integer not null default 0,
	node      integer not null default 0,  -- while running
	node_name text    not null default '', -- of the last claim
	cancel    text    not null default '', -- the reason of a Cancel while running
	err       text    not null default '', -- of the last failed attempt, or why it was cancelled
	failing   integer not null default 0,  -- the end of the first failed attempt
	flow      integer not null default 0,  -- 1: it has a row in durable_flow; 2: and is undone
	data      blob    not null,
	extra     text    not null default '', -- of few items; see durable.Insert
	cost      integer not null default 0   -- of the rate of its class
) strict;

-- At most one item of a key is its head.
create unique index durable_item_head on durable_item (queue, key) where key <> '' and state in (2, 4, 8, 16);
-- The next item of a key.
create index durable_item_blocked on durable_item (queue, key, rank, id, enqueued) where state = 1;
-- What a lane claims next.
create index durable_item_due on durable_item (queue, lane, run_at, id, state, enqueued) where state in (2, 8);
-- What runs: for limits, and for the claims of a node.
create index durable_item_running on durable_item (queue, lane, node) where state = 4;
-- Items that run alone.
create index durable_item_lost on durable_item (queue, losses, run_at) where losses >= 1;
-- What has ended: for lists, Stats and Prune; by key; by lane, of queues that have lanes.
create index durable_item_ended on durable_item (queue, state, ended) where state >= 16;
create index durable_item_past on durable_item (queue, key, state, ended) where key <> '' and state >= 32;
create index durable_item_lane on durable_item (queue, lane, state, ended) where lane <> '' and state >= 16;
-- Lists of blocked items by lane, and of items that are tried again.
create index durable_item_waits on durable_item (queue, lane, id) where state = 1;
create index durable_item_retry on durable_item (queue, lane, run_at, id) where state = 8;

-- The last attempts of an item. Prune deletes them with the item, and so its result.
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

-- The result of an item that is done, if its body has returned one.
create table durable_result (
	item integer primary key,
	data blob not null
) strict;

-- Flows: see durable.Journal. Prune deletes them with the item, and so their steps.
create table durable_flow (
	item    integer primary key,
	version integer not null,
	class   text    not null,            -- of the item, as it was enqueued
	undo    integer not null default 0,
	reason  text    not null default '',
	step    text    not null default '', -- that waits; '': none
	pattern text    not null default '', -- of signals; '': it sleeps
	since   integer not null default 0,
	until   integer not null default 0
) strict;

create table durable_step (
	item        integer not null,
	name        text    not null,
	seq         integer not null,
	state       integer not null, -- durable.StepState
	compensates integer not null,
	attempt     integer not null,
	took        integer not null, -- nanoseconds
	at          integer not null,
	until       integer not null,
	signal      text    not null,
	data        blob,             -- the last column: lists do not read it
	primary key (item, name)
) strict, without rowid;

-- Signals for flows: for those of a key, or for one item.
create table durable_signal (
	seq       integer primary key autoincrement,
	queue     text    not null,
	key       text    not null,
	item      integer not null,            -- 0: for the key
	name      text    not null,
	at        integer not null,
	looked    integer not null,            -- when Prune last found that it must be kept; at first, at
	unique_id text    not null,            -- '': none
	taken     integer not null default 0,  -- by the flow of this item
	data      blob
) strict;
create index durable_signal_key on durable_signal (queue, key, seq) where item = 0;
create index durable_signal_item on durable_signal (item, seq) where item <> 0;
create unique index durable_signal_unique on durable_signal (queue, key, item, unique_id) where unique_id <> '';
create index durable_signal_looked on durable_signal (queue, looked) where item = 0;

-- The item that has a unique id, until the id is free again.
create table durable_unique (
	queue     text    not null,
	unique_id text    not null,
	item      integer not null,
	until     integer not null,
	primary key (queue, unique_id)
) strict, without rowid;
-- What Prune deletes.
create index durable_unique_until on durable_unique (queue, until);

-- Processes that run items of a queue. Who finds that a lease is over deletes the row.
create table durable_node (
	id      integer primary key autoincrement,
	queue   text    not null,
	name    text    not null,
	expires integer not null,
	note    text    not null default '', -- why it does not claim
	node    text    not null             -- durable.Node as JSON
) strict;
create index durable_node_expires on durable_node (queue, expires);

-- Queues. Changes rises whenever items may have become free: processes look at it.
create table durable_queue (
	queue     text    not null primary key,
	changes   integer not null default 0,
	pauses    integer not null default 0, -- it has rows in durable_pause
	key_every integer not null default 0, -- of the node that joined last: how long a token of a key takes to come; 0: no rate
	key_burst integer not null default 0
) strict, without rowid;

-- What is paused, or a key that was paused and of which no item is done since.
create table durable_pause (
	queue     text    not null,
	key       text    not null, -- '' and no class: the queue
	class     text    not null,
	since     integer not null,
	until     integer not null, -- 0: until it is resumed
	auto      integer not null, -- set by a program, such as a breaker
	reason    text    not null,
	node_name text    not null,
	primary key (queue, key, class)
) strict, without rowid;

-- Keys of queues with a rate of keys, whose bucket is not full.
create table durable_key (
	queue   text    not null,
	key     text    not null,
	full_at integer not null, -- when it is full again
	primary key (queue, key)
) strict, without rowid;
create index durable_key_full on durable_key (queue, full_at);

-- Classes of a queue.
create table durable_class (
	queue     text    not null,
	name      text    not null,
	lim       integer not null default 0, -- that counts now; 0: none
	rate      real    not null default 0, -- tokens a second; 0: no rate
	burst     integer not null default 0,
	mark      real    not null default 0, -- so many of those that have come were taken, or have overflowed
	used      integer not null default 0,
	cost_rate  real    not null default 0, -- the same for what items cost
	cost_burst integer not null default 0,
	cost_mark  real    not null default 0,
	cost_used  integer not null default 0,
	since     integer not null default 0, -- rate * (now - since) tokens have come
	seen      integer not null default 0, -- the time of the last change of the marks: if the clock is before it, it was set back
	is_set    integer not null default 0, -- by SetClass
	own_lim   integer not null default 0, -- of the node that joined last
	own_rate  real    not null default 0,
	own_burst integer not null default 0,
	own_cost_rate  real    not null default 0,
	own_cost_burst integer not null default 0,
	shadow     text not null default '', -- the durable.Shadow that counts now, as JSON; '': none
	own_shadow text not null default '', -- core.Limits, as JSON
	primary key (queue, name)
) strict, without rowid;

-- The token of the last claim.
create table durable_token (last integer not null) strict;
insert into durable_token values (0);

-- The last tick of each schedule.
create table durable_tick (
	schedule text    not null primary key,
	tick     integer not null
) strict, without rowid;
