package coretest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// recorder is a testing.TB that remembers failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) FailNow()          { runtime.Goexit() }
func (r *recorder) Skip(...any)       { runtime.Goexit() }

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprint(args...))
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	r.FailNow()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.failures, "\n")
}

// record runs fn with a recorder in the current bubble and returns what failed.
func record(t *testing.T, fn func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, fn := range r.cleanups {
				fn()
			}
		}()
		fn(r)
	}()
	<-done
	return r.text()
}

// sound makes a subject that keeps all promises.
func sound(t testing.TB) Subject {
	c, err := core.NewCoordinator(Run, core.Options{MaxConcurrency: 2})
	if err != nil {
		t.Fatal(err)
	}
	return Subject{
		Lifecycle: c,
		Submit: func(ctx context.Context, body Body) error {
			_, err := c.Enqueue(ctx, body)
			return err
		},
		Pause: c.Pause, Resume: c.Resume, Sink: c.Sink(), Stats: c.Stats, WaitIdle: c.WaitIdle,
	}
}

// broken overrides some of the methods of a sound subject.
type broken struct {
	core.Lifecycle
	complete     func()
	flush, drain func(context.Context) error
	stop         func(context.Context) error
	close        func() error
}

func (b *broken) Complete()                       { b.complete() }
func (b *broken) Flush(ctx context.Context) error { return b.flush(ctx) }
func (b *broken) Drain(ctx context.Context) error { return b.drain(ctx) }
func (b *broken) Stop(ctx context.Context) error  { return b.stop(ctx) }
func (b *broken) Close() error                    { return b.close() }

// breakIt makes a factory of subjects that are sound but for what spoil does.
func breakIt(spoil func(s *Subject, b *broken)) func(testing.TB) Subject {
	return func(t testing.TB) Subject {
		s := sound(t)
		l := s.Lifecycle
		b := &broken{l, l.Complete, l.Flush, l.Drain, l.Stop, l.Close}
		s.Lifecycle = b
		spoil(&s, b)
		return s
	}
}

// wrap lets the bodies of a subject run inside a function.
func (s *Subject) wrap(around func(ctx context.Context, body Body) error) {
	submit := s.Submit
	s.Submit = func(ctx context.Context, body Body) error {
		return submit(ctx, func(ctx context.Context) error { return around(ctx, body) })
	}
}

// once returns a func that is nil the first time and then returns again's error.
func once(first func() error, again error) func() error {
	var called atomic.Bool
	return func() error {
		if called.Swap(true) {
			return again
		}
		return first()
	}
}

// onlyFirst lets only the first call wait.
func onlyFirst(fn wait) wait {
	var called atomic.Bool
	return func(ctx context.Context) error {
		if called.Swap(true) {
			return nil
		}
		return fn(ctx)
	}
}

// closing closes the subject when its context ends.
func closing(fn wait, b *broken) wait {
	return func(ctx context.Context) error {
		err := fn(ctx)
		if err != nil {
			b.Lifecycle.Close()
		}
		return err
	}
}

// failing fails when it has waited.
func failing(fn wait) wait {
	return func(ctx context.Context) error { fn(ctx); return core.ErrClosed }
}

// brokenSubject is a subject that breaks a promise, and the case that must notice.
type brokenSubject struct {
	name    string
	noticed string // name of the case
	says    string // part of the failure
	spoil   func(s *Subject, b *broken)
}

// brokenWaits are brokenSubjects whose methods that wait have one fault each.
func brokenWaits() (list []brokenSubject) {
	for _, w := range waits {
		spoil := func(how func(wait) wait) func(*Subject, *broken) {
			return func(s *Subject, b *broken) {
				method := map[string]*wait{"Drain": &b.drain, "Stop": &b.stop, "Flush": &b.flush, "WaitIdle": &s.WaitIdle}[w.name]
				*method = how(*method)
			}
		}
		list = append(list, brokenSubject{
			w.name + " ignores its context", "deadline passes during " + w.name, w.name + ": it did not return within 24h0m0s",
			spoil(func(fn wait) wait {
				return func(ctx context.Context) error { return fn(context.WithoutCancel(ctx)) }
			}),
		}, brokenSubject{
			w.name + " ended by Close fails", "Close during " + w.name, w.name + ": got error core: coordinator is closed", spoil(failing),
		}, brokenSubject{
			w.name + " from a body gives up", w.name + " from a body", "context deadline exceeded, want core: operation would wait for itself",
			spoil(func(fn wait) wait {
				return func(ctx context.Context) error {
					if err := fn(ctx); err != core.ErrWouldDeadlock {
						return err
					}
					return context.DeadlineExceeded
				}
			}),
		})
	}
	return list
}

var errTwice = errors.New("called twice")

