package lastwords_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
)

var errOnPurpose = errors.New("failed on purpose")

// newOrders makes a coordinator that shows one finished operation: each that
// finishes pushes out the one before.
func newOrders(t *testing.T) *core.Coordinator[coretest.Body] {
	t.Helper()
	c, err := core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1, MaxTracked: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newJournal(t *testing.T, c lastwords.Source, persist func(context.Context, lastwords.Note) error, opts lastwords.Options) *lastwords.Journal {
	t.Helper()
	j, err := lastwords.New(c, persist, opts)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// run runs quick operations and returns their ids.
func run(t *testing.T, c *core.Coordinator[coretest.Body], n int) (ids []core.OperationID) {
	t.Helper()
	for range n {
		id, err := c.Enqueue(t.Context(), func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return ids
}

// records keeps notes.
type records struct {
	mu    sync.Mutex
	notes []lastwords.Note
}

func (r *records) persist(_ context.Context, n lastwords.Note) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
	return nil
}

func (r *records) operations() (ids []core.OperationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notes {
		ids = append(ids, n.Operation)
	}
	return ids
}

// Weak points: flushing fails unless it is disposed of already; disposing twice
// fails. The suite covers them.
func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		var (
			ids    atomic.Uint64
			bodies sync.Map
			sink   = core.NewSink(core.SinkOptions{})
		)
		c, err := core.NewCoordinator(coretest.Run, core.Options{Sink: sink})
		if err != nil {
			t.Fatal(err)
		}
		j, err := lastwords.New(c, func(ctx context.Context, n lastwords.Note) error {
			body, _ := bodies.LoadAndDelete(n.Operation)
			return body.(coretest.Body)(ctx)
		}, lastwords.Options{Sink: sink})
		if err != nil {
			t.Fatal(err)
		}
		return coretest.Subject{
			Lifecycle: j,
			Submit: func(_ context.Context, body coretest.Body) error {
				id := core.OperationID(ids.Add(1))
				bodies.Store(id, body)
				return j.Add(lastwords.Note{Operation: id})
			},
			Sink:  sink,
			Stats: j.Stats,
		}
	})
}

func TestNoteOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(t), new(records)
		j := newJournal(t, c, r.persist, lastwords.Options{})
		id, err := c.Enqueue(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("order-1")
			op.Raise("order.received")
			op.Raise("order.rejected")
			op.Raise("order.pending")
			op.Retract("order.pending")
			return errOnPurpose
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		quiet, err := c.Enqueue(t.Context(), func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		left := time.Now()
		time.Sleep(time.Minute)
		c.Close()
		if err := j.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []lastwords.Note{
			{Operation: id, Key: "order-1", Signal: "order.rejected", Status: core.StatusFailed, Err: "failed on purpose", Time: left},
			{Operation: quiet, Status: core.StatusSucceeded, Time: left.Add(time.Minute)},
		}
		if !slices.EqualFunc(r.notes, want, equal) {
			t.Errorf("got  %+v,\nwant %+v", r.notes, want)
		}
	})
}

func equal(a, b lastwords.Note) bool {
	sameTime := a.Time.Equal(b.Time)
	a.Time, b.Time = time.Time{}, time.Time{}
	same := maps.Equal(a.Metadata, b.Metadata)
	a.Metadata, b.Metadata = nil, nil
	return sameTime && same && a.Operation == b.Operation && a.Key == b.Key && a.Signal == b.Signal && a.Status == b.Status && a.Err == b.Err
}

func TestNoteAsJSON(t *testing.T) {
	n := lastwords.Note{Operation: 7, Status: core.StatusFailed, Err: "no", Time: time.Unix(0, 0).UTC(), Metadata: map[string]string{"a": "b"}}
	got, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"operation":7,"status":"failed","error":"no","time":"1970-01-01T00:00:00Z","metadata":{"a":"b"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Weak point: options are taken as they are, so that nothing ensures that notes are
// persisted one at a time.
func TestOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(t), new(records)
		running := 0
		j := newJournal(t, c, func(ctx context.Context, n lastwords.Note) error {
			running++ // nothing guards it but the promise
			defer func() { running-- }()
			if running != 1 {
				t.Errorf("got %d at once, want one at a time", running)
			}
			time.Sleep(time.Second)
			return r.persist(ctx, n)
		}, lastwords.Options{})
		ids := run(t, c, 20)
		c.Close()
		if err := j.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.operations(); !slices.Equal(got, ids) {
			t.Errorf("got  %v,\nwant %v", got, ids)
		}
	})
}

