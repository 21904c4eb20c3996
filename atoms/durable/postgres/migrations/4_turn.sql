-- Ends claims, and then claims items, in one call: see durable.Store. Its rows are of four kinds:
--   0: the node is not alive
--   1: the outcome of the end at place, and its state
--   2: the item that the end at place has promoted: running if it was handed over
--   3: an item that was claimed, and its place among them
-- A plan for few rows would be kept while the table grows, so the settings leave one plan only.
create function {s}.durable_turn_1(
	p_queue text, p_node bigint, p_lanes text[], p_limits int[], p_cluster int, p_most bigint, p_ahead bigint, p_aged bigint,
	p_alone boolean, p_wait bigint, -- milliseconds for a lock of a key; -1: for ever
	p_ids bigint[], p_tokens bigint[], p_keys text[], p_kinds smallint[], p_afters bigint[], p_errs text[], p_hands boolean[]
) returns table (
	kind int, place int, outcome int, id bigint, key text, lane text, rank int, state smallint, attempts int, token bigint, unique_id text,
	enqueued timestamptz, run_at timestamptz, started timestamptz, ended timestamptz, node_name text, expires timestamptz, cancel text, err text, losses int, data bytea
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
	v_ends int := cardinality(p_ids);
	v_places int[]; v_states smallint[]; v_keys text[]; v_lanes text[]; v_hands boolean[]; -- of ends
	v_heads bigint[]; v_of int[]; v_take boolean[];                                        -- of promoted items
	v_most bigint := p_most;
	v_rooms bigint[];
	v_aged bigint; v_aged_at timestamptz; v_aged_lane int;
	v_taken bigint[] := '{}';
	v_more bigint[];
	v_back bigint[];
	v_losses boolean := exists (select from {s}.durable_loss as l where l.queue = p_queue);
	v_id bigint; v_at timestamptz;
begin
	-- Locks: keys, the queue, the node, and then rows.
	if p_wait < 0 then
		perform pg_advisory_xact_lock(h) from (select distinct hashtextextended(p_queue || chr(1) || key, 1) as h from unnest(p_keys) as key where key <> '' order by h) as hashes;
		perform from {s}.durable_item as i where i.id = any(p_ids) order by i.id for update;
	elsif v_ends > 0 then
		select array_agg(h) into v_busy
		from (select distinct hashtextextended(p_queue || chr(1) || key, 1) as h from unnest(p_keys) as key where key <> '' order by h) as hashes
		where not pg_try_advisory_xact_lock(h);
		if p_wait > 0 and v_busy is not null then
			v_timeout := current_setting('lock_timeout');
			begin
				perform set_config('lock_timeout', p_wait::text, true);
				foreach v_hash in array v_busy loop
					perform pg_advisory_xact_lock(v_hash);
				end loop;
				perform set_config('lock_timeout', v_timeout, true);
				v_busy := null;
			exception when lock_not_available or deadlock_detected then
			end;
		end if;
	end if;
	if p_most > 0 and (p_cluster > 0 or 0 < any(p_limits)) then
		perform pg_advisory_xact_lock(hashtextextended(p_queue, 2));
	end if;
	if p_most > 0 or true = any(p_hands) then
		select * into v_node from {s}.durable_node as n where n.id = p_node and n.expires > clock_timestamp() for key share;
		if v_node.id is null and p_most > 0 then
			return query select 0, 0, 0, 0::bigint, '', '', 0, 0::smallint, 0, 0::bigint, '', clock_timestamp(), clock_timestamp(), null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', 0, null::bytea;
		end if;
		if exists (select from {s}.durable_queue as q where q.queue = p_queue and q.paused) then
			v_node.id := null;
		end if;
	end if;
	v_now := clock_timestamp();

	if v_ends > 0 then
		with mine as materialized (
			select e.*, i.token as current, i.state, i.cancel
			from unnest(p_ids, p_tokens, p_keys, p_kinds, p_afters, p_errs, p_hands) with ordinality as e (id, token, key, kind, after, err, hand, place)
			join {s}.durable_item as i on i.id = e.id
			where i.queue || '' = p_queue and (v_busy is null or e.key = '' or not hashtextextended(p_queue || chr(1) || e.key, 1) = any(v_busy))
			order by i.id for update of i skip locked
		),
		changed as (
			update {s}.durable_item as i set
				state = case e.kind when 1 then 32 when 2 then 8 when 3 then 64 when 4 then case when i.key = '' then 64 else 16 end when 7 then 128 else 2 end,
				attempts = case when e.kind in (5, 6) then i.attempts - 1 else i.attempts end,
				run_at = case when e.kind in (2, 5) then v_now + e.after * interval '1 microsecond' else i.run_at end,
				ended = case when e.kind in (1, 3, 4, 7) then v_now end,
				err = case when e.kind in (5, 6) then i.err else e.err end,
				node = null
			from (
				select id, place, hand, after, case when cancelled then 7 else kind end as kind, case when cancelled then cancel else err end as err
				from mine, lateral (select cancel <> '' and kind in (2, 5, 6) as cancelled) as x
				where current = token and state = 4
			) as e where i.id = e.id returning e.place, i.state, i.key, i.lane, e.hand
		)
		select array_agg(place), array_agg(state), array_agg(key), array_agg(lane), array_agg(hand) into v_places, v_states, v_keys, v_lanes, v_hands from changed;
		return query select 1, c.place, 1, 0::bigint, '', '', 0, c.state, 0, 0::bigint, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', 0, null::bytea
		from unnest(v_places, v_states) as c (place, state);
		if v_losses then -- an ordinary end resets it
			delete from {s}.durable_loss as l using unnest(p_ids, p_kinds) with ordinality as e (id, kind, place)
			where l.queue = p_queue and l.item = e.id and e.kind <> 6 and e.place = any(v_places);
		end if;
		if coalesce(cardinality(v_places), 0) < v_ends then
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
				select array_agg(id) into v_back from back;
			end if;
			return query select 1, e.place::int, case when e.id = any(v_back) then 2 when i.token is distinct from e.token then 3 when i.state <> 4 then 2 else 4 end,
				0::bigint, '', '', 0, coalesce(i.state, 0::smallint), 0, 0::bigint, '', v_now, v_now, null::timestamptz, null::timestamptz, '', null::timestamptz, '', '', 0, null::bytea
			from unnest(p_ids, p_tokens) with ordinality as e (id, token, place)
			left join {s}.durable_item as i on i.id = e.id and i.queue || '' = p_queue
			where v_places is null or not e.place = any(v_places);
		end if;

		-- Keys whose heads have left.
		select array_agg(b.id), array_agg(g.place), array_agg(v_node.id is not null and g.hand and b.lane = g.lane and b.run_at <= v_now)
		into v_heads, v_of, v_take
		from unnest(v_places, v_states, v_keys, v_lanes, v_hands) as g (place, state, key, lane, hand)
		cross join lateral (
			select i.id, i.lane, i.run_at from {s}.durable_item as i
			where i.queue = p_queue and i.key = g.key and i.state = 1 order by i.rank, i.id limit 1
		) as b where g.state >= 32 and g.key <> '';
		if v_heads is not null then
			return query update {s}.durable_item as i set
				state = case when n.take then 4 else 2 end,
				run_at = greatest(i.run_at, v_now),
				token = case when n.take then nextval('{s}.durable_token') else i.token end,
				attempts = case when n.take then i.attempts + 1 else i.attempts end,
				started = case when n.take then v_now else i.started end,
				node = case when n.take then v_node.id end,
				node_name = case when n.take then v_node.name else i.node_name end
			from unnest(v_heads, v_of, v_take) as n (id, place, take) where i.id = n.id
			returning 2, n.place, 0, i.id, i.key, i.lane, i.rank, i.state, i.attempts, i.token, i.unique_id, i.enqueued, i.run_at, i.started, i.ended,
				i.node_name, v_node.expires, i.cancel, i.err, 0, case when n.take then i.data end;
			v_most := v_most - cardinality(array_positions(v_take, true));
		end if;
	end if;

	if v_losses then
		v_most := v_most - p_ahead;
	end if;
	if v_node.id is null or v_most <= 0 then
		return;
	end if;
	if p_cluster > 0 then
		select least(v_most, p_cluster - count(*)) into v_most from {s}.durable_item as i where i.queue = p_queue and i.state = 4;
	end if;
	for n in 1 .. cardinality(p_lanes) loop
		v_rooms[n] := v_most;
		if p_limits[n] > 0 then
			v_rooms[n] := p_limits[n] - (select count(*) from {s}.durable_item as i where i.queue = p_queue and i.lane = p_lanes[n] and i.state = 4);
		end if;
	end loop;
	if p_alone then
		select coalesce(array_agg(c.id), v_taken) into v_taken from (
			select i.id from unnest(p_lanes, v_rooms) with ordinality as l (lane, room, place)
			join {s}.durable_loss as s on s.queue = p_queue and s.losses >= 2 and l.room > 0
			join {s}.durable_item as i on i.id = s.item
			where i.lane || '' = l.lane and i.queue || '' = p_queue and i.state + 0 in (2, 8) and i.run_at <= v_now
			order by l.place, i.run_at, i.id limit greatest(0, least(1, v_most)) for update of i skip locked
		) as c;
		v_most := 0;
	elsif p_aged >= 0 and v_most > 0 then
		for n in 1 .. cardinality(p_lanes) loop
			if v_rooms[n] > 0 then
				select i.id, i.run_at into v_id, v_at from {s}.durable_item as i
				where i.queue = p_queue and i.lane = p_lanes[n] and i.state in (2, 8) and i.run_at <= v_now - p_aged * interval '1 microsecond' and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2))
				order by i.run_at, i.id limit 1 for update skip locked;
				if v_id is not null and (v_aged is null or (v_at, v_id) < (v_aged_at, v_aged)) then
					v_aged := v_id; v_aged_at := v_at; v_aged_lane := n;
				end if;
			end if;
		end loop;
		if v_aged is not null then
			v_taken := array[v_aged];
			v_rooms[v_aged_lane] := v_rooms[v_aged_lane] - 1;
		end if;
	end if;
	for n in 1 .. cardinality(p_lanes) loop
		if least(v_rooms[n], v_most - cardinality(v_taken)) > 0 then
			select array_agg(c.id) into v_more from (
				select i.id from {s}.durable_item as i
				where i.queue = p_queue and i.lane = p_lanes[n] and i.state in (2, 8) and i.run_at <= v_now and (not v_losses or not exists (select from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id and l.losses >= 2)) and i.id is distinct from v_aged
				order by i.run_at, i.id limit least(v_rooms[n], v_most - cardinality(v_taken)) for update skip locked
			) as c;
			v_taken := v_taken || v_more;
		end if;
	end loop;
	if cardinality(v_taken) > 0 then
		return query update {s}.durable_item as i set
			state = 4, token = nextval('{s}.durable_token'), attempts = i.attempts + 1, started = v_now, node = v_node.id, node_name = v_node.name
		from unnest(v_taken) with ordinality as t (id, turn) where i.id = t.id
		returning 3, t.turn::int, 0, i.id, i.key, i.lane, i.rank, i.state, i.attempts, i.token, i.unique_id, i.enqueued, i.run_at, i.started, i.ended,
			i.node_name, v_node.expires, i.cancel, i.err, case when v_losses then coalesce((select l.losses from {s}.durable_loss as l where l.queue = p_queue and l.item = i.id), 0) else 0 end, i.data;
	end if;
end $$;
