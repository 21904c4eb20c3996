alter table durable_item add column losses integer not null default 0; -- since the last ordinary end
create index durable_item_lost on durable_item (queue, losses, run_at) where losses >= 1;
