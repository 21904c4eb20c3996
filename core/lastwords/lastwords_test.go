package lastwords_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// newOrders makes a coordinator whose window shows at most n finished operations.
func newOrders(shown int) *core.Coordinator[coretest.Body] {
	return core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, MaxTracked: shown}))
}

// run runs quick operations and returns their ids.
func run(t *testing.T, c *core.Coordinator[coretest.Body], keys ...string) (ids []core.OperationID) {
	for _, key := range keys {
		ids = append(ids, core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).SetKey(key)
			return nil
		})))
		synctest.Wait() // until this operation has pushed out the previous one
	}
	return ids
}

// records keeps notes. It has no lock, because notes are stored one at a time.
type records struct {
	takes time.Duration
	notes []lastwords.Note
}

func (r *records) persist(_ context.Context, n lastwords.Note) error {
	time.Sleep(r.takes)
	r.notes = append(r.notes, n)
	return nil
}

// want drains the journal and compares the operations noted.
func (r *records) want(t *testing.T, j *lastwords.Journal, want ...core.OperationID) {
	t.Helper()
	if err := j.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	var got []core.OperationID
	for _, n := range r.notes {
		got = append(got, n.Operation)
	}
	coretest.Check(t, reflect.DeepEqual(got, want), "got  %v,\nwant %v", got, want)
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		var ids atomic.Uint64
		var bodies sync.Map
		sink := signals.NewSink(signals.SinkOptions{})
		j := core.Must(lastwords.New(newOrders(0), func(ctx context.Context, n lastwords.Note) error {
			body, _ := bodies.LoadAndDelete(n.Operation)
			return body.(coretest.Body)(ctx)
		}, core.Options{Sink: sink}))
		return coretest.Subject{
			Lifecycle: j,
			Submit: func(_ context.Context, body coretest.Body) error {
				id := core.OperationID(ids.Add(1))
				bodies.Store(id, body)
				return j.Add(lastwords.Note{Operation: id})
			},
			Pause: j.Pause, Resume: j.Resume, WaitIdle: j.WaitIdle,
			Sink:  sink,
			Stats: j.Stats,
		}
	})
}

func TestNoteOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(1), new(records)
		j := core.Must(lastwords.New(c, r.persist, core.Options{}))
		id := core.Must(c.Enqueue(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("order-1")
			op.Raise("order.received")
			op.Raise("order.rejected")
			op.Raise("order.pending")
			op.Retract("order.pending")
			return errOnPurpose
		}))
		quiet := run(t, c, "")[0]
		time.Sleep(time.Minute)
		c.Evict(id) // a successful operation does not push out a failed one
		left := time.Now()
		time.Sleep(time.Minute)
		c.Close()
		r.want(t, j, id, quiet)
		want := []lastwords.Note{
			{Operation: id, Key: "order-1", Signal: "order.rejected", Status: core.StatusFailed, Err: "failed on purpose", Time: left},
			{Operation: quiet, Status: core.StatusSucceeded, Time: left.Add(time.Minute)},
		}
		coretest.Check(t, reflect.DeepEqual(r.notes, want), "got  %+v,\nwant %+v", r.notes, want)
	})
}

func TestNoteAsJSON(t *testing.T) {
	n := lastwords.Note{Operation: 7, Status: core.StatusFailed, Err: "no", Time: time.Unix(0, 0).UTC(), Metadata: map[string]string{"a": "b"}}
	want := `{"operation":7,"status":"failed","error":"no","time":"1970-01-01T00:00:00Z","metadata":{"a":"b"}}`
	if got, err := json.Marshal(n); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// When storing is slower than operations leave, the coordinator's workers do not wait.
func TestNeverHoldsUpTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(1), &records{takes: time.Hour}
		j := core.Must(lastwords.New(c, r.persist, core.Options{MaxQueued: 3}))
		begun := time.Now()
		ids := run(t, c, make([]string, 101)...)
		if s := j.Stats(); s.Pending != 3 || s.Running != 1 || s.Dropped != 96 || time.Since(begun) != 0 {
			t.Errorf("got %v after %v, want 3 pending, 1 running and 96 dropped at once", s, time.Since(begun))
		}
		r.want(t, j, append(ids[:1:1], ids[97:100]...)...)
		c.Close()
		if err := coretest.CheckBooks(j.Stats()); err != nil {
			t.Error(err)
		}
	})
}