// Weak point: flushing fails before the journal is disposed of.
func TestFlushAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(t), new(records)
		j := newJournal(t, c, func(ctx context.Context, n lastwords.Note) error {
			time.Sleep(time.Second)
			return r.persist(ctx, n)
		}, lastwords.Options{})
		for want := range 3 {
			if err := j.Flush(t.Context()); err != nil {
				t.Errorf("Flush: got %v, want nil", err)
			}
			if got := len(r.operations()); got != max(0, 10*want-1) {
				t.Errorf("after Flush: got %d notes, want %d", got, max(0, 10*want-1))
			}
			run(t, c, 10)
		}
		j.Close()
		if err := j.Flush(t.Context()); err != nil {
			t.Errorf("Flush after Close: got %v, want nil", err)
		}
		c.Close()
	})
}

// Weak point: feeding it waits, or piles up, when persisting is slower than
// operations are evicted. Here it stands still; the workers do not.
func TestNeverHoldsUpTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, hung := newOrders(t), new(records), make(chan struct{})
		j := newJournal(t, c, func(ctx context.Context, n lastwords.Note) error {
			<-hung
			return r.persist(ctx, n)
		}, lastwords.Options{MaxQueued: 3})
		begun := time.Now()
		ids := run(t, c, 2)
		ids = append(ids, run(t, c, 99)...) // the last is in the window
		if took := time.Since(begun); took != 0 {
			t.Errorf("the operations took %v, want no time", took)
		}
		if s := j.Stats(); s.Pending != 3 || s.Running != 1 || s.Dropped != 96 {
			t.Errorf("got %v, want 3 pending, 1 running and 96 dropped", s)
		}
		close(hung)
		if err := j.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := append([]core.OperationID{ids[0]}, ids[97:100]...)
		if got := r.operations(); !slices.Equal(got, want) {
			t.Errorf("got %v, want the one being persisted and the newest, %v", got, want)
		}
		c.Close()
		if err := coretest.CheckBooks(j.Stats()); err != nil {
			t.Error(err)
		}
	})
}

// Weak point: that a note could not be persisted is visible nowhere.
func TestFailuresAreVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sink := newOrders(t), core.NewSink(core.SinkOptions{})
		calls := 0
		j := newJournal(t, c, func(ctx context.Context, n lastwords.Note) error {
			switch calls++; calls {
			case 1:
				return errOnPurpose
			case 2:
				panic(errOnPurpose)
			}
			return nil
		}, lastwords.Options{Sink: sink})
		var failures []lastwords.Failure
		defer lastwords.Failed.Subscribe(sink, func(s core.Signal, f lastwords.Failure) {
			if s.Key != f.Note.Key || s.Name != lastwords.SignalFailed {
				t.Errorf("got signal %q with key %q, want %q with that of the note, %q", s.Name, s.Key, lastwords.SignalFailed, f.Note.Key)
			}
			failures = append(failures, f)
		})()
		for _, key := range []string{"a", "b", "c"} {
			c.Do(t.Context(), func(ctx context.Context) error {
				core.OperationFrom(ctx).SetKey(key)
				return nil
			})
			synctest.Wait() // until it has pushed out the one before
		}
		c.Close()
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := j.Stats(); s.Failed != 2 || s.Succeeded != 1 {
			t.Errorf("got %v, want 2 failed and 1 succeeded", s)
		}
		if len(failures) != 2 || failures[0].Note.Key != "a" || failures[1].Note.Key != "b" {
			t.Fatalf("got %+v, want those of a and b", failures)
		}
		if err := failures[0].Err; err != errOnPurpose {
			t.Errorf("got error %v, want that of persist", err)
		}
		if err := failures[1].Err; !errors.As(err, new(*core.PanicError)) || !errors.Is(err, errOnPurpose) {
			t.Errorf("got error %v, want the panic", err)
		}
		if n := sink.Count(lastwords.SignalFailed); n != 2 {
			t.Errorf("got %d signals on the sink, want 2 that stay", n)
		}
		j.Close()
	})
}

func TestNoteSelectsAndShapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newOrders(t), new(records)
		j := newJournal(t, c, r.persist, lastwords.Options{
			Note: func(s core.Snapshot) (lastwords.Note, bool) {
				switch s.Key {
				case "panics":
					panic("on purpose")
				case "skipped":
					return lastwords.Note{}, false
				}
				return lastwords.Note{Key: s.Key, Metadata: map[string]string{"reason": "chosen"}}, true
			},
		})
		for _, key := range []string{"a", "panics", "skipped", "b"} {
			c.Do(t.Context(), func(ctx context.Context) error {
				core.OperationFrom(ctx).SetKey(key)
				return nil
			})
			synctest.Wait() // until it has pushed out the one before
		}
		c.Close()
		j.Drain(t.Context())
		meta := map[string]string{"reason": "chosen"}
		if want := []lastwords.Note{{Key: "a", Metadata: meta}, {Key: "b", Metadata: meta}}; !slices.EqualFunc(r.notes, want, equal) {
			t.Errorf("got  %+v,\nwant %+v", r.notes, want)
		}
		if n := c.Stats().Panics; n != 1 {
			t.Errorf("the coordinator counts %d panics of callbacks, want 1", n)
		}
	})
}

// Weak point: operations still in the window when the coordinator is disposed of
// have no last words.
func TestCloseOfTheCoordinatorIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{MaxConcurrency: 1}))
		r := new(records)
		j := newJournal(t, c, r.persist, lastwords.Options{})
		ids := run(t, c, 50)
		if len(r.operations()) != 0 {
			t.Error("notes were made of operations that are in the window")
		}
		c.Close()
		if err := j.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.operations(); !slices.Equal(got, ids) {
			t.Errorf("got  %v,\nwant %v", got, ids)
		}
	})
}

// After Complete, Drain and Close the coordinator does not know of the journal any
// more.
func TestEndsListening(t *testing.T) {
	for name, end := range map[string]func(*lastwords.Journal){
		"Complete": func(j *lastwords.Journal) { j.Complete() },
		"Drain":    func(j *lastwords.Journal) { j.Drain(context.Background()) },
		"Close":    func(j *lastwords.Journal) { j.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r := newOrders(t), new(records)
				j := newJournal(t, c, r.persist, lastwords.Options{})
				ids := run(t, c, 3)
				end(j)
				run(t, c, 3)
				if err := j.Add(lastwords.Note{}); !errors.Is(err, core.ErrClosed) {
					t.Errorf("Add: got %v, want %v", err, core.ErrClosed)
				}
				synctest.Wait()
				if got := r.operations(); !slices.Equal(got, ids[:2]) {
					t.Errorf("got %v, want %v", got, ids[:2])
				}
				if n := j.Stats().Rejected; n != 1 {
					t.Errorf("got %d rejected, want only the one that was added", n)
				}
				c.Close()
				j.Close()
			})
		})
	}
}

// One journal may hear of several coordinators.
func TestAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, r := newOrders(t), newOrders(t), new(records)
		j := newJournal(t, a, r.persist, lastwords.Options{})
		b.OnFinalized(func(s core.Snapshot) { j.Add(lastwords.NoteOf(s)) })
		ids := append(run(t, a, 2), run(t, b, 2)...)
		a.Close()
		b.Close()
		j.Drain(t.Context())
		got := r.operations()
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(ids))) {
			t.Errorf("got %v, want %v", got, ids)
		}
	})
}

func TestOptions(t *testing.T) {
	c, r := core.Must(core.NewCoordinator(coretest.Run, core.Options{})), new(records)
	if _, err := lastwords.New(nil, r.persist, lastwords.Options{}); err == nil {
		t.Error("without a coordinator: got no error")
	}
	if _, err := lastwords.New(c, nil, lastwords.Options{}); err == nil {
		t.Error("without a function: got no error")
	}
	_, err := lastwords.New(c, r.persist, lastwords.Options{MaxQueued: -1})
	if err == nil || !strings.HasPrefix(err.Error(), "lastwords: ") || !strings.Contains(err.Error(), "MaxQueued is -1") {
		t.Errorf("negative MaxQueued: got error %v, want one that says so", err)
	}
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, core.SignalClosed)
		for _, name := range []string{"", "orders"} {
			newJournal(t, newOrders(t), r.persist, lastwords.Options{Name: name, Sink: sink}).Close()
		}
		for i, s := range signals.ExpectExactly(core.SignalClosed, core.SignalClosed) {
			if want := []string{"lastwords", "orders"}[i]; s.Key != want {
				t.Errorf("got name %q, want %q", s.Key, want)
			}
		}
	})
}
