package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
)

var all = logging.HandlerOptions{Level: slog.Level(math.MinInt)}

// logs lists the signals of the family on the sink, by name.
func logs(sink *signals.Sink) (names []string, last logging.Record) {
	for s, r := range logging.Log.Sense(sink, signals.Query{}) {
		names, last = append(names, s.Name), r
	}
	return names, last
}

func TestSlogtest(t *testing.T) {
	var sink *signals.Sink
	slogtest.Run(t, func(*testing.T) slog.Handler {
		sink = signals.NewSink(signals.SinkOptions{})
		return logging.NewHandler(sink, all)
	}, func(*testing.T) map[string]any {
		_, r := logs(sink)
		m := asMap(r.Attrs)
		m[slog.LevelKey], m[slog.MessageKey] = r.Level, r.Message
		if !r.Time.IsZero() {
			m[slog.TimeKey] = r.Time
		}
		return m
	})
}

func asMap(attrs []slog.Attr) map[string]any {
	m := map[string]any{}
	for _, a := range attrs {
		if m[a.Key] = a.Value.Any(); a.Value.Kind() == slog.KindGroup {
			m[a.Key] = asMap(a.Value.Group())
		}
	}
	return m
}

type myError[T any] struct{}

func (*myError[T]) Error() string { panic("on purpose") }
func (*myError[T]) Unwrap() error { panic("on purpose") }

// later is no failure, like durable.Snooze.
type later struct{}

func (later) Error() string { return "later" }
func (later) Failed() bool  { return false }

func TestNames(t *testing.T) {
	notExist := &fs.PathError{Err: fs.ErrNotExist}
	var none *myError[int]
	for want, log := range map[string]func(*slog.Logger){
		"log.info.none.none":                func(l *slog.Logger) { l.Info("") },
		"log.error.orders.dbfailure":        func(l *slog.Logger) { l.Error("", "category", "orders", "event", "DbFailure", "err", fs.ErrExist) },
		"log.error.my-app-orders.db-fail-1": func(l *slog.Logger) { l.Error("", "category", "My.App.Orders", "event", "_DB  fail:1*,?") },
		"log.debug.grösse.1001":             func(l *slog.Logger) { l.Debug("", "category", "GRÖSSE", "event", 1001) },
		"log.warn.http.x":                   func(l *slog.Logger) { l.WithGroup("HTTP").WithGroup("in").Warn("", "event", "x") },
		"log.warn.orders.y": func(l *slog.Logger) {
			l.With("category", "a").WithGroup("b").With("category", "orders").Warn("", "event", "y")
		},
		"log.info.none.none:patherror": func(l *slog.Logger) { l.Info("", "err", fmt.Errorf("a: %w", notExist)) },
		"log.info.none.z:myerror": func(l *slog.Logger) {
			l.With("err", none).Info("", "event", "z", slog.Group("g", "event", "no", "err", notExist))
		},
		"log.info.none.later": func(l *slog.Logger) { l.Info("", "event", "later", "err", later{}) },
		"log.trace.none.none": func(l *slog.Logger) { l.Log(context.TODO(), slog.Level(-100), "") },
		"log.critical.none.none": func(l *slog.Logger) {
			l.Log(context.TODO(), slog.Level(100), "", "err", errors.Join(notExist, notExist))
		},
		"log.warn.none.none":  func(l *slog.Logger) { l.Log(context.TODO(), slog.LevelWarn+1, "") },
		"log.critical.none.x": func(l *slog.Logger) { l.Log(context.TODO(), math.MaxInt, "", "event", "x") },
		"log.trace.none.x":    func(l *slog.Logger) { l.Log(context.TODO(), math.MinInt, "", "event", "x") },
	} {
		sink := signals.NewSink(signals.SinkOptions{})
		log(slog.New(logging.NewHandler(sink, all)))
		names, _ := logs(sink)
		require.Equal(t, []string{want}, names)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("My.App", "DB Failure:*", 8)
	f.Fuzz(func(t *testing.T, category, event string, level int) {
		sink := signals.NewSink(signals.SinkOptions{})
		h := logging.NewHandler(sink, logging.HandlerOptions{Level: slog.Level(level)})
		slog.New(h).Log(t.Context(), slog.Level(level), "", "category", category, "event", event, "err", fs.ErrExist)
		names, _ := logs(sink)
		require.Len(t, names, 1)
		require.Len(t, strings.Split(names[0], "."), 4)
		require.Equal(t, strings.ToLower(names[0]), names[0])
	})
}

func TestRecordKeepsWhatWasLogged(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	base := slog.New(logging.NewHandler(sink, logging.HandlerOptions{})).With("a", 1)
	a, b := base.With("b", 2), base.With("b", 3)
	b.Info("other")
	a.Debug("below the level")
	a.Info("hello", "event", "Up", "err", fmt.Errorf("x: %w", &fs.PathError{Err: fs.ErrExist}))
	names, r := logs(sink)
	require.Len(t, names, 2)
	require.Equal(t, "hello", r.Message)
	require.Equal(t, "Up", r.Event)
	require.Equal(t, "fs.PathError", r.ErrorType)
	require.Equal(t, "[a=1 b=2 event=Up err=x:  : file already exists]", fmt.Sprint(r.Attrs))
	require.ErrorIs(t, r.Attrs[3].Value.Any().(error), fs.ErrExist, "values are kept")
	require.True(t, strings.HasSuffix(slog.Record{PC: r.PC}.Source().Function, "TestRecordKeepsWhatWasLogged"), "the PC is kept")
}

func TestReplaceAttr(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	logger := slog.New(logging.NewHandler(sink, logging.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == "bug":
			panic(a.Value)
		case a.Key == "gone":
			return slog.Attr{}
		case slices.Equal(groups, []string{"user", "login"}), a.Key == slog.MessageKey, a.Key == "event":
			return slog.String(a.Key, "REDACTED")
		}
		return a
	}}))
	logger.WithGroup("user").With("gone", 1).Info("secret", "bug", "secret", "event", "secret", slog.Group("login", "password", "secret"))
	names, r := logs(sink)
	require.Equal(t, []string{"log.info.user.redacted"}, names)
	require.Equal(t, "REDACTED", r.Message)
	require.Equal(t, map[string]any{"user": map[string]any{"bug": "!PANIC", "event": "REDACTED", "login": map[string]any{"password": "REDACTED"}}}, asMap(r.Attrs))
}

