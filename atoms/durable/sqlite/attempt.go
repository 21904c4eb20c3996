package sqlite

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// attempted adds an attempt to an item, which has ended with a state.
func (t *moment) attempted(i *item, kind durable.EndKind, text string) {
	t.do("insert or ignore into durable_attempt (item, token, kind, node_name, started, ended, err) values (?, ?, ?, ?, ?, ?, substr(?, 1, ?))",
		i.ID, i.Token, kind, i.Node, i.started, t.now, text, durable.MaxAttemptError)
	t.do("delete from durable_attempt where item = ?1 and token <= (select token from durable_attempt where item = ?1 order by token desc limit 1 offset ?2)", i.ID, durable.MaxAttempts)
}

// attempts are those of an item, the oldest first.
func (t *moment) attempts(id durable.ItemID) []durable.Attempt {
	type attempt struct {
		durable.Attempt
		started, ended int64
	}
	var all []durable.Attempt
	for _, a := range rows(t, func(a *attempt) list { return list{&a.Token, &a.Kind, &a.Node, &a.started, &a.ended, &a.Err} },
		"select token, kind, node_name, started, ended, err from durable_attempt where item = ? order by token desc limit ?", id, durable.MaxAttempts) {
		a.Started, a.Ended = at(a.started), at(a.ended)
		all = append(all, a.Attempt)
	}
	slices.Reverse(all)
	return all
}
