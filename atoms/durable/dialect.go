package durable

import "fmt"

// A Dialect is how a database writes the conditions of a list: for engines with SQL. The items are the table i,
// with the columns queue, key, lane (of [Insert.Place]), state, rank, run_at, ended, enqueued and err.
type Dialect struct {
	Arg   func(n int) string       // an argument of the statement; the first one, 1, is the queue
	Now   string                   // the time of the statement, as in columns
	Ago   func(us int64) string    // the time so many microseconds before
	Lane  func(name string) string // that an item has this lane
	Class func(name string) string // that an item has this class
	Find  string                   // the function that finds a text in another one
}

// StateIs is the condition that an item has one of the states of a [Part], as partial indexes have it.
func StateIs(states State) string {
	switch states {
	case Ready | Retry:
		return "i.state in (2, 8)"
	case Finished | Halted:
		return "i.state >= 16 and i.lane <> ''"
	case Halted, Done, Dead, Cancelled:
		return fmt.Sprintf("i.state = %d and i.state >= 16", states)
	}
	return fmt.Sprintf("i.state = %d", states)
}

// Where returns the condition of the items of a part, the one that they must match as well, and the column before the
// id in their order, or "". Args are the arguments after the queue.
func (p Part) Where(q Query, d Dialect) (args []any, where, match, at string) {
	add := func(v string) string { args = append(args, v); return d.Arg(len(args) + 1) }
	switch where = "i.queue = " + d.Arg(1) + " and " + StateIs(p.State); {
	case p.Key != "" && p.State&Running != 0:
		where = "i.queue = " + d.Arg(1) + " and i.state in (2, 4, 8, 16)"
	case p.State == Blocked && p.Key != "":
		at = "i.rank"
	case p.State == Blocked:
		where += " and i.lane = " + add(p.Place)
	case p.State&^(Ready|Retry) == 0:
		where, at = where+" and i.lane = "+add(p.Place), "i.run_at"
	case p.State != Running:
		at = "i.ended"
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
