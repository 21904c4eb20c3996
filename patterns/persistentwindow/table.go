package persistentwindow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Statements; %s stands for the name of the table. A time is in nanoseconds since 1970, UTC. Causes
// are a JSON array of names, the first cause first. If there is no payload, kind is "".
const (
	createTable = `create table if not exists "%[1]s"(boot integer not null, seq integer not null, time integer not null,
		name text not null, key text not null, source text not null, operation integer not null, causes text not null, kind text not null, payload text not null,
		primary key (boot, seq)) strict, without rowid;
		create index if not exists "%[1]s_time" on "%[1]s"(time)`
	insertRow  = `insert or ignore into "%s"(boot, seq, time, name, key, source, operation, causes, kind, payload) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deleteRow  = `delete from "%s" where boot = ? and seq = ?`
	deleteOld  = `delete from "%s" where time < ?`
	deleteMore = `delete from "%[1]s" where (boot, seq) in (select boot, seq from "%[1]s" order by time desc, boot desc, seq desc limit -1 offset ?)`
	selectRows = `select boot, seq, time, name, key, source, operation, causes, kind, payload from "%s"
		where time >= ? and boot <> ? order by time desc, boot desc, seq desc limit ?`
)

func (w *Window) sql(format string) string { return fmt.Sprintf(format, w.opts.Name) }

// insert returns the statement that stores a signal, at most once.
func (w *Window) insert(s signals.Signal) sqlitewriter.Statement {
	path := s.Path()
	causes, _ := json.Marshal(path[:len(path)-1]) // strings cause no error
	args := []any{int64(w.life.boot), int64(s.Seq), s.Time.UnixNano(), s.Name, s.Key, s.Source, int64(s.Operation), string(causes), "", ""}
	for _, k := range w.opts.Kinds {
		if text, ok := k.text(s); ok {
			args[8], args[9] = k.kind, string(text)
			break
		}
	}
	return sqlitewriter.Statement{SQL: w.insertSQL, Args: args}
}

// since is the time of the oldest signal that is kept.
func (w *Window) since() int64 { return time.Now().Add(-w.opts.MaxAge).UnixNano() }

// load creates the table, and reads the newest signals of other boots that match and are not restored
// yet, up to the capacity of the sink. It returns the oldest first.
func (w *Window) load(ctx context.Context) (raised []signals.Signal, err error) {
	if _, err := w.writer.Exec(ctx, w.sql(createTable)); err != nil {
		return nil, err
	}
	window := w.sink.Stats()
	rows, err := w.writer.DB().QueryContext(ctx, w.sql(selectRows), w.since(), int64(w.life.boot), w.opts.MaxRows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	// Only a sink can make signals with payloads and causes.
	maker := signals.NewSink(signals.SinkOptions{Capacity: 1, Propagation: signals.Propagation{MaxDepth: -1, AllowCycles: true}})
	var made signals.Signal
	maker.Subscribe("*", func(s signals.Signal) { made = s })
	for len(raised) < window.Capacity-window.Stored && rows.Next() {
		at, o := int64(0), Origin{}
		var name, key, kind, payload string
		var path []byte
		if err := rows.Scan(&o.Boot, &o.Seq, &at, &name, &key, &o.Source, &o.Operation, &path, &kind, &payload); err != nil {
			return nil, err
		}
		if _, known := w.life.restored.Load(o.text()); known || !signals.Match(w.opts.Pattern, name) {
			continue
		}
		var causes []string
		_ = json.Unmarshal(path, &causes) // a signal without causes is better than none
		on := signals.Raiser(maker)
		for _, cause := range causes {
			on.Raise(cause)
			on = maker.Because(made)
		}
		i := slices.IndexFunc(w.opts.Kinds, func(k Payload) bool { return k.kind == kind })
		if i < 0 || !w.opts.Kinds[i].raise(on, key, payload) {
			on.RaiseKey(name, key)
		}
		made.Name, made.Time, made.Source = name, time.Unix(0, at), o.text()
		raised = append(raised, made)
	}
	slices.Reverse(raised)
	return raised, rows.Err()
}
