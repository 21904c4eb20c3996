package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// flow is what a record or an end says of a flow, as durable_steps_1 and durable_flow_ends_1 read it.
type flow struct {
	Place   int            `json:"place"` // from 1
	ID      durable.ItemID `json:"id"`
	Token   int64          `json:"token"`
	Version int            `json:"version"`
	Steps   []step         `json:"steps"`

	Step    string `json:"step"`
	Seq     int    `json:"seq"`
	Pattern string `json:"pattern"`
	Likes   string `json:"likes"`
	During  int64  `json:"during"`
	Class   string `json:"class"`
}

type step struct {
	Name        string            `json:"name"`
	Seq         int               `json:"seq"`
	State       durable.StepState `json:"state"`
	Compensates bool              `json:"compensates"`
	Attempt     int               `json:"attempt"`
	Took        int64             `json:"took"`
	Until       *int64            `json:"until"`
	Signal      string            `json:"signal"`
	Data        []byte            `json:"data"`
}

func stepsOf(all []durable.Step) []step {
	steps := []step{}
	for _, s := range all {
		to := step{Name: s.Name, Seq: s.Seq, State: s.State, Compensates: s.Compensates, Attempt: s.Attempt, Took: micros(s.Took), Signal: s.Signal, Data: s.Data}
		if !s.Until.IsZero() {
			until := s.Until.UnixMicro()
			to.Until = &until
		}
		steps = append(steps, to)
	}
	return steps
}

// flowsOf returns what ends say of flows; "" is nothing.
func flowsOf(ends []durable.End) string {
	var all []flow
	for n, e := range ends {
		if e.Kind != durable.EndDone && (len(e.Steps) > 0 || e.Kind == durable.EndParked) {
			p := e.Park
			all = append(all, flow{Place: n + 1, ID: e.ID, Version: e.Version, Steps: stepsOf(e.Steps),
				Step: p.Step, Seq: p.Seq, Pattern: p.Pattern, Likes: likes(p.Pattern), During: micros(p.For), Class: p.Class})
		}
	}
	if all == nil {
		return ""
	}
	return encode(all)
}

// lastSteps are those of flows that are done.
func lastSteps(ends []durable.End) (all []flow) {
	for n, e := range ends {
		if e.Kind == durable.EndDone && len(e.Steps) > 0 {
			all = append(all, flow{Place: n + 1, ID: e.ID, Steps: stepsOf(e.Steps)})
		}
	}
	return all
}

func encode(all []flow) string {
	text, _ := json.Marshal(all) // it has only numbers and texts
	return string(text)
}

var likeOf = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_")

// likes turns a pattern of signals into patterns of LIKE, with commas between them.
func likes(pattern string) string {
	var all []string
	for term := range strings.SplitSeq(pattern, ",") {
		if term = strings.TrimSpace(term); term != "" {
			all = append(all, likeOf.Replace(term))
		}
	}
	return strings.Join(all, ",")
}

// Record is as in [durable.Store].
func (s *Store) Record(ctx context.Context, queue string, records []durable.Record) (current []bool, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	err = s.transactOn(ctx, s.forTurns(), changes, func(p *pipeline) { p.record(queue, records, &current) })
	if err != nil {
		return nil, err
	}
	return current, nil
}

func (p *pipeline) record(queue string, records []durable.Record, current *[]bool) {
	var all []flow
	for n, r := range records {
		all = append(all, flow{Place: n + 1, ID: r.ID, Token: r.Token, Version: r.Version, Steps: stepsOf(r.Steps)})
	}
	*current = make([]bool, len(records))
	p.rows(func(rows pgx.Rows) error {
		var places []int32
		err := rows.Scan(&places)
		for _, n := range places {
			(*current)[n-1] = true
		}
		return err
	}, "select {s}.durable_record_1($1, $2::jsonb)", queue, encode(all))
}

// Journal is as in [durable.Store].
func (s *Store) Journal(ctx context.Context, queue string, id durable.ItemID, data bool) (j durable.Journal, ok bool, err error) {
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		j, ok = durable.Journal{}, false
		p.rows(func(rows pgx.Rows) error {
			var w durable.Parked
			var since, until *time.Time
			ok = true
			err := rows.Scan(&j.Version, &j.Class, &j.Undo, &j.Reason, &w.Step, &w.Pattern, &since, &until, &j.Time)
			if until != nil {
				w.Since, w.Until = *since, *until
				j.Wait = &w
			}
			return err
		}, `
select coalesce(f.version, 0), coalesce(f.class, pg_catalog.split_part(i.lane, pg_catalog.chr(1), 2)), coalesce(f.undo, 0), coalesce(f.reason, ''), coalesce(f.step, ''), coalesce(f.pattern, ''),
	f.since, case when i.state = 2 and f.step <> '' and f.until > pg_catalog.now() then f.until end, pg_catalog.now()
from {s}.durable_item as i left join {s}.durable_flow as f on f.queue = $1 and f.item = i.id where i.id = $2 and i.queue || '' = $1`, queue, id)
		p.rows(func(rows pgx.Rows) error {
			var s durable.Step
			var took int64
			var until *time.Time
			err := rows.Scan(&s.Name, &s.Seq, &s.State, &s.Compensates, &s.Attempt, &took, &s.At, &until, &s.Signal, &s.Data)
			if s.Took = duration(took); until != nil {
				s.Until = *until
			}
			j.Steps = append(j.Steps, s)
			return err
		}, `select name, seq, state, compensates, attempt, took, at, until, signal, case when $3 then data end from {s}.durable_step where queue = $1 and item = $2 order by seq, name`, queue, id, data)
	})
	return j, ok, err
}

