-- The tables of a schema. {s} is the schema. All times are those of the server.
--
-- The functions have a number: a program calls the one that it knows, so a later step adds a function with another number
-- and leaves this one to programs that still run.

-- No cache: ids, nodes and tokens rise in the order in which processes get them.
create sequence {s}.durable_item_id cache 1;
create sequence {s}.durable_node_id cache 1;
create sequence {s}.durable_token cache 1; -- one for each claim; the higher one is the later one

-- Items. An item changes its row with each claim and each end, so what few items have lies in tables of its own.
-- States: 1 blocked, 2 ready, 4 running, 8 retry, 16 halted, 32 done, 64 dead, 128 cancelled.
create table {s}.durable_item (
	id        bigint      primary key,
	queue     text        collate "C" not null,
	key       text        collate "C" not null, -- '': no order
	lane      text        collate "C" not null, -- of an item of a class: chr(1) || class || chr(1) || lane, so that each class has a part of the indexes of its own
	rank      int         not null,             -- the place of the lane; 0 is the highest
	state     smallint    not null,
	flow      smallint    not null default 0,   -- 1: it has a row in durable_flow; 2: and is undone
	attempts  int         not null default 0,
	token     bigint      not null default 0,   -- of the current or last claim
	unique_id text        not null,             -- '': none
	enqueued  timestamptz not null,
	run_at    timestamptz not null,             -- not claimed before
	started   timestamptz,                      -- of the last claim
	ended     timestamptz,
	node      bigint,                           -- while running
	node_name text        not null default '',  -- of the last claim
	cancel    text        not null default '',  -- the reason of a Cancel while running
	err       text        not null default '',  -- of the last failed attempt, or why it was cancelled
	failing   timestamptz,                      -- the end of the first failed attempt
	data      bytea       not null,
	extra     text,                             -- of few items; see durable.Insert. Updates do not write the end of a row again
	cost      bigint                            -- of few items: of the rate of their class
);

-- The indexes have each a set of statements of their own. Conditions such as "id > 0" and "state + 0 = 8", which are always true, keep
-- other statements from an index, whatever the statistics say.
-- At most one item of a key is its head.
create unique index durable_item_head on {s}.durable_item (key, queue) where key <> '' and state in (2, 4, 8, 16);
-- The next item of a key.
create index durable_item_blocked on {s}.durable_item (key, queue, rank, id) where state = 1;
-- What a lane claims next.
create index durable_item_due on {s}.durable_item (queue, lane, run_at, id) where state in (2, 8);
-- What runs: for limits, and for the claims of a node.
create index durable_item_running on {s}.durable_item (queue, lane, node) where state = 4;
-- What has ended: for lists, Stats and Prune; by key; by lane, of queues that have lanes.
create index durable_item_ends on {s}.durable_item (queue, state, ended) where state >= 16 and id > 0;
create index durable_item_past on {s}.durable_item (key, queue, state, ended) where key <> '' and state >= 32;
create index durable_item_lane on {s}.durable_item (queue, lane, state, ended) where lane <> '' and state >= 16;
-- Lists of blocked items by lane, and of items that are tried again.
create index durable_item_places on {s}.durable_item (queue, lane, id) where state = 1 and id > 0;
create index durable_item_again on {s}.durable_item (queue, lane, run_at, id) where state + 0 = 8;

-- Items whose process lost its lease, until their next ordinary end.
create table {s}.durable_loss (
	queue  text   not null,
	item   bigint not null,
	losses int    not null,
	token  bigint not null, -- of the last claim that was lost
	primary key (queue, item)
);

-- The last attempts of an item. Prune deletes them with the item, and so its result.
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

-- The result of an item that is done, if its body has returned one.
create table {s}.durable_result (
	queue text   collate "C" not null,
	item  bigint not null,
	data  bytea  not null,
	primary key (queue, item)
);

-- Flows: what is known of items whose bodies have steps, beside them. See durable.Journal.
create table {s}.durable_flow (
	item    bigint      not null,
	since   timestamptz,                               -- of the wait
	until   timestamptz,
	version int         not null,                      -- with which it began
	undo    smallint    not null default 0,            -- what the item becomes when its steps are undone; 0: they are not
	queue   text        collate "C" not null,
	class   text        collate "C" not null,          -- of the item, as it was enqueued
	reason  text        not null default '',
	step    text        collate "C" not null default '', -- that waits; '': none
	pattern text        not null default '',           -- of signals that end the wait
	likes   text        collate "C" not null default '', -- the same as patterns of LIKE, with commas between them
	primary key (queue, item)
);
create table {s}.durable_step (
	item        bigint      not null,
	took        bigint      not null, -- microseconds
	at          timestamptz not null,
	until       timestamptz,
	seq         int         not null,
	attempt     int         not null,
	state       smallint    not null, -- durable.StepState
	compensates boolean     not null,
	queue       text        collate "C" not null,
	name        text        collate "C" not null,
	signal      text        not null,
	data        bytea,
	primary key (queue, item, name)
);

-- Signals for flows: for a key, or for one item.
create sequence {s}.durable_signal_seq cache 1;
create table {s}.durable_signal (
	seq       bigint      not null,
	item      bigint      not null,           -- 0: for the key
	taken     bigint      not null default 0, -- the item whose flow took it
	at        timestamptz not null,
	checked   timestamptz not null,           -- Prune looks at it when this is Keep.Signals ago. At first: when it came. If it is still needed then: three quarters of that time before now.
	queue     text        collate "C" not null,
	key       text        collate "C" not null,
	name      text        collate "C" not null,
	unique_id text        collate "C" not null, -- '': none
	data      bytea,
	primary key (queue, item, key, seq)
);
create unique index durable_signal_unique on {s}.durable_signal (queue, item, key, unique_id) where unique_id <> '';
-- What Prune deletes.
create index durable_signal_old on {s}.durable_signal (queue, checked) where item = 0;

-- The item that has a unique id, until the id is free again.
create table {s}.durable_unique (
	queue     text        collate "C" not null,
	unique_id text        collate "C" not null,
	item      bigint      not null,
	until     timestamptz not null,
	primary key (queue, unique_id)
);
-- What Prune deletes.
create index durable_unique_until on {s}.durable_unique (queue, until);

-- Processes that run items of a queue. Who finds that a lease is over deletes the row.
create table {s}.durable_node (
	id      bigint      primary key,
	queue   text        not null,
	name    text        not null,
	lease   interval    not null,
	expires timestamptz not null,
	note    text        not null default '', -- why it does not claim
	slots   int         not null,
	cluster int         not null,            -- items of the queue that run at once; 0: no limit
	lanes   jsonb       not null             -- [{"name": …, "limit": …}]
);

-- Queues that were paused once, or have a rate of keys.
create table {s}.durable_queue (
	queue     text    primary key,
	pauses    boolean not null default false, -- it has rows in durable_pause
	key_every bigint  not null default 0,     -- of the node that joined last: microseconds until a token of a key comes; 0: no rate
	key_burst bigint  not null default 0
);

-- What is paused, or a key that was paused and of which no item is done since.
create table {s}.durable_pause (
	queue     text        collate "C" not null,
	key       text        collate "C" not null, -- '' and no class: the queue
	class     text        collate "C" not null,
	since     timestamptz not null,
	until     timestamptz,                      -- null: until it is resumed
	auto      boolean     not null,             -- set by a program, such as a breaker
	reason    text        not null,
	node_name text        not null,
	primary key (queue, key, class)
);

-- Keys of queues with a rate of keys, whose bucket is not full.
create table {s}.durable_key (
	queue   text        collate "C" not null,
	key     text        collate "C" not null,
	full_at timestamptz not null, -- when it is full again
	primary key (queue, key)
);
-- What Prune deletes.
create index durable_key_full on {s}.durable_key (queue, full_at);

-- The last tick of each schedule.
create table {s}.durable_tick (
	schedule text        primary key,
	tick     timestamptz not null
);

-- Classes of a queue. Claims change the rows often, so their pages have room for new versions.
create table {s}.durable_class (
	queue     text             collate "C" not null,
	name      text             collate "C" not null,
	lim       int              not null default 0, -- that counts now; 0: none
	rate      double precision not null default 0, -- tokens a second; 0: no rate
	burst     bigint           not null default 0,
	mark      double precision not null default 0, -- so many of those that have come were taken, or have overflowed
	used      bigint           not null default 0,
	cost_rate  double precision not null default 0, -- the same for what items cost
	cost_burst bigint           not null default 0,
	cost_mark  double precision not null default 0,
	cost_used  bigint           not null default 0,
	since     timestamptz      not null,           -- rate * (now - since) tokens have come
	seen      timestamptz      not null,           -- the time of the last change of the marks: if the clock is before it, it was set back
	is_set    boolean          not null default false, -- by SetClass
	shadow    boolean          not null default false, -- limits of it in durable_shadow are not null
	own_lim   int              not null default 0, -- of the node that joined last
	own_rate  double precision not null default 0,
	own_burst bigint           not null default 0,
	own_cost_rate  double precision not null default 0,
	own_cost_burst bigint           not null default 0,
	primary key (queue, name)
) with (fillfactor = 50);

-- Shadows of classes: rates that only count. A row of what is not set and no node has is not there. See durable.Shadow.
create table {s}.durable_shadow (
	queue   text        collate "C" not null,
	name    text        collate "C" not null,
	own     double precision[], -- of the node that joined last: tokens a second, burst, and the same for what items cost; null: none
	limits  double precision[], -- that count now
	marks   double precision[], -- of the two rates
	since   timestamptz,
	seen    timestamptz,
	at      timestamptz,        -- nothing starts before
	started bigint,
	waited  bigint,
	longest bigint,             -- microseconds
	primary key (queue, name)
) with (fillfactor = 50);

