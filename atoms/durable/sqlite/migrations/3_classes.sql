-- Classes of a queue. The class of an item is in its lane, as char(1) || class || char(1) || lane: so each class has a part of the
-- index of its own, and programs without classes leave these items to nodes that have them.
create table durable_class (
	queue     text    not null,
	name      text    not null,
	lim       integer not null default 0, -- that counts now; 0: none
	rate      real    not null default 0, -- tokens a second; 0: no rate
	burst     integer not null default 0,
	since     integer not null default 0, -- when the rate was set: rate * (now - since) tokens have come since
	mark      real    not null default 0, -- so many of them were taken, or have overflowed
	used      integer not null default 0,
	is_set    integer not null default 0,
	own_lim   integer not null default 0, -- of the node that joined last
	own_rate  real    not null default 0,
	own_burst integer not null default 0,
	primary key (queue, name)
) strict, without rowid;
