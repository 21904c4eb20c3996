-- An item with a Cancel becomes Cancelled also if its end says that it is dead, and a claim finds the losses of an item by its id.
do $do$ declare
	v_turn text := pg_get_functiondef('{s}.durable_turn_2'::regproc);
begin
	v_turn := replace(v_turn, 'kind in (2, 5, 6) as cancelled', 'kind in (2, 3, 4, 5, 6) as cancelled');
	execute replace(v_turn, 'l.item = i.id and l.losses >= 2)', 'l.item = i.id and l.losses >= 2 offset 0)');
end $do$;