-- Since when tokens have come. If the clock was set back, the buckets go on as they were at the last change.
create function {s}.durable_since_1(p_since timestamptz, p_seen timestamptz, p_now timestamptz) returns timestamptz
language sql immutable as $$ select case when p_seen > p_now then p_since - (p_seen - p_now) else p_since end $$;
-- How many tokens have come.
create function {s}.durable_come_1(p_rate double precision, p_since timestamptz, p_now timestamptz) returns double precision
language sql immutable as $$ select p_rate * ((extract(epoch from p_now - p_since) * 1000000)::bigint) / 1000000 $$;
-- How many tokens there are; below 0: a debt, unless it is an error of rounding.
create function {s}.durable_tokens_1(p_come double precision, p_mark double precision, p_burst bigint) returns double precision
language sql immutable as $$ select case when p_come - p_mark between -1e-9 and 0 then 0 else least(p_burst::double precision, p_come - p_mark) end $$;
-- The mark after some were taken, also if they were not there, or given back.
create function {s}.durable_take_1(p_come double precision, p_mark double precision, p_burst bigint, p_n bigint) returns double precision
language sql immutable as $$ select greatest(p_mark, p_come - p_burst) + p_n $$;

-- The marks of a shadow after tokens of both rates were taken.
create function {s}.durable_marks_1(p_limits double precision[], p_marks double precision[], p_since timestamptz, p_now timestamptz, p_n bigint[]) returns double precision[]
language sql immutable as $$
select array[
	case when p_limits[1] > 0 and p_n[1] <> 0 then {s}.durable_take_1({s}.durable_come_1(p_limits[1], p_since, p_now), p_marks[1], p_limits[2]::bigint, p_n[1]) else p_marks[1] end,
	case when p_limits[3] > 0 and p_n[2] <> 0 then {s}.durable_take_1({s}.durable_come_1(p_limits[3], p_since, p_now), p_marks[2], p_limits[4]::bigint, p_n[2]) else p_marks[2] end]
$$;

-- Takes tokens of a class, also if they are not there, or gives some back. Without a rate there are none. It is called with the lock of the queue.
create function {s}.durable_charge_1(p_queue text, p_name text, p_now timestamptz, p_calls bigint, p_cost bigint) returns void
language sql as $$
with charged as (
update {s}.durable_class as c set since = n.since, seen = p_now,
	used = case when c.rate > 0 then c.used + p_calls else c.used end,
	mark = case when c.rate > 0 and p_calls <> 0 then {s}.durable_take_1({s}.durable_come_1(c.rate, n.since, p_now), c.mark, c.burst, p_calls) else c.mark end,
	cost_used = case when c.cost_rate > 0 then c.cost_used + p_cost else c.cost_used end,
	cost_mark = case when c.cost_rate > 0 and p_cost <> 0 then {s}.durable_take_1({s}.durable_come_1(c.cost_rate, n.since, p_now), c.cost_mark, c.cost_burst, p_cost) else c.cost_mark end
from (select {s}.durable_since_1(d.since, d.seen, p_now) as since from {s}.durable_class as d where d.queue = p_queue and d.name = p_name) as n
where c.queue = p_queue and c.name = p_name returning c.shadow
)
update {s}.durable_shadow as h set since = n.since, seen = p_now, marks = n.marks,
	at = least(n.at, n.since + least(1e10, greatest(-1e9, n.marks[1] / nullif(n.limits[1], 0), n.marks[2] / nullif(n.limits[3], 0))) * interval '1 second') -- what comes back lets items start earlier
from charged cross join lateral (
	select d.limits, s.since, {s}.durable_since_1(d.at, d.seen, p_now) as at, {s}.durable_marks_1(d.limits, d.marks, s.since, p_now, array[p_calls, p_cost]) as marks
	from {s}.durable_shadow as d cross join lateral (select {s}.durable_since_1(d.since, d.seen, p_now) as since) as s where charged.shadow and d.queue = p_queue and d.name = p_name
) as n
where charged.shadow and h.queue = p_queue and h.name = p_name
$$;

-- Counts items that are claimed, in this order, and returns those that would have started later, and by how many microseconds. It is called with the lock of the queue.
create function {s}.durable_shadow_1(p_queue text, p_now timestamptz, p_ids bigint[]) returns table (item bigint, wait bigint)
language plpgsql as $$
#variable_conflict use_column
declare
	h {s}.durable_shadow;
	v_item bigint; v_cost bigint; v_at timestamptz; v_wait bigint;
begin
	for h in select * from {s}.durable_shadow as d where d.queue = p_queue and d.limits is not null order by d.name loop
		h.since := {s}.durable_since_1(h.since, h.seen, p_now); h.at := {s}.durable_since_1(h.at, h.seen, p_now); h.seen := p_now;
		for v_item, v_cost in
			select i.id, coalesce(i.cost, 0) from pg_catalog.unnest(p_ids) with ordinality as t (id, turn) join {s}.durable_item as i on i.id = t.id
			where i.lane || '' >= pg_catalog.chr(1) || h.name || pg_catalog.chr(1) and i.lane || '' < pg_catalog.chr(1) || h.name || pg_catalog.chr(2) order by t.turn
		loop
			v_at := greatest(p_now, h.at);
			for n in 1 .. 2 loop
				if h.limits[2 * n - 1] > 0 and (n = 1 or v_cost > 0) then
					v_at := greatest(v_at, h.since + pg_catalog.floor(greatest(-1e9, least(1e10, (h.marks[n] + least(case n when 1 then 1 else v_cost end, h.limits[2 * n])) / h.limits[2 * n - 1])) * 1000000) * interval '1 microsecond');
				end if;
			end loop;
			h.at := least(v_at, p_now + 1000000000 * interval '1 second');
			h.marks := {s}.durable_marks_1(h.limits, h.marks, h.since, h.at, array[1, v_cost]);
			v_wait := (extract(epoch from h.at - p_now) * 1000000)::bigint;
			h.started := h.started + 1;
			if v_wait > 0 then
				h.waited := h.waited + 1; h.longest := greatest(h.longest, v_wait);
				item := v_item; wait := v_wait;
				return next;
			end if;
		end loop;
		update {s}.durable_shadow as d set (marks, since, seen, at, started, waited, longest) = (h.marks, h.since, h.seen, h.at, h.started, h.waited, h.longest)
		where d.queue = p_queue and d.name = h.name and d.started < h.started;
	end loop;
end $$;

-- The first time, not before p_from, at which a key has a token. It is called with the lock of the key.
create function {s}.durable_space_1(p_queue text, p_key text, p_every bigint, p_burst bigint, p_now timestamptz, p_from timestamptz) returns timestamptz
language sql stable as $$
select greatest(p_from, (
	select least(k.full_at, p_now + p_every * p_burst * interval '1 microsecond') - p_every * (p_burst - 1) * interval '1 microsecond'
	from {s}.durable_key as k where p_every > 0 and k.queue = p_queue and k.key = p_key and k.key <> ''
)) $$;

-- Changes a class: 1 is what a node has, 2 sets the values, and 3 resets them.
create function {s}.durable_class_1(p_kind int, p_queue text, p_name text, p_lim int, p_rate double precision, p_burst bigint, p_cost_rate double precision, p_cost_burst bigint, p_shadow double precision[]) returns void
language plpgsql as $$
declare
	c {s}.durable_class;
	h {s}.durable_shadow;
	v_now timestamptz;
begin
	select * into c from {s}.durable_class as d where d.queue = p_queue and d.name = p_name;
	if p_kind = 1 and (c.own_lim, c.own_rate, c.own_burst, c.own_cost_rate, c.own_cost_burst) = (p_lim, p_rate, p_burst, p_cost_rate, p_cost_burst)
		and (select d.own from {s}.durable_shadow as d where d.queue = p_queue and d.name = p_name) is not distinct from p_shadow then
		return;
	end if;
	perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{s}' || p_queue, 2));
	v_now := pg_catalog.clock_timestamp();
	insert into {s}.durable_class (queue, name, since, seen) values (p_queue, p_name, v_now, v_now) on conflict do nothing;
	select * into c from {s}.durable_class as d where d.queue = p_queue and d.name = p_name;
	delete from {s}.durable_shadow as d where d.queue = p_queue and d.name = p_name returning * into h;
	if p_kind = 1 then
		h.own := p_shadow;
		c.own_lim := p_lim; c.own_rate := p_rate; c.own_burst := p_burst; c.own_cost_rate := p_cost_rate; c.own_cost_burst := p_cost_burst;
	else
		c.is_set := p_kind = 2;
	end if;
	if p_kind = 3 or p_kind = 1 and not c.is_set then
		p_lim := c.own_lim; p_rate := c.own_rate; p_burst := c.own_burst; p_cost_rate := c.own_cost_rate; p_cost_burst := c.own_cost_burst; p_shadow := h.own;
	elsif p_kind = 1 then
		p_lim := c.lim; p_rate := c.rate; p_burst := c.burst; p_cost_rate := c.cost_rate; p_cost_burst := c.cost_burst; p_shadow := h.limits;
	end if;
	if h.limits is distinct from p_shadow then -- it begins to count
		h := (p_queue, p_name, h.own, p_shadow, array[-p_shadow[2], -p_shadow[4]], v_now, v_now, v_now, 0, 0, 0);
	end if;
	if h.own is not null or p_shadow is not null then
		insert into {s}.durable_shadow values (p_queue, p_name, h.own, h.limits, h.marks, h.since, h.seen, h.at, h.started, h.waited, h.longest);
	end if;
	c.since := {s}.durable_since_1(c.since, c.seen, v_now);
	if (c.rate, c.burst, c.cost_rate, c.cost_burst) <> (p_rate, p_burst, p_cost_rate, p_cost_burst) then
		c.mark := -case when c.rate = 0 then p_burst else least(p_burst, {s}.durable_tokens_1({s}.durable_come_1(c.rate, c.since, v_now), c.mark, c.burst)) end;
		c.cost_mark := -case when c.cost_rate = 0 then p_cost_burst else least(p_cost_burst, {s}.durable_tokens_1({s}.durable_come_1(c.cost_rate, c.since, v_now), c.cost_mark, c.cost_burst)) end;
		c.since := v_now;
	end if;
	update {s}.durable_class as d set (lim, rate, burst, cost_rate, cost_burst, since, seen, mark, cost_mark, used, cost_used, shadow, is_set, own_lim, own_rate, own_burst, own_cost_rate, own_cost_burst)
		= (p_lim, p_rate, p_burst, p_cost_rate, p_cost_burst, c.since, v_now, c.mark, c.cost_mark, case when p_rate = 0 then 0 else c.used end, case when p_cost_rate = 0 then 0 else c.cost_used end,
			p_shadow is not null, c.is_set, c.own_lim, c.own_rate, c.own_burst, c.own_cost_rate, c.own_cost_burst)
	where d.queue = p_queue and d.name = p_name;
