package persistentwindow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/persistentwindow"
)

type (
	Window  = persistentwindow.Window
	Options = persistentwindow.Options
)

func openWriter(t testing.TB, opts sqlitewriter.Options) *sqlitewriter.Writer {
	t.Helper()
	w := core.Must(sqlitewriter.Open(context.Background(), filepath.Join(t.TempDir(), "window.db"), opts))
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func open(t testing.TB, w *sqlitewriter.Writer, sink *signals.Sink, opts Options) *Window {
	t.Helper()
	window := core.Must(persistentwindow.Open(context.Background(), w, sink, opts))
	t.Cleanup(func() {
		_ = window.Close() // some tests break the file
		s := window.Stats()
		assert.Equal(t, s.Noted, uint64(s.Pending+s.Running)+s.Written+s.Lost, "the law of Stats")
	})
	return window
}

// stored returns the rows in the order in which they were raised.
func stored(t testing.TB, w *sqlitewriter.Writer) (rows []string) {
	t.Helper()
	r := core.Must(w.DB().Query("select trim(name || ' ' || key) from signals order by time, boot, seq"))
	defer r.Close()
	for r.Next() {
		var row string
		require.NoError(t, r.Scan(&row))
		rows = append(rows, row)
	}
	require.NoError(t, r.Err())
	return rows
}

// shown returns the signals that a sink shows, without the signals of windows.
func shown(sink *signals.Sink) (facts []signals.Signal) {
	for s := range sink.Sense(signals.Query{}) {
		if !s.Matches("window.*,write.*") {
			facts = append(facts, s)
		}
	}
	return facts
}

func namesOf(facts []signals.Signal) (names []string) {
	for _, s := range facts {
		names = append(names, s.Name)
	}
	return names
}

func newSink() *signals.Sink {
	return signals.NewSink(signals.SinkOptions{MaxAge: time.Hour})
}

// Identity is the position in the sink, so all signals of an operation are stored.
func TestSignalsOfAnOperationRaisedAfterAFlushAreStored(t *testing.T) {
	w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, sink, Options{Pattern: "step.*"})
	c, err := core.NewCoordinator(func(ctx context.Context, _ int) error {
		core.OperationFrom(ctx).Raise("step.one")
		assert.NoError(t, window.Flush(context.Background()))
		core.OperationFrom(ctx).Raise("step.two")
		return nil
	}, core.Options{Sink: sink})
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), 1))
	require.NoError(t, window.Flush(t.Context()))
	require.Equal(t, []string{"step.one", "step.two"}, stored(t, w))
}

// Signals count as written when they are committed: a flush that fails is reported, and the
// next one writes the signals, once and in order, even if the first has stored a part.
func TestFailedFlushIsRepeated(t *testing.T) {
	w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, sink, Options{MaxBatch: 2})
	var failed error
	persistentwindow.Failed.Subscribe(sink, func(_ signals.Signal, err error) { failed = err })
	for i := range 3 {
		sink.RaiseKey("a", fmt.Sprint(i))
	}
	core.Must(w.Exec(t.Context(), "create trigger full before insert on signals when new.key = '2' begin select raise(abort, 'no more'); end"))
	err := window.Flush(t.Context())
	require.ErrorContains(t, err, "no more")
	require.Equal(t, err, failed)
	require.Equal(t, []string{"a 0", "a 1"}, stored(t, w))
	require.Equal(t, 1, window.Stats().Pending)
	core.Must(w.Exec(t.Context(), "drop trigger full; delete from signals where key = '1'; insert into signals select boot, seq + 2, time, name, '2', source, operation, causes, kind, payload from signals"))
	require.NoError(t, window.Flush(t.Context()))
	require.Equal(t, []string{"a 0", "a 2"}, stored(t, w))
}

// Rows beyond MaxAge and MaxRows are deleted when others are written. Negative limits are none.
func TestFileIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
		window := open(t, w, sink, Options{MaxAge: time.Minute, MaxRows: 3, FlushInterval: time.Hour})
		for _, key := range []string{"1", "2", "3", "4", "5"} {
			sink.RaiseKey("a", key)
			require.NoError(t, window.Flush(t.Context()))
		}
		require.Equal(t, []string{"a 3", "a 4", "a 5"}, stored(t, w))
		time.Sleep(time.Minute)
		sink.RaiseKey("a", "6")
		require.NoError(t, window.Flush(t.Context()))
		require.Equal(t, []string{"a 5", "a 6"}, stored(t, w)[1:])
		time.Sleep(time.Nanosecond)
		sink.RaiseKey("a", "7")
		require.NoError(t, window.Flush(t.Context()))
		require.Equal(t, []string{"a 6", "a 7"}, stored(t, w))
		require.NoError(t, window.Close())
		window = open(t, w, sink, Options{MaxAge: -1, MaxRows: -1})
		time.Sleep(1000 * time.Hour)
		sink.RaiseKey("a", "8")
		require.NoError(t, window.Flush(t.Context()))
		require.Len(t, stored(t, w), 8, "all that the sink has shown, too")
	})
}