// brokenSubjects break a promise each.
var brokenSubjects = append(brokenWaits(), []brokenSubject{
	{"close twice fails", "any call after close", "called twice", func(s *Subject, b *broken) { b.close = once(b.Lifecycle.Close, errTwice) }},
	{"close of an unused one waits", "close unused", "Close took 1m0s", func(s *Subject, b *broken) {
		b.close = func() error { time.Sleep(time.Minute); return b.Lifecycle.Close() }
	}},
	{"drain twice fails", "drain", "called twice", func(s *Subject, b *broken) {
		again := once(func() error { return nil }, errTwice)
		b.drain = func(ctx context.Context) error {
			return errors.Join(b.Lifecycle.Drain(ctx), again())
		}
	}},
	{"complete twice panics", "complete twice", "close of closed channel", func(s *Subject, b *broken) {
		c := make(chan struct{})
		b.complete = func() { close(c); b.Lifecycle.Complete() }
	}},
	{"drain after close fails", "any call after close", "Drain: got error", func(s *Subject, b *broken) {
		closed := false
		b.close = func() error { closed = true; return b.Lifecycle.Close() }
		b.drain = func(ctx context.Context) error {
			if closed {
				return core.ErrClosed
			}
			return b.Lifecycle.Drain(ctx)
		}
	}},
	{"a late item gets another error", "complete twice", "Submit: got error late", func(s *Subject, b *broken) {
		submit := s.Submit
		s.Submit = func(ctx context.Context, body Body) error {
			if submit(ctx, body) != nil {
				return errors.New("late")
			}
			return nil
		}
	}},
	{"drain leaves the intake open", "drain", "Submit: got error <nil>", func(s *Subject, b *broken) { b.drain = b.Lifecycle.Flush }},
	{"drain does not wait", "drain", "Drain returned, want it to wait", func(s *Subject, b *broken) {
		b.drain = func(context.Context) error { b.Lifecycle.Complete(); return nil }
	}},
	{"a second drain does not wait", "drain", "want it to wait", func(s *Subject, b *broken) { b.drain = onlyFirst(b.Lifecycle.Drain) }},
	{"drain returns not the cause", "deadline passes during Drain", "want out of patience", func(s *Subject, b *broken) {
		b.drain = func(ctx context.Context) error {
			if b.Lifecycle.Drain(ctx) != nil {
				return ctx.Err()
			}
			return nil
		}
	}},
	{"a drain that gives up cancels", "deadline passes during Drain", "the body was ended by a Drain that gave up", func(s *Subject, b *broken) { b.drain = closing(b.Lifecycle.Drain, b) }},
	{"stop runs what waits", "stop", "Stop cancelled 0 items, want the", func(s *Subject, b *broken) { b.stop = b.Lifecycle.Drain }},
	{"stop cancels what runs", "stop", "bodies that ran, want none", func(s *Subject, b *broken) {
		b.stop = func(context.Context) error { return b.Lifecycle.Close() }
	}},
	{"stop leaves the intake open", "stop", "a body ran that came too late", func(s *Subject, b *broken) { b.stop = b.Lifecycle.Flush }},
	{"a second stop does not wait", "stop twice", "Stop returned, want it to wait", func(s *Subject, b *broken) { b.stop = onlyFirst(b.Lifecycle.Stop) }},
	{"stop while paused waits for resume", "stop while paused", "Stop: it did not return", func(s *Subject, b *broken) { b.stop = b.Lifecycle.Drain }},
	{"a flush that gives up closes the intake", "deadline passes during Flush", "is closed", func(s *Subject, b *broken) { b.flush = b.Lifecycle.Drain }},
	{"flush closes the intake", "flush", "is closed", func(s *Subject, b *broken) { b.flush = b.Lifecycle.Drain }},
	{"flushes share one generation", "flush", "late Flush returned, want", func(s *Subject, b *broken) {
		var mu sync.Mutex
		var current chan struct{}
		b.flush = func(ctx context.Context) error {
			mu.Lock()
			wait := current
			if wait == nil {
				wait = make(chan struct{})
				current = wait
				go func() {
					b.Lifecycle.Flush(context.Background())
					mu.Lock()
					current = nil
					mu.Unlock()
					close(wait)
				}()
			}
			mu.Unlock()
			<-wait
			return nil
		}
	}},
	{"idle without the children", "wait until idle", "WaitIdle returned, want it to wait", func(s *Subject, b *broken) { s.WaitIdle = b.Lifecycle.Flush }},
	{"OnDone is called twice", "any call after close", "OnDone was called 2 times for 1 items", func(s *Subject, b *broken) {
		stats := s.Stats
		s.Told = func() uint64 { return 2 * stats().Enqueued }
	}},
	{"close does not wait", "close cancels what runs", "while a body was still running", func(s *Subject, b *broken) {
		b.close = func() error { go b.Lifecycle.Close(); return nil }
	}},
	{"close cancels with another cause", "close cancels what runs", "ended with the cause context canceled", func(s *Subject, b *broken) {
		s.wrap(func(ctx context.Context, body Body) error {
			inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
			defer context.AfterFunc(ctx, cancel)()
			return body(inner)
		})
	}},
	{"a second close does not wait", "close from many goroutines", "Close returned, want it to wait", func(s *Subject, b *broken) {
		first := onlyFirst(func(context.Context) error { return b.Lifecycle.Close() })
		b.close = func() error { return first(context.Background()) }
	}},
	{"an item waits for the close", "close from many goroutines", "Submit: it did not return", func(s *Subject, b *broken) {
		submit := s.Submit
		s.Submit = func(ctx context.Context, body Body) error {
			err := submit(ctx, body)
			if err != nil {
				time.Sleep(2 * patience)
			}
			return err
		}
	}},
	{"accepted items run after close", "items wait for room while closing", "bodies were started after Close", func(s *Subject, b *broken) {
		s.wrap(func(ctx context.Context, body Body) error {
			err := body(ctx)
			time.AfterFunc(time.Second, func() { body(ctx) })
			return err
		})
	}},
	{"close from a body waits for itself", "close from a body", "Close from a body: it did not return", func(s *Subject, b *broken) {
		var running sync.WaitGroup
		s.wrap(func(ctx context.Context, body Body) error {
			running.Add(1)
			defer running.Done()
			return body(ctx)
		})
		b.close = func() error {
			idle := make(chan struct{})
			go func() { running.Wait(); close(idle) }()
			select {
			case <-idle:
			case <-time.After(2 * patience): // so that the test ends
			}
			return b.Lifecycle.Close()
		}
	}},
	{"complete from a body panics", "complete from a body", "add up to", func(s *Subject, b *broken) {
		b.complete = func() { b.Lifecycle.Complete(); panic("from a body") }
		stats := s.Stats
		s.Stats = func() core.Stats { // and the accounts are wrong
			st := stats()
			st.Enqueued += st.Failed
			return st
		}
	}},
	{"drain from a body closes the intake", "Drain from a body", "Submit: got error", func(s *Subject, b *broken) {
		b.drain = func(ctx context.Context) error {
			b.Lifecycle.Complete()
			return b.Lifecycle.Drain(ctx)
		}
	}},
	{"close from a handler fails", "close from a handler", "Close from a handler: got error called twice", func(s *Subject, b *broken) {
		b.close = once(b.Lifecycle.Close, errTwice)
		s.Sink.Subscribe("coretest.close", func(signals.Signal) { b.close() })
	}},
	{"close from a handler waits for bodies", "close from a handler, beside a body", "Raise: it did not return", func(s *Subject, b *broken) {
		b.close = func() error {
			b.Lifecycle.Close()
			return b.Lifecycle.Flush(context.Background())
		}
	}},
	{"drain while paused fails", "drain while paused", "Drain with a deadline: got error paused", func(s *Subject, b *broken) {
		paused := false
		pause, resume := s.Pause, s.Resume
		s.Pause = func() { paused = true; pause() }
		s.Resume = func() { paused = false; resume() }
		b.drain = func(ctx context.Context) error {
			if paused {
				return errors.New("paused")
			}
			return b.Lifecycle.Drain(ctx)
		}
	}},
	{"close while paused runs what waits", "close while paused", "a body was run after Close", func(s *Subject, b *broken) {
		b.close = func() error {
			s.Resume()
			b.Lifecycle.Drain(context.Background())
			return b.Lifecycle.Close()
		}
	}},
	{"a panic ends everything", "bodies fail and panic", "did not return", func(s *Subject, b *broken) {
		died := false
		submit := s.Submit
		s.Submit = func(ctx context.Context, body Body) error {
			if died {
				return nil
			}
			return submit(ctx, func(ctx context.Context) error {
				defer func() {
					if r := recover(); r != nil {
						died = true
						panic(r)
					}
				}()
				return body(ctx)
			})
		}
		b.flush = func(ctx context.Context) error {
			err := b.Lifecycle.Flush(ctx)
			if died {
				time.Sleep(2 * patience)
			}
			return err
		}
	}},
	{"under load an answer is odd", "everything at once", "got error odd", func(s *Subject, b *broken) {
		b.flush = func(ctx context.Context) error {
			if err := b.Lifecycle.Flush(ctx); err != nil && core.OperationFrom(ctx) == nil && err != core.ErrWouldDeadlock {
				return errors.New("odd")
			}
			return core.ErrWouldDeadlock
		}
	}},
}...)