end $$;

-- Adds items one after the other: those of a call in which one has Replace or SkipIfAlive. The caller has the locks of keys and Unique
-- ids; with p_nowait, those in ephemeral.busy are of others, and their items are not added. See durable.Store.
create function {s}.durable_insert_1(
	p_queue text, p_keys text[], p_lanes text[], p_ranks int[], p_datas bytea[], p_delays bigint[], p_run_ats bigint[], p_uniques text[], p_fors bigint[],
	p_extras text[], p_replaces boolean[], p_skips boolean[], p_nowait boolean, p_costs bigint[], p_rateds boolean[]
) returns table (item bigint, duplicate boolean, other_key boolean, busy boolean) language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
	v_busy bigint[] := coalesce(nullif(pg_catalog.current_setting('ephemeral.busy', true), ''), '{}')::bigint[];
	v_now timestamptz := pg_catalog.clock_timestamp();
	v_run timestamptz;
	v_key text; v_unique text;
	v_head bigint;
	v_queue {s}.durable_queue;
begin
	if true = any(p_rateds) then
		select * into v_queue from {s}.durable_queue as q where q.queue = p_queue;
	end if;
	for n in 1 .. pg_catalog.cardinality(p_keys) loop
		item := null; duplicate := false; other_key := false; busy := false; v_key := p_keys[n]; v_unique := p_uniques[n];
		if p_nowait and array[pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || v_key, 1), pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || v_unique, 3)] && v_busy then
			item := 0; busy := true;
			return next;
			continue;
		end if;
		v_run := greatest(v_now + p_delays[n] * interval '1 microsecond', timestamptz 'epoch' + p_run_ats[n] * interval '1 microsecond');
		if v_unique <> '' then
			select u.item into item from {s}.durable_unique as u where u.queue = p_queue and u.unique_id = v_unique and u.until > v_now;
		end if;
		if item is not null and p_replaces[n] then
			update {s}.durable_item as i set state = case when i.state = 8 then 2 else i.state end, attempts = 0, token = 0, err = '', failing = null,
				lane = p_lanes[n], rank = p_ranks[n], data = p_datas[n], extra = nullif(p_extras[n], ''), cost = nullif(p_costs[n], 0),
				run_at = case when p_rateds[n] and i.state <> 1 then {s}.durable_space_1(p_queue, v_key, v_queue.key_every, v_queue.key_burst, v_now, v_run) else v_run end
			where i.id = item and i.queue || '' = p_queue and i.key = v_key and i.state + 0 in (1, 2, 8) and i.flow + 0 = 0;
			if found then
				delete from {s}.durable_loss as l where l.queue = p_queue and l.item = durable_insert_1.item;
				update {s}.durable_unique as u set until = v_now + p_fors[n] * interval '1 microsecond' where u.queue = p_queue and u.unique_id = v_unique;
			else
				other_key := exists (select from {s}.durable_item as i where i.id = item and i.queue || '' = p_queue and i.key <> v_key and i.state + 0 in (1, 2, 8) and i.flow + 0 = 0);
				if not other_key then
					item := null;
				end if;
			end if;
		end if;
		duplicate := item is not null;
		if item is null then
			select h.id into v_head from {s}.durable_item as h where h.queue = p_queue and h.key = v_key and h.key <> '' and h.state in (2, 4, 8, 16);
			if v_head is not null and p_skips[n] then
				item := v_head; duplicate := true;
			else
				item := pg_catalog.nextval('{s}.durable_item_id');
				if v_head is null and p_rateds[n] then
					v_run := {s}.durable_space_1(p_queue, v_key, v_queue.key_every, v_queue.key_burst, v_now, v_run);
				end if;
				insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, data, extra, cost)
				values (item, p_queue, v_key, p_lanes[n], p_ranks[n], case when v_head is null then 2 else 1 end, v_unique, v_now, v_run, p_datas[n], nullif(p_extras[n], ''), nullif(p_costs[n], 0));
				if v_unique <> '' then
					insert into {s}.durable_unique as u (queue, unique_id, item, until) values (p_queue, v_unique, durable_insert_1.item, v_now + p_fors[n] * interval '1 microsecond')
					on conflict (queue, unique_id) do update set item = excluded.item, until = excluded.until;
				end if;
			end if;
		end if;
		return next;
	end loop;
end $$;

-- The place of an item: see durable.Insert.Place.
create function {s}.durable_place_1(p_lane text, p_class text) returns text
language sql immutable as $$ select case when p_class <> '' then pg_catalog.chr(1) || p_class || pg_catalog.chr(1) else '' end || pg_catalog.split_part(p_lane, pg_catalog.chr(1), -1) $$;

-- Writes steps of flows, of those at places. The caller has locked the items, and has checked their tokens.
create function {s}.durable_steps_1(p_queue text, p_now timestamptz, p_flows jsonb, p_places int[]) returns void language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
	insert into {s}.durable_flow (queue, item, version, class)
	select p_queue, i.id, f.version, pg_catalog.split_part(i.lane, pg_catalog.chr(1), 2)
	from pg_catalog.jsonb_to_recordset(p_flows) as f (place int, id bigint, version int, steps jsonb) cross join lateral (select * from {s}.durable_item as i where i.id = f.id offset 0) as i
	where f.place = any(p_places) and f.steps <> '[]' and i.flow + 0 = 0 on conflict do nothing;
	with s as materialized (
		select distinct on (f.id, s.name) f.id, s.* from pg_catalog.jsonb_to_recordset(p_flows) as f (place int, id bigint, steps jsonb)
		cross join lateral rows from (pg_catalog.jsonb_to_recordset(f.steps)
			as (name text, seq int, state smallint, compensates boolean, attempt int, took bigint, until bigint, signal text, data text)) with ordinality as s (name, seq, state, compensates, attempt, took, until, signal, data, n)
		where f.place = any(p_places) order by f.id, s.name, f.place desc, s.n desc
	),
	written as (
		insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, until, signal, data)
		select p_queue, s.id, s.name, s.seq, s.state, s.compensates, s.attempt, s.took, p_now, timestamptz 'epoch' + s.until * interval '1 microsecond', s.signal, pg_catalog.decode(s.data, 'base64') from s
		on conflict (queue, item, name) do update set seq = excluded.seq, state = excluded.state, compensates = excluded.compensates, attempt = excluded.attempt,
			took = excluded.took, at = excluded.at, until = excluded.until, signal = excluded.signal, data = excluded.data
	)
	update {s}.durable_item as i set flow = greatest(i.flow, 1), attempts = case when o.known then least(i.attempts, 1) else i.attempts end
	from (select s.id, pg_catalog.bool_or(s.state > 1) as known from s group by s.id) as o
	where i.id = o.id and i.id = any(array(select s.id from s)) and (i.flow + 0 = 0 or o.known and i.attempts > 1);
end $$;

-- Writes steps of claims, in order of ids, and returns the places of those that are current: see durable.Store.
create function {s}.durable_record_1(p_queue text, p_records jsonb) returns int[] language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
	v_mine int[];
begin
	perform from {s}.durable_item as i where i.id = any(array(select r.id from pg_catalog.jsonb_to_recordset(p_records) as r (id bigint))) order by i.id for no key update;
	select pg_catalog.array_agg(r.place) into v_mine from pg_catalog.jsonb_to_recordset(p_records) as r (place int, id bigint, token bigint)
	cross join lateral (select * from {s}.durable_item as i where i.id = r.id offset 0) as i where i.queue = p_queue and i.token = r.token and i.state = 4;
	perform {s}.durable_steps_1(p_queue, pg_catalog.clock_timestamp(), p_records, v_mine);
	return v_mine;
end $$;