// Signal is as in [durable.Store].
//
//ephemeral:none
func (s *Store) Signal(ctx context.Context, queue string, all []durable.Signal) (done []durable.Signalled, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	var wrong error
	err = s.transact(ctx, changes, func(p *pipeline) { p.signal(queue, all, &done, &wrong) })
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

// signal adds the statement that adds signals. If one of them cannot be added, none is, and wrong says why.
func (p *pipeline) signal(queue string, all []durable.Signal, done *[]durable.Signalled, wrong *error) {
	var keys, names, uniques []string
	var items []durable.ItemID
	var datas [][]byte
	for _, s := range all {
		keys, items, names, datas, uniques = append(keys, s.Key), append(items, s.Item), append(names, s.Name), append(datas, s.Data), append(uniques, s.UniqueID)
	}
	*done, *wrong = nil, nil
	p.rows(func(rows pgx.Rows) error {
		var s durable.Signalled
		var why string
		switch err := rows.Scan(&why, &s.Seq, &s.Duplicate, &s.Woken); {
		case err != nil:
			return err
		case why == "unknown":
			*wrong = durable.ErrUnknown
		case why == "full":
			one := all[s.Seq-1]
			*wrong = fmt.Errorf("postgres: %w: %d signals are kept for key %.80q, item %d", core.ErrFull, durable.MaxSignals, one.Key, one.Item)
		default:
			*done = append(*done, s)
		}
		return nil
	}, "select * from {s}.durable_signal_1($1, $2, $3, $4, $5, $6, $7)", queue, durable.MaxSignals, keys, numbers(items), names, datas, uniques)
}

// Signals is as in [durable.Store].
//
//ephemeral:none
func (s *Store) Signals(ctx context.Context, queue, key string, after int64, limit int) (all []durable.Signal, err error) {
	err = s.transact(ctx, snapshot, func(p *pipeline) {
		all = nil
		p.do(inOrder) // or it may sort what Prune reads: all signals for keys
		p.rows(func(rows pgx.Rows) error {
			one := durable.Signal{Key: key}
			err := rows.Scan(&one.Seq, &one.Name, &one.Data, &one.Time, &one.UniqueID, &one.Taken)
			all = append(all, one)
			return err
		}, "select seq, name, data, at, unique_id, taken from {s}.durable_signal where queue = $1 and item = 0 and key = $2 and seq > $3 order by seq limit $4", queue, key, after, limit)
	})
	return all, err
}

// Step runs a step of a flow whose effect is in the database: fn gets a transaction (READ COMMITTED) of the pool, and Step commits it together with the
// record of the step. So fn takes effect exactly once, also if the process dies. Ctx is the context of the item's body, and the pool is one of
// the database of its store. In a later run of the body, Step returns nil without a call of fn. If fn returns an error or panics, or if the
// process has lost the item ([durable.ErrLeaseLost]), the transaction is rolled back. See package flow for steps that have effects elsewhere.
func Step(ctx context.Context, pool *pgxpool.Pool, name string, fn func(tx pgx.Tx) error) error {
	return durable.FlowFrom(ctx).Within(ctx, name, func(ctx context.Context, record func() durable.Record) error {
		s, ok := durable.StoreFrom(ctx).(*Store)
		if !ok {
			return errors.New("postgres: Step is for the body of an item in a store of PostgreSQL, called with its context")
		}
		queue := durable.ClaimFrom(ctx).Queue
		return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			var current []bool
			err := s.within(ctx, tx, func(p *pipeline) { p.record(queue, []durable.Record{record()}, &current) })
			if err == nil && !current[0] {
				err = durable.ErrLeaseLost
			}
			return err
		})
	})
}

// Signal stores a signal for the flows of a key, in the transaction of the caller: see [durable.Queue.Signal], and [Enqueue] for the
// transaction. If it ends the wait of a flow, processes find that at their next poll, or at once if the caller calls
// Store.Wake(q.Name()) after the commit. Until the transaction ends, the key is locked: a flow of the key cannot park or end meanwhile.
// If [durable.MaxSignals] are kept for the key, the error is [core.ErrFull], and the transaction can go on.
//
//ephemeral:none
func Signal[T any](ctx context.Context, tx pgx.Tx, q *durable.Queue[T], key, name string, payload any, uniqueID ...string) error {
	s, ok := q.Store().(*Store)
	if !ok {
		return fmt.Errorf("postgres: queue %q is on a %T, not on a store of PostgreSQL", q.Name(), q.Store())
	}
	one, err := q.PrepareSignal(key, 0, name, payload, uniqueID...)
	if err != nil {
		return err
	}
	var done []durable.Signalled
	var wrong error
	err = s.within(ctx, tx, func(p *pipeline) {
		p.countKeys()
		p.signal(q.Name(), []durable.Signal{one}, &done, &wrong)
	})
	if err == nil {
		err = wrong
	}
	return err
}