func TestSuiteNoticesBrokenSubjects(t *testing.T) {
	cases := make(map[string]lifecycleCase)
	unproven := make(map[string]bool)
	for _, c := range lifecycleCases {
		cases[c.name] = c
		unproven[c.name] = true
	}
	for _, b := range brokenSubjects {
		delete(unproven, b.noticed)
		t.Run(b.name, func(t *testing.T) {
			c, ok := cases[b.noticed]
			if !ok {
				t.Fatalf("there is no case %q", b.noticed)
			}
			synctest.Test(t, func(t *testing.T) {
				got := record(t, func(t testing.TB) { c.run(t, breakIt(b.spoil)) })
				time.Sleep(3 * patience) // what hangs on purpose ends
				Check(t, strings.Contains(got, b.says) && strings.Contains(got, "rule: "+c.rule), "the failure says\n%s\nwant it to contain %q and the rule %q", got, b.says, c.rule)
			})
		})
	}
	for name := range unproven {
		t.Errorf("no broken subject proves that the case %q can fail", name)
	}
}

// A subject that offers only what is required is tested by the other cases.
func TestSuiteSkipsMissingFields(t *testing.T) {
	bare := func(t testing.TB) Subject {
		s := sound(t)
		return Subject{Lifecycle: s.Lifecycle, Submit: s.Submit}
	}
	RunLifecycle(t, bare)
}