func TestTheOperationInTheContextIsTheRaiser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		logger := slog.New(logging.NewHandler(sink, all))
		var inside context.Context
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			inside = ctx
			logger.InfoContext(ctx, "")
			logger.InfoContext(ctx, "", "event", "E")
			core.OperationFrom(ctx).SetKey("k")
			logger.InfoContext(ctx, "")
			return nil
		}, core.Options{Name: "c", Sink: sink}))
		id := core.Must(c.Enqueue(signals.CausedBy(t.Context(), signals.Signal{Name: "order.received"}), 0))
		require.NoError(t, c.Wait(t.Context(), id))
		op, _ := c.Lookup(id)
		var keys []string
		for _, s := range op.Signals {
			keys = append(keys, s.Key)
			require.Equal(t, "c", s.Source)
			require.Equal(t, []string{"order.received", s.Name}, s.Path())
		}
		require.Equal(t, []string{"", "E", "k"}, keys)
		require.Equal(t, 3, sink.Count("log.*"))

		require.NoError(t, c.Close()) // the operation leaves the window
		logger.InfoContext(inside, "late")
		names, r := logs(sink)
		require.Len(t, names, 1)
		require.Equal(t, "late", r.Message, "there is still the sink")
	})
}

func TestNeverFailsTheCaller(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	logger := slog.New(logging.NewHandler(sink, all))
	sink.Subscribe("log.*", func(signals.Signal) { panic("on purpose") })
	logger.Info("", "v", panics{}, "category", panics{})
	require.EqualValues(t, 1, sink.Stats().Panics)
	require.Equal(t, 1, sink.Count("log.info.*"))
	sink.Subscribe("log.error.*", func(signals.Signal) { logger.Error("on purpose") })
	logger.Error("") // the loop ends
	require.Less(t, sink.Count("log.error.*"), 100)
}

type panics struct{}

func (panics) LogValue() slog.Value { panic("on purpose") }

func TestBelowTheLevelNothingIsAllocated(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	logger := slog.New(logging.NewHandler(signals.NewSink(signals.SinkOptions{}), logging.HandlerOptions{}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		logger.LogAttrs(t.Context(), slog.LevelDebug, "", slog.Int("n", 1000), slog.Any("err", fs.ErrExist))
	}))
}

// forgetful drops the context, as a handler with a queue may do.
type forgetful struct{ slog.Handler }

func (f forgetful) Handle(_ context.Context, r slog.Record) error {
	return f.Handler.Handle(context.Background(), r)
}

func TestBothDirectionsOnOneLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, forgets := range []bool{false, true} {
			sink, other := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
			var out bytes.Buffer
			var h slog.Handler = slog.NewMultiHandler(slog.NewJSONHandler(&out, nil), logging.NewHandler(sink, all))
			if forgets {
				h = forgetful{h}
			}
			logger := slog.New(h)
			coretest.NothingLeft(t, sink, func() {
				defer sink.Forward(other, "log.*")() // the payload goes along
				a := core.Must(logging.NewBridge(sink, logger.Handler(), logging.BridgeOptions{}))
				b := core.Must(logging.NewBridge(other, logger.Handler(), logging.BridgeOptions{}))
				logger.Error("logged")
				sink.Raise("raised")
				synctest.Wait()
				require.NoError(t, core.InOrder(a, b).Drain(t.Context()))
			})
			require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
			if names, _ := logs(sink); !forgets {
				require.Equal(t, []string{"log.error.none.none"}, names)
			}
		}
	})
}

