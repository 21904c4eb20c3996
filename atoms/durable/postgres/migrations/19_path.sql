-- The functions do not depend on the search_path of their callers. Those of classes that are inlined have only keywords and operators.
alter function {s}.durable_turn_1 set search_path = pg_catalog, pg_temp;
alter function {s}.durable_turn_2 set search_path = pg_catalog, pg_temp;
alter function {s}.durable_class_1 set search_path = pg_catalog, pg_temp;