// A goroutine left behind fails its case by the bubble's own means.
func TestSuiteNoticesGoroutineLeft(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	leaky := func(t testing.TB) Subject {
		s := sound(t)
		inBubble := make(chan struct{})
		go func() { <-inBubble }()
		return s
	}
	var got any
	func() {
		defer func() { got = recover() }()
		synctest.Test(t, func(t *testing.T) {
			record(t, func(t testing.TB) { lifecycleCases[0].run(t, leaky) })
		})
	}()
	if text := fmt.Sprint(got); !strings.Contains(text, "blocked goroutines remain") {
		t.Errorf("got %v, want the bubble to report a goroutine that remains", got)
	}
}

func TestSubjectNeedsSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := record(t, func(t testing.TB) {
			lifecycleCases[0].run(t, func(testing.TB) Subject { return Subject{} })
		})
		if want := "a Subject needs a Lifecycle and Submit"; !strings.Contains(got, want) {
			t.Errorf("got %q, want it to contain %q", got, want)
		}
	})
}

func TestCheckBooks(t *testing.T) {
	if err := CheckBooks(core.Stats{Enqueued: 8, Pending: 1, Running: 1, Suspended: 1, Succeeded: 1, Failed: 1, Cancelled: 1, Refused: 1, Dropped: 1}); err != nil {
		t.Errorf("got %v for books that balance", err)
	}
	for _, s := range []core.Stats{{Enqueued: 1}, {Running: 1}, {Enqueued: 0, Pending: -1, Running: 1}} {
		Check(t, CheckBooks(s) != nil, "got no error for %v", s)
	}
}

func TestWatch(t *testing.T) {
	var w *Watcher
	sink := signals.NewSink(signals.SinkOptions{})
	check := func(want string, fn func()) {
		t.Helper()
		r := &recorder{TB: t}
		w.t = r
		fn()
		if got := r.text(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got failure %q, want it to contain %q", got, want)
		}
	}
	w = Watch(t, sink, "order.*")
	raise := func(names ...string) {
		for _, name := range names {
			sink.Raise(name)
		}
	}

	check("", func() { w.None() })
	raise("order.placed", "noise", "order.paid", "order.sent")
	check("", func() { w.Expect("order.placed", "order.sent") })
	check("", func() { w.None() })

	raise("order.placed", "order.paid")
	check("", func() { w.Expect("order.p*") })
	check("got: order.paid\nwant: (none)", func() { w.None() })
	check("", func() { w.None() }) // reported once

	raise("order.paid", "order.placed")
	check(`"order.paid" was not raised in this order`, func() { w.Expect("order.placed", "order.paid") })
	check("", func() { w.None() })

	raise("order.placed", "order.paid")
	check("got: order.placed order.paid\nwant: order.placed, exactly", func() { w.ExpectExactly("order.placed") })
	raise("order.placed", "order.paid")
	check("", func() {
		got := w.ExpectExactly("order.placed", "order.paid")
		Check(t, len(got) == 2 && got[1].Name == "order.paid", "got %v, want the two signals", got)
	})
}

// The recording ends with the test.
func TestWatchEndsWithTest(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	var w *Watcher
	record(t, func(t testing.TB) { w = Watch(t, sink, "*") })
	sink.Raise("too late")
	w.t = t
	w.None()
}
