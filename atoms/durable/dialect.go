package durable

import "fmt"

// A Dialect is how a database writes the statements of lists: for engines with SQL. Items are in the table i,
// with the columns id, queue, key, lane (of [Insert.Place]), state, rank, run_at, ended, enqueued and err. The first
// argument of each statement is the queue; the methods return the others.
type Dialect struct {
	Table string                   // of items
	Arg   func(n int) string       // the n-th argument of the statement, from 1
	Now   string                   // the time of the statement, as in columns
	Ago   func(us int64) string    // the time so many microseconds before
	Lane  func(name string) string // that an item has this lane
	Class func(name string) string // that an item has this class
	Find  string                   // the function that finds a text in another one
	Retry string                   // that an item is Retry, as an index for these has it
	// At returns a column (i.rank or a time) as a number, which is microseconds for a time, and such a number as a
	// value of the column.
	At func(column, number string) (shown, value string)
}

// Places are the places that have items in one of the states, sorted: see [Query.Parts]. It takes few steps in an
// index for each.
func (d Dialect) Places(states State) string {
	from := "(select i.lane from " + d.Table + " as i where i.queue = " + d.Arg(1) + " and " + d.stateIs(states)
	const first = " order by i.lane limit 1)"
	return "with recursive l (lane) as (select " + from + first + " union all select " + from + " and i.lane > l.lane" + first +
		" from l where l.lane is not null) select lane from l where lane is not null order by lane"
}

// Count counts the items of a part that match.
func (d Dialect) Count(q Query, p Part) (sql string, args []any) {
	args, where, match, _ := d.where(q, p)
	return "select count(*) from " + d.Table + " as i where " + where + " and " + match, args
}

// Look reads up to most items of a part, from where it begins, in its order: the columns are the fields of [Looked].
func (d Dialect) Look(q Query, p Part, most int) (sql string, args []any) {
	args, where, match, at := d.where(q, p)
	add := func(v any) string { args = append(args, v); return d.Arg(len(args) + 1) }
	shown, order, after := "0", "i.id", "i.id > "
	if p.State != Blocked {
		order, after = "i.id + 0", "i.id + 0 > " // or it could be the index of ids
	}
	if at != "" {
		var value string
		shown, value = d.At(at, add(p.From.At))
		order, after = at+", i.id", "("+at+", i.id) > ("+value+", "
	}
	after += add(p.From.ID)
	if at != "" {
		after += ")"
	}
	return fmt.Sprintf("select %s, i.id, %s from %s as i where %s and %s order by %s limit %d", shown, match, d.Table, where, after, order, most), args
}

// stateIs is the condition that an item has one of the states of a [Part], as partial indexes have it.
func (d Dialect) stateIs(states State) string {
	switch states {
	case Ready | Retry:
		return "i.state in (2, 8)"
	case Retry:
		return d.Retry
	case Finished | Halted:
		return "i.state >= 16 and i.lane <> ''"
	case Blocked:
		return "i.state = 1 and i.id > 0" // or it would be the index of keys
	case Halted, Done, Dead, Cancelled:
		return fmt.Sprintf("i.state = %d and i.state >= 16", states)
	}
	return fmt.Sprintf("i.state = %d", states)
}

// where returns the condition of the items of a part, the one that they must match as well, and the column before the
// id in their order, or "".
func (d Dialect) where(q Query, p Part) (args []any, where, match, at string) {
	add := func(v string) string { args = append(args, v); return d.Arg(len(args) + 1) }
	switch where = "i.queue = " + d.Arg(1) + " and " + d.stateIs(p.State); {
	case p.Key != "" && p.State&Running != 0:
		where = "i.queue = " + d.Arg(1) + " and i.state in (2, 4, 8, 16)"
	case p.State == Blocked && p.Key != "":
		where, at = "i.queue = "+d.Arg(1)+" and i.state = 1", "i.rank"
	case p.State == Blocked:
		where += " and i.lane = " + add(p.Place)
	case p.State&^(Ready|Retry) == 0:
		where, at = where+" and i.lane = "+add(p.Place), "i.run_at"
	case p.State != Running:
		at = "i.ended"
		if p.Place == "" && p.Key == "" {
			where += " and i.id > 0"
		}
	}
	if p.Place != "" && p.State&Waiting == 0 {
		where += " and i.lane <> '' and i.lane = " + add(p.Place)
	}
	if p.Key != "" {
		where += " and i.key <> '' and i.key = " + add(p.Key)
	}
	if at == "i.ended" && p.Key != "" {
		where += " and i.state >= 32"
	}
	if q.Due {
		where += " and i.run_at <= " + d.Now
	}
	if q.Delayed {
		where += " and i.run_at > " + d.Now
	}
	match = "true"
	if q.State != 0 {
		match = fmt.Sprintf("i.state & %d <> 0", q.State)
	}
	if q.Lane != "" {
		match += " and " + d.Lane(add(q.Lane))
	}
	if q.Class != "" {
		match += " and " + d.Class(add(q.Class))
	}
	if q.Err != "" {
		match += " and " + d.Find + "(i.err, " + add(q.Err) + ") > 0"
	}
	if q.MinAge > 0 {
		match += " and i.enqueued <= " + d.Ago(q.MinAge.Microseconds())
	}
	if q.MaxAge > 0 {
		match += " and i.enqueued > " + d.Ago(q.MaxAge.Microseconds())
	}
	return args, where, match, at
}