-- Lets an item wait: what EndParked does. Its run_at and lane are then those that are returned.
create function {s}.durable_park_1(p_queue text, p_now timestamptz, i {s}.durable_item, p_attempt int, p_flow jsonb, out run_at timestamptz, out lane text) language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
	p record;
	s {s}.durable_step;
	v_signal {s}.durable_signal;
begin
	select * into p from pg_catalog.jsonb_to_record(p_flow) as p (version int, step text, seq int, pattern text, likes text, during bigint, class text);
	run_at := p_now; lane := {s}.durable_place_1(i.lane, p.class);
	insert into {s}.durable_flow (queue, item, version, class) values (p_queue, i.id, p.version, pg_catalog.split_part(i.lane, pg_catalog.chr(1), 2)) on conflict do nothing;
	if p.step = '' then
		return;
	end if;
	insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, until, signal)
	values (p_queue, i.id, p.step, p.seq, 1, false, p_attempt, 0, p_now, p_now + p.during * interval '1 microsecond', '') on conflict do nothing;
	select * into s from {s}.durable_step as d where d.queue = p_queue and d.item = i.id and d.name = p.step;
	if s.state <> 1 then
		run_at := i.run_at;
		return;
	end if;
	if p.pattern <> '' then
		select o.* into v_signal from (values (0::bigint, i.key), (i.id, '')) as t (item, key) cross join lateral (
			select * from {s}.durable_signal as o where o.queue = p_queue and o.item = t.item and o.key = t.key and o.taken = 0 and o.at >= i.enqueued and o.name like any(pg_catalog.string_to_array(p.likes, ','))
			order by o.seq limit 1
		) as o order by o.seq limit 1;
	end if;
	if v_signal.seq is not null then
		perform {s}.durable_answer_1(p_queue, p_now, i.id, p.step, v_signal.name, v_signal.data);
		update {s}.durable_signal as o set taken = i.id where o.queue = p_queue and o.item = v_signal.item and o.key = v_signal.key and o.seq = v_signal.seq;
	else
		run_at := coalesce(s.until, p_now);
		update {s}.durable_flow as f set step = p.step, pattern = p.pattern, likes = p.likes, since = s.at, until = run_at where f.queue = p_queue and f.item = i.id;
	end if;
end $$;

-- Ends the wait of a flow with a signal.
create function {s}.durable_answer_1(p_queue text, p_now timestamptz, p_item bigint, p_step text, p_name text, p_data bytea) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
as $$
begin
	update {s}.durable_step as s set state = 2, signal = p_name, data = p_data, at = p_now where s.queue = p_queue and s.item = p_item and s.name = p_step;
	update {s}.durable_flow as f set step = '', pattern = '', likes = '', since = null, until = null where f.queue = p_queue and f.item = p_item;
end $$;

-- Ends the claims of items with flows, all but those that are done, in the order of p_places. Their rows are locked, and their tokens are checked. Each object
-- in p_flows has the place of an end, its steps, and a wait. See durable.End.Apply.
create function {s}.durable_flow_ends_1(p_queue text, p_now timestamptz, p_places int[], p_ids bigint[], p_kinds smallint[], p_afters bigint[], p_errs text[], p_flows jsonb)
returns table (place int, state smallint, key text, lane text, started timestamptz) language plpgsql -- lane: of the claim
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
	i {s}.durable_item;
	v_kind int; v_attempt int; v_note text;
	v_of int[]; v_flows jsonb[]; -- the places of ends, and what they say
begin
	if p_flows is not null then
		perform {s}.durable_steps_1(p_queue, p_now, p_flows, p_places);
		select pg_catalog.array_agg((f.o ->> 'place')::int), pg_catalog.array_agg(f.o) into v_of, v_flows from pg_catalog.jsonb_array_elements(p_flows) as f (o);
	end if;
	foreach place in array p_places loop
		select * into i from {s}.durable_item as o where o.id = p_ids[place];
		v_kind := p_kinds[place]; v_attempt := null; key := i.key; lane := i.lane; started := i.started;
		state := (array[32, 8, 64, 16, 2, 2, 128, 2, 2, 16])[v_kind];
		if state = 16 and i.key = '' and v_kind <> 10 then
			state := 64;
		end if;
		if i.flow = 2 and state in (16, 64, 128) and v_kind <> 10 then -- a Cancel may have changed undo since the claim
			select f.undo, f.reason into state, i.err from {s}.durable_flow as f where f.queue = p_queue and f.item = i.id;
		elsif i.cancel <> '' and state <> 128 then
			state := 128; i.err := i.cancel;
		elsif state = 2 then
			if v_kind = 9 then
				select d.run_at, d.lane into i.run_at, i.lane from {s}.durable_park_1(p_queue, p_now, i, i.attempts, v_flows[pg_catalog.array_position(v_of, durable_flow_ends_1.place)]) as d;
				i.flow := greatest(i.flow, 1);
			elsif v_kind = 5 then
				v_attempt := 5; v_note := p_errs[place]; i.run_at := p_now + p_afters[place] * interval '1 microsecond';
			end if;
			i.attempts := i.attempts - 1;
		else
			i.err := p_errs[place];
		end if;
		if state <> 2 then
			v_attempt := case when v_kind = 10 then 10 when state = 8 then 2 when state = 64 then 3 when state = 16 then 4 else 7 end;
			v_note := i.err;
			if state = 8 then
				i.run_at := p_now + p_afters[place] * interval '1 microsecond';
			elsif i.flow = 1 and exists (select from {s}.durable_step as s where s.queue = p_queue and s.item = i.id and s.compensates and s.state < 3) then
				update {s}.durable_flow as f set undo = durable_flow_ends_1.state, reason = i.err where f.queue = p_queue and f.item = i.id;
				i.flow := 2; i.attempts := 0; i.cancel := ''; i.run_at := p_now; state := 2;
			end if;
		end if;
		if v_attempt is not null then
			delete from {s}.durable_attempt as a where a.queue = p_queue and a.item = i.id and a.token in (
				select o.token from {s}.durable_attempt as o where o.queue = p_queue and o.item = i.id order by o.token desc offset 9);
			insert into {s}.durable_attempt (queue, item, token, kind, node_name, started, ended, err)
			values (p_queue, i.id, i.token, v_attempt, i.node_name, i.started, p_now, pg_catalog.left(v_note, 1000));
		end if;
		update {s}.durable_item as o set state = durable_flow_ends_1.state, flow = i.flow, attempts = i.attempts, lane = i.lane, run_at = i.run_at, err = i.err, cancel = i.cancel, node = null,
			ended = case when durable_flow_ends_1.state >= 16 then p_now end,
			failing = case when durable_flow_ends_1.state in (8, 16, 64) then coalesce(i.failing, p_now) else i.failing end
		where o.id = i.id;
		return next;
	end loop;
end $$;

-- Adds signals. If one of them cannot be added, none is, and the last row says why; ignore the rows before it. See durable.Store.
create function {s}.durable_signal_1(p_queue text, p_most int, p_keys text[], p_items bigint[], p_names text[], p_datas bytea[], p_uniques text[])
returns table (wrong text, seq bigint, duplicate boolean, woken boolean) language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
	v_now timestamptz;
	v_item bigint; v_key text; v_step text; v_wrong text; v_detail text;
	v_seq bigint; v_old boolean; v_taker bigint;
begin
	perform pg_catalog.pg_advisory_xact_lock(h) from (select distinct pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || key, 1) as h from (
		select key from pg_catalog.unnest(p_keys) as key union all select i.key from {s}.durable_item as i where i.id = any(p_items) and i.queue || '' = p_queue
	) as k where key <> '' order by h) as hashes;
	-- Items without keys, and those that a claim or Prune changes without the lock of the key.
	perform from {s}.durable_item as i where i.id = any(array(
		select o.id from {s}.durable_item as o where o.id = any(p_items) and o.queue || '' = p_queue and (o.key = '' or o.state + 0 = 2 and o.flow > 0 or o.state + 0 > 16)
		union all select h.id from (select distinct key from pg_catalog.unnest(p_keys) as key where key <> '') as k
		cross join lateral (select o.id, o.state, o.flow from {s}.durable_item as o where o.queue = p_queue and o.key = k.key and o.key <> '' and o.state in (2, 4, 8, 16) offset 0) as h where h.state = 2 and h.flow > 0
	)) order by i.id for no key update;
	v_now := pg_catalog.clock_timestamp();
	begin
		for n in 1 .. pg_catalog.cardinality(p_names) loop
			v_item := p_items[n]; v_key := p_keys[n]; v_taker := null;
			if v_item <> 0 and not exists (select from {s}.durable_item as i where i.id = v_item and i.queue || '' = p_queue) then
				raise exception using errcode = 'EPHEM', message = 'unknown', detail = n;
			end if;
			v_seq := (select s.seq from {s}.durable_signal as s where s.queue = p_queue and s.item = v_item and s.key = v_key and s.unique_id <> '' and s.unique_id = p_uniques[n]);
			v_old := v_seq is not null;
			if not v_old then
				if p_most <= (select pg_catalog.count(*) from (select from {s}.durable_signal as s where s.queue = p_queue and s.item = v_item and s.key = v_key limit p_most) as s) then
					raise exception using errcode = 'EPHEM', message = 'full', detail = n;
				end if;
				select i.id, f.step into v_taker, v_step from (
					select o.id, o.state, o.flow from {s}.durable_item as o where v_item <> 0 and o.id = v_item
					union all select o.id, o.state, o.flow from {s}.durable_item as o where v_item = 0 and o.queue = p_queue and o.key = v_key and o.key <> '' and o.state in (2, 4, 8, 16)
				) as i cross join lateral (select * from {s}.durable_flow as f where f.queue = p_queue and f.item = i.id and i.state = 2 and i.flow > 0 offset 0) as f
				where f.pattern <> '' and f.until > v_now and p_names[n] like any(pg_catalog.string_to_array(f.likes, ','));
				v_seq := pg_catalog.nextval('{s}.durable_signal_seq');
				insert into {s}.durable_signal (seq, item, taken, at, checked, queue, key, name, unique_id, data) values (v_seq, v_item, coalesce(v_taker, 0), v_now, v_now, p_queue, v_key, p_names[n], p_uniques[n], p_datas[n]);
				if v_taker is not null then
					perform {s}.durable_answer_1(p_queue, v_now, v_taker, v_step, p_names[n], p_datas[n]);
					update {s}.durable_item as i set run_at = coalesce((select {s}.durable_space_1(p_queue, i.key, q.key_every, q.key_burst, v_now, v_now) from {s}.durable_queue as q where q.queue = p_queue), v_now) where i.id = v_taker;
				end if;
			end if;
			return query select '', v_seq, v_old, v_taker is not null;
		end loop;
	exception when sqlstate 'EPHEM' then
		get stacked diagnostics v_wrong = message_text, v_detail = pg_exception_detail;
		return query select v_wrong, v_detail::bigint, false, false;
	end;