// Every note that is not stored is counted and raised.
func TestFailuresAreVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sink, ended := newOrders(1), signals.NewSink(signals.SinkOptions{}), 0
		j := core.Must(lastwords.New(c, func(ctx context.Context, n lastwords.Note) error {
			switch n.Key {
			case "fails":
				return errOnPurpose
			case "panics":
				panic(errOnPurpose)
			case "runs":
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}, core.Options{Sink: sink, MaxQueued: 1, OnDone: func(core.Snapshot) { ended++ }}))
		failures := map[string]error{}
		defer j.Failed().Subscribe(sink, func(s signals.Signal, f lastwords.Failure[lastwords.Note]) {
			if s.Key != f.Value.Key || s.Name != lastwords.SignalFailed {
				t.Errorf("got signal %q with key %q, want %q with that of the note, %q", s.Name, s.Key, lastwords.SignalFailed, f.Value.Key)
			}
			failures[f.Value.Key] = f.Err
		})()
		run(t, c, "fails", "panics", "stored", "runs", "dropped", "cancelled", "in the window")
		j.Close()
		if s := j.Stats(); s.Succeeded != 1 || s.Failed != 2 || s.Dropped != 1 || s.Cancelled != 2 {
			t.Errorf("got %v, want 1 succeeded, 2 failed, 1 dropped and 2 cancelled", s)
		}
		for key, want := range map[string]error{
			"fails": errOnPurpose, "panics": errOnPurpose, "runs": core.ErrClosed, "dropped": core.ErrDropped, "cancelled": core.ErrClosed,
		} {
			if !errors.Is(failures[key], want) {
				t.Errorf("%s: got %v, want %v", key, failures[key], want)
			}
		}
		if err := failures["panics"]; len(failures) != 5 || ended != 6 || !errors.As(err, new(*core.PanicError)) {
			t.Errorf("got %v, want 5 failures of 6 notes, one of them a panic", failures)
		}
		c.Close()
	})
}

// After Complete, Drain, Stop and Close the journal is not subscribed to the coordinator.
func TestEndsItsSubscription(t *testing.T) {
	for name, end := range map[string]func(*lastwords.Journal){
		"Complete": (*lastwords.Journal).Complete,
		"Drain":    func(j *lastwords.Journal) { j.Drain(context.Background()) },
		"Stop":     func(j *lastwords.Journal) { j.Stop(context.Background()) },
		"Close":    func(j *lastwords.Journal) { j.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r := newOrders(1), new(records)
				j := core.Must(lastwords.New(c, r.persist, core.Options{}))
				ids := run(t, c, "a", "b")
				end(j)
				run(t, c, "c", "d")
				if err := j.Add(lastwords.Note{}); !errors.Is(err, core.ErrClosed) {
					t.Errorf("Add: got %v, want %v", err, core.ErrClosed)
				}
				r.want(t, j, ids[0])
				if n := j.Stats().Rejected; n != 1 {
					t.Errorf("got %d rejected, want only the one that was added", n)
				}
				c.Close()
				j.Close()
			})
		})
	}
}

func TestOptions(t *testing.T) {
	c, r := newOrders(0), new(records)
	defer c.Close()
	_, noCoordinator := lastwords.New(nil, r.persist, core.Options{})
	_, noFunction := lastwords.New(c, nil, core.Options{})
	coretest.Check(t, noCoordinator != nil, "without a coordinator: got no error")
	coretest.Check(t, noFunction != nil, "without a function: got no error")
	j := core.Must(lastwords.New(c, r.persist, core.Options{}))
	defer j.Close()
	if got := j.Name(); got != "lastwords" {
		t.Errorf("got name %q, want %q", got, "lastwords")
	}
}

// hostile panics in each of its methods.
type hostile struct{}

func (hostile) Error() string     { panic("Error") }
func (hostile) SignalKey() string { panic("SignalKey") }

// A note of an error that panics says so. A value that panics is reported like any other that was not delivered.
func TestHostile(t *testing.T) {
	if n := lastwords.NoteOf(core.Snapshot{Err: hostile{}}); !strings.Contains(n.Err, "hostile") {
		t.Errorf("got %+v", n)
	}
	told, signalled := 0, 0
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{}))
	r := core.Must(lastwords.NewRelay(c, func(core.Snapshot) (any, bool) { return hostile{}, true },
		func(context.Context, any) error { return hostile{} }, core.Options{OnDone: func(core.Snapshot) { told++ }}))
	r.Failed().Subscribe(r.Sink(), func(signals.Signal, lastwords.Failure[any]) { signalled++ })
	r.Add(hostile{})
	r.Add(nil)
	r.Drain(t.Context())
	c.Close()
	if told != 2 || signalled != 2 {
		t.Errorf("told %d and signalled %d, want 2 and 2", told, signalled)
	}
}