// Signals that flushes raise are not stored. If they were, each flush would cause another one. This
// also holds if the writer raises on the same sink, and with several windows. While nothing waits,
// no timer runs.
func TestOwnSignalsAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		w := openWriter(t, sqlitewriter.Options{Sink: sink})
		window := open(t, w, sink, Options{})
		open(t, w, sink, Options{Name: "other"})
		sink.Raise("a")
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		require.Empty(t, stored(t, w))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, []string{"a"}, stored(t, w))
		require.True(t, sink.Has(persistentwindow.Flushed.Name()) && sink.Has(sqlitewriter.Written.Name()))
		groups := w.Stats().Groups
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, groups, w.Stats().Groups)
		require.EqualValues(t, 1, window.Stats().Noted)
	})
}

// A flush writes all batches. If half of MaxQueued wait, a flush begins at once. Signals that are
// dropped because the disk fails are counted and reported.
func TestLossIsCountedAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
		window := open(t, w, sink, Options{MaxQueued: 20, MaxBatch: 3})
		lost := 0
		persistentwindow.Lost.Subscribe(sink, func(_ signals.Signal, n int) { lost += n })
		for i := range 10 {
			sink.RaiseKey("a", fmt.Sprint(i))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, stored(t, w), 10, "all batches, at once")
		core.Must(w.Exec(t.Context(), "alter table signals rename to gone"))
		for i := range 25 {
			sink.RaiseKey("b", fmt.Sprint(i))
			synctest.Wait()
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Positive(t, window.Stats().Failed)
		core.Must(w.Exec(t.Context(), "alter table gone rename to signals"))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		rows := stored(t, w)
		require.Len(t, rows, 30)
		require.Equal(t, []string{"b 5", "b 24"}, []string{rows[10], rows[29]}, "the oldest are dropped")
		require.Equal(t, 5, lost)
		require.EqualValues(t, 5, window.Stats().Lost)
		require.NotContains(t, rows, persistentwindow.Lost.Name())
	})
}

// Signals come back with name, key, time, causes and payloads of declared kinds. No handler and no
// monitor gets them. Signals older than MaxAge do not come back. If several windows are opened, each
// signal comes back once.
func TestRestoreIsSilentAndOnce(t *testing.T) {
	type file struct{ Size int }
	saved, other := signals.NewKind[file]("file.saved"), signals.NewKind[file]("other")
	synctest.Test(t, func(t *testing.T) {
		opts := Options{Kinds: []persistentwindow.Payload{persistentwindow.JSON(saved)}}
		w, first := openWriter(t, sqlitewriter.Options{}), newSink()
		first.Raise("old")
		time.Sleep(time.Minute)
		first.Raise("before") // Open records the signals that are there
		window := open(t, w, first, opts)
		first.Raise("root")
		for root := range first.Sense(signals.Query{Pattern: "root"}) {
			first.Because(root).Raise("middle")
		}
		for middle := range first.Sense(signals.Query{Pattern: "middle"}) {
			saved.Raise(first.Because(middle).Scoped("a", "b", "c"), "key", file{7})
		}
		other.Raise(first, "", file{8})
		want := shown(first)
		require.NoError(t, window.Close())
		time.Sleep(10*time.Minute - time.Minute)

		second := newSink()
		calls, monitor := 0, second.Monitor("*", time.Hour)
		second.Subscribe("*", func(s signals.Signal) {
			if !s.Matches("window.*") {
				calls++
			}
		})
		again := open(t, w, second, opts)
		for range 2 { // while the first window is open, and after it
			open(t, w, second, opts)
			require.NoError(t, again.Close())
		}
		got := shown(second)
		require.Equal(t, namesOf(want), namesOf(got), "old is exactly 10 minutes old")
		for i, s := range got {
			require.True(t, want[i].Time.Equal(s.Time))
			require.Equal(t, want[i].Path(), s.Path())
			require.Equal(t, want[i].Key, s.Key)
		}
		payload, ok := saved.From(got[4])
		require.True(t, ok)
		require.Equal(t, file{7}, payload)
		require.Nil(t, got[5].Payload(), "its kind is not declared")
		require.Zero(t, calls)
		require.Equal(t, second.Count("window.*"), monitor.Count())
		require.Len(t, stored(t, w), len(want), "what is restored is not stored again")

		time.Sleep(time.Nanosecond)
		third := newSink()
		open(t, w, third, Options{})
		require.Equal(t, namesOf(want[1:]), namesOf(shown(third)))
		for _, n := range persistentwindow.Loaded.Sense(third, signals.Query{}) {
			require.Equal(t, len(want)-1, n)
		}
	})
}