end $$;

-- Ends claims, and then claims items, in one call: see durable.Store. Its rows are of six kinds:
--   0: the node is not alive
--   1: the outcome of the end at place, and its state; flow 1: durable_flow_ends_1 has written its attempt
--   2: the item that the end at place has promoted: running if it was handed over; outcome 1: it is a trial
--   3: an item that was claimed, and its place among them; outcome as in 2
--   4: a class without room, the microseconds until its next token in id, and those until half of its burst is there in token
--   5: an item that was claimed, and in token how many microseconds later it would have started with the shadow of its class
-- A plan for few rows would be kept while the table grows, so the settings leave one plan only.
create function {s}.durable_turn_1(
	p_queue text, p_node bigint, p_lanes text[], p_limits int[], p_cluster int, p_most bigint, p_ahead bigint, p_aged bigint,
	p_alone boolean, p_classes boolean, p_wait bigint, -- milliseconds for a lock of a key; -1: for ever
	p_ids bigint[], p_tokens bigint[], p_keys text[], p_kinds smallint[], p_afters bigint[], p_errs text[], p_hands boolean[],
	p_calls bigint[], p_costs bigint[],    -- of ends; null: none
	p_gates text[], p_gate_limits bigint[], -- null: none
	p_flows jsonb default null -- what ends say of flows: see durable_flow_ends_1
) returns table (
	kind int, place int, outcome int, id bigint, key text, lane text, rank int, state smallint, attempts int, token bigint, unique_id text,
	enqueued timestamptz, run_at timestamptz, started timestamptz, ended timestamptz, node_name text, expires timestamptz, cancel text, err text, failing timestamptz, losses int, extra text, data bytea, flow smallint
) language plpgsql
set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
	v_busy bigint[];
	v_hash bigint;
	v_timeout text;
	v_node {s}.durable_node; -- all null: it claims nothing
	v_now timestamptz;
	v_ends int := pg_catalog.cardinality(p_ids);
	v_places int[]; v_states smallint[]; v_keys text[]; v_lanes text[]; v_hands boolean[]; -- of ends
	v_heads bigint[]; v_of int[]; v_take boolean[];                                        -- of promoted items
	v_most bigint := p_most;
	v_rooms bigint[];
	v_aged bigint; v_aged_at timestamptz; v_aged_sub int;
	v_taken bigint[] := '{}';
	v_more bigint[];
	v_back bigint[];
	v_flows int[] := case when p_flows is null then '{}' else array(select f.place from pg_catalog.jsonb_to_recordset(p_flows) as f (place int)) end;
	v_flowing int[];                                        -- ends of items with flows
	v_losses boolean := exists (select from {s}.durable_loss as l where l.queue = p_queue);
	v_counted boolean := false; v_classed boolean := false; v_late boolean;
	v_id bigint; v_at timestamptz;
	v_head_lanes text[];
	v_free text[];                                          -- classes that do not count
	v_names text[]; v_room bigint[]; v_used bigint[];       -- those that count
	v_subs text[] := p_lanes; v_sub_lane int[]; v_sub_class int[]; -- lanes, then each with each of its classes
	v_open int[]; v_pick int[]; v_from int[];          -- of a lane
	v_k bigint; v_c int; v_n int;
	v_waits boolean;
	v_queue {s}.durable_queue;                               -- null: it has no pauses and no rate of keys
	v_held boolean := false;                                 -- keys may be paused
	v_shut text[];                                           -- classes that are paused, have a gate without room, or count only since v_free was read
	v_ats timestamptz[]; v_starts timestamptz[]; v_prices bigint[]; -- of promoted items, ends, and promoted items
	v_costed boolean; v_left double precision[]; v_size bigint[];   -- of classes that count: tokens for costs, and their burst; null: no rate
	v_spent bigint[]; v_needs bigint[];                             -- what is taken of them, and the cost of the item for which they wait
	v_price bigint; v_place text;
	v_shadowed boolean := false;                                    -- a class has a shadow