// If a logged error starts a job, and the job logs an error itself, this does not loop for ever.
func TestJobsThatLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		logger := slog.New(logging.NewHandler(sink, all))
		for _, name := range []string{"a", "b"} {
			jobs := core.Must(core.NewCoordinator(func(ctx context.Context, _ signals.Signal) error {
				logger.ErrorContext(ctx, "failed", "event", name)
				return nil
			}, core.Options{Name: name, Sink: sink}))
			defer sink.Subscribe("log.error.*", func(s signals.Signal) {
				core.Must(jobs.Enqueue(signals.CausedBy(t.Context(), s), s))
			})()
		}
		logger.Error("first")
		synctest.Wait()
		require.Equal(t, 5, sink.Count("log.error.*"), "none, a, b, b because of a, and a because of b")
	})
}

// slow is a handler that waits for a signal and then records its records.
type slow struct {
	slog.Handler
	gate chan error
	got  []string
}

func (s *slow) Enabled(context.Context, slog.Level) bool { return true }

func (s *slow) Handle(_ context.Context, r slog.Record) error {
	err := <-s.gate
	s.got = append(s.got, r.Level.String()+" "+r.Message)
	return err
}

// The first part of a name with a level decides the level of a signal. Later parts, and the
// text after the colon, do not matter.
func TestLevelOf(t *testing.T) {
	for name, want := range map[string]string{
		"durable.failed": "ERROR", "job.failed:orders:timeout": "ERROR", "operation.panicked": "ERROR", "durable.lease.lost": "ERROR", "retry.budget.exhausted": "ERROR",
		"write.error": "ERROR", "http.error:503": "ERROR", "log.error.orders.dbfailure": "ERROR", "Critical.x": "ERROR+4", "debug.failed": "DEBUG",
		"circuit.open.payment": "WARN", "circuit.half_open.error": "WARN", "schedule.missed": "WARN", "coordinator.forced": "WARN", "processor.unhealthy:pri1": "WARN",
		"circuit.closed.failed": "INFO", "job.retry:orders:1": "INFO unknown", "processor.healthy:pri1": "INFO", "rate.limit.recovered": "INFO",
		"order.placed": "INFO unknown", "failedness": "INFO unknown", "order.placed:failed": "INFO unknown", "log.x": "INFO unknown", "": "INFO unknown",
	} {
		level, known := logging.LevelOf(name)
		require.Equal(t, strings.TrimSuffix(want, " unknown"), level.String(), name)
		require.Equal(t, !strings.HasSuffix(want, "unknown"), known, name)
	}
}

func TestBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		h := &slow{gate: make(chan error, 20)}
		bridge := core.Must(logging.NewBridge(sink, h, logging.BridgeOptions{MaxQueued: 9}))
		for _, name := range []string{"error", "dropped", "dropped", "log.error.orders.dbfailure", "WARNING:x", "Trace.x", "fatal.x", ".x", "log.x", "debug", "errors.x", "circuit.open.x"} {
			sink.Raise(name) // the raise does not wait
			synctest.Wait()
		}
		h.gate <- errors.New("on purpose")
		close(h.gate)
		require.NoError(t, bridge.Drain(t.Context()))
		require.Equal(t, []string{"ERROR error", "ERROR log.error.orders.dbfailure", "WARN WARNING:x", "DEBUG-4 Trace.x", "ERROR+4 fatal.x", "INFO .x", "INFO log.x", "DEBUG debug", "INFO errors.x", "WARN circuit.open.x"}, h.got)
		stats := bridge.Stats()
		require.EqualValues(t, []uint64{1, 9, 2}, []uint64{stats.Failed, stats.Succeeded, stats.Dropped})

		own := func(signals.Signal) slog.Level { return slog.LevelWarn }
		bridge = core.Must(logging.NewBridge(sink, h, logging.BridgeOptions{Pattern: "*.failed", Level: own, Name: "mine"}))
		sink.Raise("order.failed")
		sink.Raise("log.error.orders.dbfailure")
		require.NoError(t, bridge.Drain(t.Context()))
		require.Equal(t, "WARN order.failed", h.got[10])
		require.Len(t, h.got, 11)
		require.Equal(t, "mine", bridge.Name())
	})
	_, err := logging.NewBridge(nil, nil, logging.BridgeOptions{})
	require.EqualError(t, err, "logging: NewBridge needs a sink and a handler")
	require.Panics(t, func() { logging.NewHandler(nil, all) })
}