// The newest signals that match Pattern come back, as many as the sink has room for. Signals that do
// not match, or that another window has restored, take no room.
func TestRestoreFillsTheSink(t *testing.T) {
	w, first := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, first, Options{})
	for i := range 10 {
		first.RaiseKey("rare", fmt.Sprint(i))
		first.Raise("noise")
		first.Raise("noise")
	}
	require.NoError(t, window.Close())
	second := signals.NewSink(signals.SinkOptions{Capacity: 5})
	require.Equal(t, 5, open(t, w, second, Options{Pattern: "rare"}).Stats().Restored)
	got := shown(second) // two signals of the window have taken the room of the oldest
	require.Equal(t, []string{"7", "8", "9"}, []string{got[0].Key, got[1].Key, got[2].Key})
	third := signals.NewSink(signals.SinkOptions{Capacity: 20})
	require.Equal(t, 10, open(t, w, third, Options{Pattern: "rare"}).Stats().Restored)
	require.Equal(t, 8, open(t, w, third, Options{}).Stats().Restored)
}

// An operation id of another process is not taken for an id of this process: restored signals have
// no operation, but OriginOf returns it.
func TestRestoredOperationsAreForeign(t *testing.T) {
	w, first := openWriter(t, sqlitewriter.Options{}), newSink()
	run := func(sink *signals.Sink) (id core.OperationID) {
		c, err := core.NewCoordinator(func(ctx context.Context, _ int) error {
			core.OperationFrom(ctx).Raise("done")
			return nil
		}, core.Options{Name: "a:b#1/orders", Sink: sink})
		require.NoError(t, err)
		id, err = c.Enqueue(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, c.Flush(t.Context()))
		return id
	}
	window := open(t, w, first, Options{Pattern: "done,direct"})
	first.Raise("direct")
	old := run(first)
	require.NoError(t, window.Close())

	sink := newSink()
	open(t, w, sink, Options{})
	require.Empty(t, slices.Collect(sink.Sense(signals.Query{Operation: old})))
	require.Empty(t, slices.Collect(sink.Sense(signals.Query{Source: "a:b#1/orders"})))
	var origins []persistentwindow.Origin
	for _, s := range shown(sink) {
		require.Zero(t, s.Operation)
		o, ok := persistentwindow.OriginOf(s)
		require.True(t, ok)
		require.Equal(t, s.Source, fmt.Sprintf("boot:%x:%d:%d:%s", o.Boot, o.Seq, uint64(o.Operation), o.Source))
		origins = append(origins, o)
	}
	boot := origins[0].Boot
	require.Equal(t, []persistentwindow.Origin{{boot, origins[0].Seq, "", 0}, {boot, origins[1].Seq, "a:b#1/orders", old}}, origins)
	for _, source := range []string{"", "orders", "boot:", "boot:x:1:2:", "boot:1:2:3", "boot:1:-2:3:x"} {
		_, ok := persistentwindow.OriginOf(signals.Signal{Source: source})
		require.False(t, ok, source)
	}
}

// Retracted signals are deleted, even if they were restored, or wait for a flush. Held
// signals are never stored, because nothing in the next process would release them.
func TestRetractedAndHeldSignalsAreNotRestored(t *testing.T) {
	w, first := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, first, Options{})
	release := first.Hold("held", "", 0)
	for _, name := range []string{"a", "b", "c"} {
		first.Raise(name)
	}
	first.Retract("a")
	require.NoError(t, window.Flush(t.Context()))
	first.Retract("b")
	release()
	require.NoError(t, window.Close())
	require.Equal(t, []string{"c"}, stored(t, w))

	second := newSink()
	window = open(t, w, second, Options{})
	require.Equal(t, 1, second.Retract("c"))
	require.NoError(t, window.Close())
	require.Empty(t, stored(t, w))
}

// Of each name, the first signal after a flush is stored, and then every n-th.
func TestSampleRate(t *testing.T) {
	w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, sink, Options{SampleRate: 3})
	for i := range 5 {
		sink.RaiseKey("a", fmt.Sprint(i))
	}
	sink.Raise("b")
	require.NoError(t, window.Flush(t.Context()))
	sink.RaiseKey("a", "5")
	require.NoError(t, window.Flush(t.Context()))
	require.Equal(t, []string{"a 0", "a 3", "b", "a 5"}, stored(t, w))
	require.EqualValues(t, 3, window.Stats().Skipped)
}

// Times are integers and UTC, so their order does not depend on a zone.
func TestTimesAreIntegers(t *testing.T) {
	w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
	window := open(t, w, sink, Options{})
	sink.Raise("a")
	require.NoError(t, window.Flush(t.Context()))
	var at int64
	require.NoError(t, w.DB().QueryRow("select time from signals where typeof(time) = 'integer'").Scan(&at))
	require.Equal(t, shown(sink)[0].Time.UTC().UnixNano(), at)
}