begin
	if p_most > 0 or v_ends > 0 then
		select * into v_queue from {s}.durable_queue as q where q.queue = p_queue;
		v_held := coalesce(v_queue.pauses, false);
	end if;
	if p_classes then
		if v_held then
			v_shut := array(select p.class from {s}.durable_pause as p where p.queue = p_queue and p.key = '' and p.class <> '' and (p.until is null or p.until > pg_catalog.clock_timestamp()));
		end if;
		if p_gates is not null then
			v_shut := v_shut || array(select g.name from unnest(p_gates, p_gate_limits) as g (name, lim) where g.lim = 0);
		end if;
		select coalesce(pg_catalog.array_agg(c.name) filter (where not (c.lim > 0 or c.rate > 0 or c.cost_rate > 0 or c.name = any(coalesce(p_gates, '{}')))), '{}'),
			coalesce(pg_catalog.array_agg(c.name order by c.name) filter (where c.lim > 0 or c.rate > 0 or c.cost_rate > 0 or c.name = any(coalesce(p_gates, '{}'))), '{}'),
			coalesce(pg_catalog.bool_or(c.shadow), false) and (p_most > 0 or true = any(p_hands))
		into v_free, v_names, v_shadowed from {s}.durable_class as c where c.queue = p_queue and (v_shut is null or not c.name = any(v_shut));
		v_counted := (pg_catalog.cardinality(v_names) > 0 or exists (select from unnest(p_gates, p_gate_limits) as g (name, lim) where g.lim > 0 and (v_shut is null or not g.name = any(v_shut)))) and (p_most > 0 or true = any(p_hands));
		v_classed := pg_catalog.cardinality(v_names) + pg_catalog.cardinality(v_free) > 0;
	end if;
	-- Locks: keys, the queue, the node, and then rows.
	if p_wait < 0 then
		perform pg_catalog.pg_advisory_xact_lock(h) from (select distinct pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || key, 1) as h from pg_catalog.unnest(p_keys) as key where key <> '' order by h) as hashes;
		perform from {s}.durable_item as i where i.id = any(p_ids) order by i.id for update;
	elsif v_ends > 0 then
		select pg_catalog.array_agg(h) into v_busy
		from (select distinct pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || key, 1) as h from pg_catalog.unnest(p_keys) as key where key <> '' order by h) as hashes
		where not pg_catalog.pg_try_advisory_xact_lock(h);
		if p_wait > 0 and v_busy is not null then
			v_timeout := pg_catalog.current_setting('lock_timeout');
			begin
				perform pg_catalog.set_config('lock_timeout', p_wait::text, true);
				foreach v_hash in array v_busy loop
					perform pg_catalog.pg_advisory_xact_lock(v_hash);
				end loop;
				perform pg_catalog.set_config('lock_timeout', v_timeout, true);
				v_busy := null;
			exception when lock_not_available or deadlock_detected then
			end;
		end if;
	end if;
	if p_most > 0 and (p_cluster > 0 or 0 < any(p_limits)) or v_counted or v_shadowed or p_calls is not null then
		perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{s}' || p_queue, 2));
	end if;
	if p_most > 0 or true = any(p_hands) then
		select * into v_node from {s}.durable_node as n where n.id = p_node and n.expires > pg_catalog.clock_timestamp() for key share;
		if v_node.id is null and p_most > 0 then
			return query select 0, 0, 0, 0::bigint, '', '', 0, 0::smallint, 0, 0::bigint, '', pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp(), null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', null::timestamptz, 0, null::text, null::bytea, 0::smallint;
		end if;
		-- Pause and SetClass wait for turns that have this lock. What others have changed before it was read too early: it is read again.
		v_held := coalesce((select q.pauses from {s}.durable_queue as q where q.queue = p_queue), false);
		if v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = '' and p.class = '' and (p.until is null or p.until > pg_catalog.clock_timestamp())) then
			v_node.id := null;
		end if;
		if v_classed then
			v_shut := v_shut || array(
				select p.class from {s}.durable_pause as p where v_held and p.queue = p_queue and p.key = '' and p.class <> '' and (p.until is null or p.until > pg_catalog.clock_timestamp())
				union all select c.name from {s}.durable_class as c where c.queue = p_queue and c.name = any(v_free) and (c.lim > 0 or c.rate > 0 or c.cost_rate > 0));
			if pg_catalog.cardinality(v_shut) > 0 then
				v_free := array(select n from pg_catalog.unnest(v_free) as n where not n = any(v_shut));
				v_names := array(select n.name from pg_catalog.unnest(v_names) with ordinality as n (name, n) where not n.name = any(v_shut) order by n.n);
			end if;
		end if;
	end if;
	v_now := pg_catalog.clock_timestamp();

	if v_ends > 0 then
		with mine as materialized (
			select e.*, i.token as current, i.state, i.cancel, i.flow
			from unnest(p_ids, p_tokens, p_keys, p_kinds, p_afters, p_errs, p_hands) with ordinality as e (id, token, key, kind, after, err, hand, place)
			join {s}.durable_item as i on i.id = e.id
			where i.queue || '' = p_queue and (v_busy is null or e.key = '' or not pg_catalog.hashtextextended('{s}' || p_queue || pg_catalog.chr(1) || e.key, 1) = any(v_busy))
			order by i.id for update of i skip locked
		),
		changed as (
			update {s}.durable_item as i set
				state = case e.kind when 1 then 32 when 2 then 8 when 3 then 64 when 4 then case when i.key = '' then 64 else 16 end when 7 then 128 else 2 end,
				attempts = case when e.kind in (5, 6) then i.attempts - 1 else i.attempts end,
				run_at = case when e.kind in (2, 5) then v_now + e.after * interval '1 microsecond' else i.run_at end,
				ended = case when e.kind in (1, 3, 4, 7) then v_now end,
				err = case when e.kind in (5, 6) then i.err else e.err end,
				failing = case when e.kind in (2, 3, 4) then coalesce(i.failing, v_now) else i.failing end,
				node = null
			from (
				select id, place, hand, after, case when cancelled then 7 else kind end as kind, case when cancelled then cancel else err end as err
				from mine, lateral (select cancel <> '' and kind in (2, 3, 4, 5, 6) as cancelled) as x
				where current = token and state = 4 and (flow = 0 and kind < 9 and place <> all(v_flows) or kind = 1 and flow < 2)
			) as e where i.id = e.id returning e.place, i.state, i.key, i.lane, e.hand, i.started
		)
		select pg_catalog.array_agg(place), pg_catalog.array_agg(state), pg_catalog.array_agg(key), pg_catalog.array_agg(lane), pg_catalog.array_agg(hand), pg_catalog.array_agg(started),
			(select pg_catalog.array_agg(place) from mine where current = token and state = 4 and kind > 1 and (flow > 0 or kind > 8 or place = any(v_flows)))
		into v_places, v_states, v_keys, v_lanes, v_hands, v_starts, v_flowing from changed;
		if v_flowing is not null then
			select v_places || pg_catalog.array_agg(f.place), v_states || pg_catalog.array_agg(f.state), v_keys || pg_catalog.array_agg(f.key), v_lanes || pg_catalog.array_agg(f.lane), v_hands || pg_catalog.array_agg(p_hands[f.place]), v_starts || pg_catalog.array_agg(f.started)
			into v_places, v_states, v_keys, v_lanes, v_hands, v_starts from {s}.durable_flow_ends_1(p_queue, v_now, v_flowing, p_ids, p_kinds, p_afters, p_errs, p_flows) as f;
		end if;
		if p_calls is not null then
			perform {s}.durable_charge_1(p_queue, c.class, v_now, c.calls, c.cost) from (
				select pg_catalog.split_part(g.lane, pg_catalog.chr(1), 2) as class, pg_catalog.sum(p_calls[g.place])::bigint as calls, pg_catalog.sum(p_costs[g.place])::bigint as cost
				from unnest(v_places, v_lanes) as g (place, lane) where g.lane >= pg_catalog.chr(1) and g.lane < pg_catalog.chr(2) group by 1
			) as c where c.calls <> 0 or c.cost <> 0;
		end if;
		if v_queue.key_every > 0 then
			insert into {s}.durable_key as k (queue, key, full_at)
			select p_queue, g.key, least(g.started, v_now) + v_queue.key_every * interval '1 microsecond' from unnest(v_keys, v_starts) as g (key, started) where g.key <> '' order by g.key
			on conflict (queue, key) do update set full_at = greatest(least(k.full_at, v_now + v_queue.key_every * v_queue.key_burst * interval '1 microsecond') + v_queue.key_every * interval '1 microsecond', excluded.full_at);
			update {s}.durable_item as i set run_at = {s}.durable_space_1(p_queue, i.key, v_queue.key_every, v_queue.key_burst, v_now, i.run_at)
			from unnest(v_places, v_states, v_keys) as g (place, state, key) where i.id = p_ids[g.place] and g.state in (2, 8) and g.key <> '';
		end if;
		if v_held and 32 = any(v_states) then
			delete from {s}.durable_pause as p using unnest(v_keys, v_states) as g (key, state)
			where p.queue = p_queue and p.key = g.key and p.class = '' and g.key <> '' and g.state = 32 and p.until <= v_now;
		end if;
		return query select 1, c.place, 1, 0::bigint, '', '', 0, c.state, 0, 0::bigint, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', null::timestamptz, 0, null::text, null::bytea, coalesce(c.place = any(v_flowing), false)::int::smallint
		from unnest(v_places, v_states) as c (place, state);
		if v_losses then -- an ordinary end resets it
			delete from {s}.durable_loss as l using unnest(p_ids, p_kinds) with ordinality as e (id, kind, place)
			where l.queue = p_queue and l.item = e.id and e.kind <> 6 and e.place = any(v_places);
		end if;
		if coalesce(pg_catalog.cardinality(v_places), 0) < v_ends then
			if v_losses and 6 = any(p_kinds) then -- given back after the lease was lost
				with back as (
					select i.id, l.losses from unnest(p_ids, p_tokens, p_kinds) as e (id, token, kind)
					join {s}.durable_loss as l on l.queue = p_queue and l.item = e.id and l.token = e.token
					join {s}.durable_item as i on i.id = e.id
					where i.queue || '' = p_queue and i.token = 0 and i.state + 0 = 2 and e.kind = 6 order by i.id for update of i skip locked
				),
				changed as (
					update {s}.durable_item as i set attempts = case when back.losses > 2 then i.attempts - 1 else i.attempts end from back where i.id = back.id
				),
				less as (
					update {s}.durable_loss as l set losses = l.losses - 1, token = 0 from back where l.queue = p_queue and l.item = back.id
				)
				select pg_catalog.array_agg(id) into v_back from back;
			end if;
			return query select 1, e.place::int, case when e.id = any(v_back) then 2 when i.token is distinct from e.token then 3 when i.state <> 4 then 2 when i.flow = 2 and e.kind = 1 then 3 else 4 end,
				0::bigint, '', '', 0, coalesce(i.state, 0::smallint), 0, 0::bigint, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', null::timestamptz, 0, null::text, null::bytea, 0::smallint
			from unnest(p_ids, p_tokens, p_kinds) with ordinality as e (id, token, kind, place)
			left join {s}.durable_item as i on i.id = e.id and i.queue || '' = p_queue
			where v_places is null or not e.place = any(v_places);
		end if;
	end if;

	if v_counted then
		select pg_catalog.array_agg(c.room), pg_catalog.array_agg(0), pg_catalog.bool_or(c.late), pg_catalog.array_agg(c.left), pg_catalog.array_agg(c.size), pg_catalog.array_agg(0), pg_catalog.bool_or(c.size > 0)
		into v_room, v_used, v_late, v_left, v_size, v_spent, v_costed from (
			select c.seen > v_now as late, case when c.cost_rate > 0 then {s}.durable_tokens_1({s}.durable_come_1(c.cost_rate, c.since, v_now), c.cost_mark, c.cost_burst) end as left,
				case when c.cost_rate > 0 then c.cost_burst end as size,
				coalesce(least(case when c.lim > 0 then c.lim - (select pg_catalog.count(*) from {s}.durable_item as i where i.queue = p_queue and i.state = 4
					and i.lane >= pg_catalog.chr(1) || c.name || pg_catalog.chr(1) and i.lane < pg_catalog.chr(1) || c.name || pg_catalog.chr(2)) end,
				case when c.rate > 0 then pg_catalog.floor({s}.durable_tokens_1({s}.durable_come_1(c.rate, c.since, v_now), c.mark, c.burst))::bigint end), 9000000000) as room
			from pg_catalog.unnest(v_names) with ordinality as n (name, n) join lateral (
				select d.name, least(nullif(d.lim, 0), (select g.lim from unnest(p_gates, p_gate_limits) as g (name, lim) where g.name = d.name limit 1)) as lim,
					d.rate, d.mark, d.burst, d.cost_rate, d.cost_mark, d.cost_burst, d.seen, {s}.durable_since_1(d.since, d.seen, v_now) as since
				from {s}.durable_class as d where d.queue = p_queue and d.name = n.name
			) as c on true order by n.n
		) as c;
	end if;
	if v_ends > 0 then
		-- Keys whose heads have left.
		select pg_catalog.array_agg(b.id), pg_catalog.array_agg(g.place), pg_catalog.array_agg(v_node.id is not null and g.hand and b.lane = g.lane and r.at <= v_now and (p_classes or pg_catalog.left(b.lane, 1) <> pg_catalog.chr(1))
				and (v_shut is null or not pg_catalog.split_part(b.lane, pg_catalog.chr(1), 2) = any(v_shut)) and not (v_held and exists (
					select from {s}.durable_pause as p where p.queue = p_queue and p.key = g.key and p.class = '' and (p.until is null or p.until > v_now) offset 0))),
			pg_catalog.array_agg(b.lane), pg_catalog.array_agg(r.at), pg_catalog.array_agg(coalesce(b.cost, 0))
		into v_heads, v_of, v_take, v_head_lanes, v_ats, v_prices
		from unnest(v_places, v_states, v_keys, v_lanes, v_hands) as g (place, state, key, lane, hand)
		cross join lateral (
			select i.id, i.lane, i.run_at, i.cost from {s}.durable_item as i
			where i.queue = p_queue and i.key = g.key and i.state = 1 order by i.rank, i.id limit 1
		) as b
		cross join lateral (select case when v_queue.key_every > 0 then {s}.durable_space_1(p_queue, g.key, v_queue.key_every, v_queue.key_burst, v_now, greatest(b.run_at, v_now)) else greatest(b.run_at, v_now) end as at) as r
		where g.state >= 32 and g.key <> '';
		if v_counted then
			for v_n in select o.n from pg_catalog.unnest(v_of) with ordinality as o (place, n) order by o.place loop
				v_c := pg_catalog.array_position(v_names, pg_catalog.split_part(v_head_lanes[v_n], pg_catalog.chr(1), 2));
				if v_take[v_n] and v_c is not null then
					v_take[v_n] := v_room[v_c] > 0 and coalesce(v_prices[v_n] = 0 or v_left[v_c] >= least(v_prices[v_n], v_size[v_c]), true);
					if v_take[v_n] and v_size[v_c] > 0 then
						v_left[v_c] := v_left[v_c] - v_prices[v_n]; v_spent[v_c] := v_spent[v_c] + v_prices[v_n];
					end if;
					v_room[v_c] := v_room[v_c] - v_take[v_n]::int;
					v_used[v_c] := v_used[v_c] + v_take[v_n]::int;
				end if;
			end loop;
		end if;
		if v_heads is not null then
			return query update {s}.durable_item as i set
				state = case when n.take then 4 else 2 end,
				run_at = n.at,
				token = case when n.take then pg_catalog.nextval('{s}.durable_token') else i.token end,
				attempts = case when n.take then i.attempts + 1 else i.attempts end,
				started = case when n.take then v_now else i.started end,
				node = case when n.take then v_node.id end,
				node_name = case when n.take then v_node.name else i.node_name end
			from unnest(v_heads, v_of, v_take, v_ats) as n (id, place, take, at) where i.id = n.id
			returning 2, n.place, case when v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and p.auto offset 0) then 1 else 0 end, i.id, i.key, i.lane, i.rank, i.state, i.attempts, i.token, i.unique_id, i.enqueued, i.run_at, i.started, i.ended,
				i.node_name, v_node.expires, i.cancel, i.err, i.failing, 0, i.extra, case when n.take then i.data end, i.flow;
			v_most := v_most - pg_catalog.cardinality(pg_catalog.array_positions(v_take, true));
		end if;
	end if;

	if p_ahead > 0 and (v_losses or v_counted and exists (select from {s}.durable_item as i where i.queue = p_queue and i.state in (2, 8) and i.lane >= pg_catalog.chr(1) and i.lane < pg_catalog.chr(2))) then
		v_most := v_most - p_ahead;
	end if;
	if p_cluster > 0 and v_most > 0 then
		select least(v_most, p_cluster - pg_catalog.count(*)) into v_most from {s}.durable_item as i where i.queue = p_queue and i.state = 4;
	end if;
	if v_node.id is not null and v_most > 0 then
		for n in 1 .. pg_catalog.cardinality(p_lanes) loop
			v_rooms[n] := v_most;
			if p_limits[n] > 0 then
				v_rooms[n] := p_limits[n] - (select pg_catalog.count(*) from {s}.durable_item as i where i.queue = p_queue and i.lane = p_lanes[n] and i.state = 4)
					- (select pg_catalog.count(*) from {s}.durable_item as i where i.queue = p_queue and i.lane >= pg_catalog.chr(1) and i.lane < pg_catalog.chr(2) and pg_catalog.split_part(i.lane, pg_catalog.chr(1), 3) = p_lanes[n] and i.state = 4);
			end if;
		end loop;
		if v_classed then
			for n in 1 .. pg_catalog.cardinality(p_lanes) loop
				for c in 1 .. pg_catalog.cardinality(v_names) loop
					v_k := pg_catalog.cardinality(v_subs) + 1;
					v_subs[v_k] := pg_catalog.chr(1) || v_names[c] || pg_catalog.chr(1) || p_lanes[n]; v_sub_lane[v_k] := n; v_sub_class[v_k] := c;
				end loop;
				for c in 1 .. pg_catalog.cardinality(v_free) loop
					v_k := pg_catalog.cardinality(v_subs) + 1;
					v_subs[v_k] := pg_catalog.chr(1) || v_free[c] || pg_catalog.chr(1) || p_lanes[n]; v_sub_lane[v_k] := n; v_sub_class[v_k] := null;
				end loop;
			end loop;
		end if;
		if p_alone then
			select i.id, l.class, i.cost into v_id, v_c, v_price from (
				select v_subs[s] as place, coalesce(v_sub_lane[s], s) as lane, v_sub_class[s] as class from pg_catalog.generate_subscripts(v_subs, 1) as s
			) as l
			join {s}.durable_loss as o on o.queue = p_queue and o.losses >= 2 and v_rooms[l.lane] > 0 and coalesce(v_room[l.class], 1) > 0
			join {s}.durable_item as i on i.id = o.item and coalesce(i.cost is null or v_left[l.class] >= least(i.cost, v_size[l.class]), true)
				and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0))
			where i.lane || '' = l.place and i.queue || '' = p_queue and i.state + 0 in (2, 8) and i.run_at <= v_now
			order by l.lane, i.run_at, i.id limit 1 for update of i skip locked;
			if v_id is not null then
				v_taken := array[v_id];
				if v_c is not null then
					v_used[v_c] := v_used[v_c] + 1; v_spent[v_c] := v_spent[v_c] + coalesce(v_price, 0);
				end if;
			end if;
		elsif p_aged >= 0 then
			for s in 1 .. pg_catalog.cardinality(v_subs) loop
				if v_rooms[coalesce(v_sub_lane[s], s)] > 0 and coalesce(v_room[v_sub_class[s]], 1) > 0 then
					select i.id, i.run_at, i.cost into v_id, v_at, v_k from {s}.durable_item as i
					where i.queue = p_queue and i.lane = v_subs[s] and i.state in (2, 8) and i.run_at <= v_now - p_aged * interval '1 microsecond' and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0))
					order by i.run_at, i.id limit 1 for update skip locked;
					if v_id is not null and (v_aged is null or (v_at, v_id) < (v_aged_at, v_aged)) and coalesce(v_k is null or v_left[v_sub_class[s]] >= least(v_k, v_size[v_sub_class[s]]), true) then
						v_aged := v_id; v_aged_at := v_at; v_aged_sub := s; v_price := v_k;
					end if;
				end if;
			end loop;
			if v_aged is not null then
				v_taken := array[v_aged];
				v_n := coalesce(v_sub_lane[v_aged_sub], v_aged_sub); v_c := v_sub_class[v_aged_sub];
				v_rooms[v_n] := v_rooms[v_n] - 1;
				if v_c is not null then
					v_room[v_c] := v_room[v_c] - 1; v_used[v_c] := v_used[v_c] + 1;
					v_left[v_c] := v_left[v_c] - coalesce(v_price, 0); v_spent[v_c] := v_spent[v_c] + coalesce(v_price, 0);
				end if;
			end if;
		end if;
		for n in 1 .. pg_catalog.cardinality(p_lanes) loop
			exit when p_alone;
			v_open := array[n];
			if v_classed then
				for s in pg_catalog.cardinality(p_lanes) + 1 .. pg_catalog.cardinality(v_subs) loop
					if v_sub_lane[s] = n and coalesce(v_room[v_sub_class[s]], 1) > 0 then
						v_open := v_open || s;
					end if;
				end loop;
			end if;
			loop
				v_k := least(v_rooms[n], v_most - pg_catalog.cardinality(v_taken));
				exit when v_k <= 0 or pg_catalog.cardinality(v_open) = 0;
				if v_costed then -- an item that lacks its cost keeps the others of its class from being claimed
					v_more := '{}'; v_waits := false;
					for v_id, v_c, v_price in
						select i.id, v_sub_class[i.s], coalesce(i.cost, 0) from (
							select i.id, i.run_at, i.cost, o.s from pg_catalog.unnest(v_open) as o (s) cross join lateral (
								select i.run_at, i.id, i.cost from {s}.durable_item as i
								where i.queue = p_queue and i.lane = v_subs[o.s] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)) and i.id is distinct from v_aged and not i.id = any(v_taken)
								order by i.run_at, i.id limit least(v_k, v_room[v_sub_class[o.s]]) for update skip locked
							) as i order by i.run_at, i.id limit v_k
						) as i order by i.run_at, i.id
					loop
						if v_needs[v_c] is not null then
							continue;
						elsif v_price > 0 and v_left[v_c] < least(v_price, v_size[v_c]) then
							v_needs[v_c] := least(v_price, v_size[v_c]); v_room[v_c] := 0; v_waits := true;
							continue;
						end if;
						v_more := v_more || v_id;
						if v_c is not null then
							v_room[v_c] := v_room[v_c] - 1; v_used[v_c] := v_used[v_c] + 1;
							v_left[v_c] := v_left[v_c] - v_price; v_spent[v_c] := v_spent[v_c] + v_price;
						end if;
					end loop;
					v_taken := v_taken || v_more;
					v_rooms[n] := v_rooms[n] - pg_catalog.cardinality(v_more);
					exit when not v_waits; -- else without that class
					v_open := array(select o.s from pg_catalog.unnest(v_open) as o (s) where coalesce(v_room[v_sub_class[o.s]], 1) > 0);
					continue;
				end if;
				if pg_catalog.cardinality(v_open) = 1 then
					v_c := v_sub_class[v_open[1]];
					v_k := least(v_k, v_room[v_c]);
					select pg_catalog.array_agg(c.id) into v_more from (
						select i.id from {s}.durable_item as i
						where i.queue = p_queue and i.lane = v_subs[v_open[1]] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)) and i.id is distinct from v_aged
						order by i.run_at, i.id limit v_k for update skip locked
					) as c;
					v_taken := v_taken || v_more;
					v_n := coalesce(pg_catalog.cardinality(v_more), 0);
					v_rooms[n] := v_rooms[n] - v_n;
					if v_c is not null then
						v_room[v_c] := v_room[v_c] - v_n; v_used[v_c] := v_used[v_c] + v_n;
					end if;
					exit;
				end if;
				if v_counted then -- nobody else wants those that are locked and not taken
					select pg_catalog.array_agg(c.id order by c.run_at, c.id), pg_catalog.array_agg(c.s) into v_more, v_from from (
						select i.id, i.run_at, o.s from pg_catalog.unnest(v_open) as o (s) cross join lateral (
							select i.run_at, i.id from {s}.durable_item as i
							where i.queue = p_queue and i.lane = v_subs[o.s] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)) and i.id is distinct from v_aged
							order by i.run_at, i.id limit least(v_k, v_room[v_sub_class[o.s]]) for update skip locked
						) as i order by i.run_at, i.id limit v_k
					) as c;
					v_pick := v_from;
				else
					-- As many of each as there are among the first ones of all.
					with picked as materialized (
						select o.s from pg_catalog.unnest(v_open) as o (s) cross join lateral (
							select i.run_at, i.id from {s}.durable_item as i
							where i.queue = p_queue and i.lane = v_subs[o.s] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)) and i.id is distinct from v_aged
							order by i.run_at, i.id limit least(v_k, v_room[v_sub_class[o.s]])
						) as i order by i.run_at, i.id limit v_k
					),
					locked as materialized (
						select i.id, i.run_at, o.s from (select p.s, pg_catalog.count(*) as most from picked as p group by p.s) as o cross join lateral (
							select i.id, i.run_at from {s}.durable_item as i
							where i.queue = p_queue and i.lane = v_subs[o.s] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0)) and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)) and i.id is distinct from v_aged
							order by i.run_at, i.id limit o.most for update skip locked
						) as i
					)
					select (select pg_catalog.array_agg(l.id order by l.run_at, l.id) from locked as l), (select pg_catalog.array_agg(l.s) from locked as l), (select pg_catalog.array_agg(p.s) from picked as p)
					into v_more, v_from, v_pick;
				end if;
				v_taken := v_taken || v_more;
				v_rooms[n] := v_rooms[n] - coalesce(pg_catalog.cardinality(v_more), 0);
				for s in 1 .. pg_catalog.cardinality(v_open) loop -- those of which others have locked the rest are done
					v_n := coalesce(pg_catalog.cardinality(pg_catalog.array_positions(v_from, v_open[s])), 0); v_c := v_sub_class[v_open[s]];
					if v_c is not null then
						v_room[v_c] := v_room[v_c] - v_n; v_used[v_c] := v_used[v_c] + v_n;
					end if;
					if v_n < pg_catalog.cardinality(pg_catalog.array_positions(v_pick, v_open[s])) or v_room[v_c] <= 0 then
						v_open[s] := null;
					end if;
				end loop;
				exit when pg_catalog.cardinality(v_more) = pg_catalog.cardinality(v_pick) or v_pick is null;
				v_open := pg_catalog.array_remove(v_open, null);
			end loop;
		end loop;
		v_waits := pg_catalog.cardinality(v_taken) < v_most;
	end if;
	if pg_catalog.cardinality(v_taken) > 0 then
		return query update {s}.durable_item as i set
			state = 4, token = pg_catalog.nextval('{s}.durable_token'), attempts = i.attempts + 1, started = v_now, node = v_node.id, node_name = v_node.name
		from pg_catalog.unnest(v_taken) with ordinality as t (id, turn) where i.id = t.id
		returning 3, t.turn::int, case when v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and p.auto offset 0) then 1 else 0 end, i.id, i.key, i.lane, i.rank, i.state, i.attempts, i.token, i.unique_id, i.enqueued, i.run_at, i.started, i.ended,
			i.node_name, v_node.expires, i.cancel, i.err, i.failing, case when v_losses then coalesce((select l.losses from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id), 0) else 0 end, i.extra, i.data, i.flow;
	end if;
	if v_late or 0 < any(v_used) then -- late: the clock was set back
		update {s}.durable_class as c set since = u.since, seen = v_now, used = c.used + u.n, cost_used = c.cost_used + u.cost,
			mark = case when u.n > 0 then {s}.durable_take_1(u.come, c.mark, c.burst, u.n) else c.mark end,
			cost_mark = case when u.cost > 0 then {s}.durable_take_1(u.cost_come, c.cost_mark, c.cost_burst, u.cost) else c.cost_mark end
		from (
			select u.name, case when d.rate > 0 then u.n else 0 end as n, case when d.cost_rate > 0 then u.cost else 0 end as cost, d.since, d.seen,
				{s}.durable_come_1(d.rate, d.since, v_now) as come, {s}.durable_come_1(d.cost_rate, d.since, v_now) as cost_come from unnest(v_names, v_used, v_spent) as u (name, n, cost)
			cross join lateral (
				select d.rate, d.cost_rate, d.seen, {s}.durable_since_1(d.since, d.seen, v_now) as since from {s}.durable_class as d
				where d.queue = p_queue and d.name = u.name and (d.rate > 0 or d.cost_rate > 0)
			) as d
		) as u where c.queue = p_queue and c.name = u.name and (u.n > 0 or u.cost > 0 or u.seen > v_now);
	end if;
	if v_shadowed then
		return query select 5, 0, 0, w.item, '', '', 0, 0::smallint, 0, w.wait, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', null::timestamptz, 0, null::text, null::bytea, 0::smallint
		from {s}.durable_shadow_1(p_queue, v_now, array(select n.id from unnest(v_heads, v_of, v_take) as n (id, place, take) where n.take order by n.place) || v_taken) as w;
	end if;
	if v_counted and v_classed and v_waits then
		return query select 4, 0, 0, least(w.next, 9000000000000000)::bigint, w.name, '', 0, 0::smallint, 0, least(w.half, 9000000000000000)::bigint, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', null::timestamptz, 0, null::text, null::bytea, 0::smallint
		from (
			select c.name, case when r.full then 0 else greatest(0, pg_catalog.ceil((1 - t.tokens) / nullif(c.rate, 0) * 1000000), t.cost) end as next,
				case when r.full then 0 else greatest(0, pg_catalog.ceil((greatest(1, c.burst / 2) - t.tokens) / nullif(c.rate, 0) * 1000000), t.cost) end as half
			from (
				select d.*, v_needs[n.n] as need, {s}.durable_since_1(d.since, d.seen, v_now) as came, least(nullif(d.lim, 0), (select g.lim from unnest(p_gates, p_gate_limits) as g (name, lim) where g.name = d.name limit 1)) as most
				from pg_catalog.unnest(v_names) with ordinality as n (name, n) join {s}.durable_class as d on d.queue = p_queue and d.name = n.name
			) as c
			cross join lateral (
				select case when c.rate > 0 then {s}.durable_tokens_1({s}.durable_come_1(c.rate, c.came, v_now), c.mark, c.burst) end as tokens,
					case when c.need > 0 then pg_catalog.ceil((c.need - {s}.durable_tokens_1({s}.durable_come_1(c.cost_rate, c.came, v_now), c.cost_mark, c.cost_burst)) / c.cost_rate * 1000000) end as cost
			) as t
			cross join lateral (select c.most > 0 and c.most <= (select pg_catalog.count(*) from {s}.durable_item as i where i.queue = p_queue and i.state = 4
				and i.lane >= pg_catalog.chr(1) || c.name || pg_catalog.chr(1) and i.lane < pg_catalog.chr(1) || c.name || pg_catalog.chr(2)) as full) as r
			where (r.full or t.tokens < 1 or c.need > 0) and exists (
				select from pg_catalog.generate_subscripts(v_subs, 1) as s
				where s > pg_catalog.cardinality(p_lanes) and v_names[v_sub_class[s]] = c.name and v_rooms[v_sub_lane[s]] > 0 and exists (
					select from {s}.durable_item as i
					where i.queue = p_queue and i.lane = v_subs[s] and i.state in (2, 8) and i.run_at <= v_now
						and exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2 offset 0) = p_alone
						and not (v_held and exists (select from {s}.durable_pause as p where p.queue = p_queue and p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now) offset 0)))
			)
		) as w order by w.name;
	end if;
end $$;
