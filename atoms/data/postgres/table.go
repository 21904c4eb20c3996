package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// creationLock is an advisory lock of the database. Tables are created under it, because
// "create … if not exists" fails if two sessions run it at once.
const creationLock int64 = 0x657068656d657261

// create makes the table if it does not exist. It looks first: a user without the right to create
// tables may use a table that exists.
func (e *engine) create(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, "select pg_catalog.to_regclass($1) is not null", e.table).Scan(&there)
	if err != nil || there {
		return err
	}
	statements := []statement{{"select pg_catalog.pg_advisory_xact_lock($1)", []any{creationLock}}}
	if e.opts.CreateSchema { // even "if not exists" needs the right to create one
		err := conn.QueryRow(ctx, "select pg_catalog.to_regnamespace($1) is not null", pgx.Identifier{e.opts.Schema}.Sanitize()).Scan(&there)
		if err != nil {
			return err
		}
		if !there {
			statements = append(statements, statement{"create schema if not exists " + pgx.Identifier{e.opts.Schema}.Sanitize(), nil})
		}
	}
	statements = append(statements, statement{fmt.Sprintf(`create table if not exists %s (
		key bytea primary key,
		value %s not null,
		created_at timestamptz not null default pg_catalog.now(),
		updated_at timestamptz not null default pg_catalog.now())`, e.table, e.opts.column()), nil})
	return transaction(ctx, conn, statements)
}

// readable returns an error if keys and values come as text that the driver cannot read.
func (e *engine) readable(ctx context.Context, conn *pgx.Conn) error {
	mode := conn.Config().DefaultQueryExecMode
	if mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol {
		return nil
	}
	var form string
	err := conn.QueryRow(ctx, "select pg_catalog.current_setting('bytea_output')").Scan(&form)
	if err == nil && form != "hex" {
		err = fmt.Errorf("postgres: the mode %s of the pool needs bytea_output hex, not %s", mode, form)
	}
	return err
}

// check returns an error if the table lacks a column of create, or the column has another type. It
// may have more columns, if a row can be inserted without them.
func (e *engine) check(ctx context.Context, conn *pgx.Conn) error {
	var table, unique bool
	var columns string
	var required []string
	err := conn.QueryRow(ctx, `
		with c as (select oid, relkind from pg_catalog.pg_class where oid = pg_catalog.to_regclass($1)),
		a as (select attname, attnum, attnotnull and not atthasdef and attidentity = '' as required,
				pg_catalog.format_type(atttypid, atttypmod) as type, attname in ('key', 'value', 'created_at', 'updated_at') as ours
			from pg_catalog.pg_attribute join c on attrelid = oid where attnum > 0 and not attisdropped)
		select relkind in ('r', 'p'),
			exists (select from pg_catalog.pg_index join a on indkey[0] = attnum and attname = 'key'
				where indrelid = oid and indisunique and indimmediate and indisvalid and indnkeyatts = 1 and indpred is null),
			(select coalesce(pg_catalog.string_agg(attname || ' ' || type, ', ' order by attname), '') from a where ours),
			(select coalesce(pg_catalog.array_agg(attname::text), '{}') from a where required and not ours)
		from c`, e.table).Scan(&table, &unique, &columns, &required)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("created_at timestamp with time zone, key bytea, updated_at timestamp with time zone, value %s", e.opts.column())
	switch {
	case !table:
		return fmt.Errorf("postgres: %s is not a table", e.table)
	case columns != want:
		return fmt.Errorf("postgres: table %s must have the columns (%s), not (%s)", e.table, want, columns)
	case !unique:
		return fmt.Errorf("postgres: the column key of table %s must be its primary key", e.table)
	case len(required) > 0:
		return fmt.Errorf("postgres: the columns %q of table %s need a default", required, e.table)
	}
	return nil
}