func TestOptionsThatAreWrong(t *testing.T) {
	w := openWriter(t, sqlitewriter.Options{})
	for text, opts := range map[string]Options{
		"FlushInterval must be positive, or 0 for 30s, not -1s":     {FlushInterval: -time.Second},
		"MaxQueued must be positive, or 0 for the default, not -2":  {MaxQueued: -2},
		"MaxBatch must be positive, or 0 for the default, not -3":   {MaxBatch: -3},
		"SampleRate must be positive, or 0 for the default, not -4": {SampleRate: -4},
		`digit, not "x\"; drop table users; --"`:                    {Name: `x"; drop table users; --`},
	} {
		_, err := persistentwindow.Open(t.Context(), w, newSink(), opts)
		require.ErrorContains(t, err, text)
	}
	_, err := persistentwindow.Open(t.Context(), nil, newSink(), Options{})
	require.ErrorContains(t, err, "needs a Writer")
	core.Must(w.Exec(t.Context(), "create table signals(x)"))
	_, err = persistentwindow.Open(t.Context(), w, newSink(), Options{})
	require.ErrorContains(t, err, `persistentwindow: "signals" in `+w.Path())
}

// Close flushes, and may be called at any time, any number of times and from everywhere. Its error
// is the error of the flush. A later Close can succeed.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		w := openWriter(t, sqlitewriter.Options{Sink: sink})
		window := open(t, w, sink, Options{})
		sink.Raise("a")
		core.Must(w.Exec(t.Context(), "alter table signals rename to gone"))
		require.ErrorContains(t, window.Close(), "no such table")
		require.ErrorIs(t, window.Flush(t.Context()), core.ErrClosed)
		core.Must(w.Exec(t.Context(), "alter table gone rename to signals"))
		sink.Raise("too late")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { assert.NoError(t, window.Close()) })
		}
		all.Wait()
		require.Equal(t, []string{"a"}, stored(t, w))

		for i, during := range []string{"b", persistentwindow.Flushed.Name(), sqlitewriter.SignalWriting, sqlitewriter.Written.Name()} {
			name := fmt.Sprint("round", i)
			window := open(t, w, sink, Options{Pattern: name + ",b"})
			var once sync.Once
			cancel := sink.Subscribe(during, func(signals.Signal) {
				once.Do(func() {
					if during != "b" {
						assert.ErrorIs(t, window.Flush(context.Background()), core.ErrWouldDeadlock, during)
					}
					sink.Raise(name)
					assert.NoError(t, window.Close(), during)
				})
			})
			sink.Raise("b")
			_ = window.Flush(t.Context()) // the window may be closed
			synctest.Wait()
			cancel()
			require.NoError(t, window.Close())
			require.Contains(t, stored(t, w), name, during)
		}
	})
}

// Two windows of one sink, one after the other or at once, store a signal once.
func TestWindowsOnOneSinkStoreOnce(t *testing.T) {
	w, sink := openWriter(t, sqlitewriter.Options{}), newSink()
	one, two := open(t, w, sink, Options{}), open(t, w, sink, Options{})
	sink.Raise("a")
	require.NoError(t, one.Close())
	require.NoError(t, two.Close())
	three := open(t, w, sink, Options{})
	require.NoError(t, three.Flush(t.Context()))
	require.Equal(t, []string{"a"}, stored(t, w))
	require.Equal(t, []string{"a"}, namesOf(shown(sink)))
}

// A payload whose methods panic.
type mine struct{ N int }

func (m mine) MarshalJSON() ([]byte, error) {
	if m.N == 0 {
		panic("MarshalJSON")
	}
	return fmt.Append(nil, m.N), nil
}
func (m *mine) UnmarshalJSON([]byte) error { panic("UnmarshalJSON") }

// A signal whose payload cannot be encoded or decoded because a method of it panics is stored and restored without it.
func TestPayloadsThatPanic(t *testing.T) {
	w, kind := openWriter(t, sqlitewriter.Options{}), signals.NewKind[mine]("mine")
	opts := Options{Pattern: "mine", Kinds: []persistentwindow.Payload{persistentwindow.JSON(kind)}}
	sink := newSink()
	window := open(t, w, sink, opts)
	kind.Raise(sink, "none", mine{})
	kind.Raise(sink, "one", mine{1})
	require.NoError(t, window.Close())
	assert.Equal(t, []string{"mine none", "mine one"}, stored(t, w))
	again := newSink()
	open(t, w, again, opts)
	facts := shown(again)
	require.Len(t, facts, 2)
	for i, key := range []string{"none", "one"} {
		_, has := kind.From(facts[i])
		assert.Equal(t, key, facts[i].Key)
		assert.False(t, has)
	}
}
