package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/quorum"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// waiting is a Wait on its own goroutine.
type waiting struct {
	mu     sync.Mutex
	result quorum.Result
	err    error
	done   bool
}

// wait starts a Wait, and returns when this waits or is done.
func wait(ctx context.Context, sink *signals.Sink, pattern string, required int, opts quorum.Options) *waiting {
	w := &waiting{}
	go func() {
		result, err := quorum.Wait(ctx, sink, pattern, required, opts)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.result, w.err, w.done = result, err, true
	}()
	synctest.Wait()
	return w
}

func (w *waiting) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// is checks the state of the wait: "waits", "reached", "cancelled", "timed out" or the text
// of an error, and the keys or else names of the votes.
func (w *waiting) is(t *testing.T, how string, votes ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var ways []string
	for way, so := range map[string]bool{
		"waits": !w.done, "reached": w.result.Reached, "cancelled": w.result.By.Name != "", "timed out": w.result.TimedOut,
	} {
		if so {
			ways = append(ways, way)
		}
	}
	if w.err != nil {
		ways = append(ways, w.err.Error())
	}
	var keys []string
	for _, v := range w.result.Votes {
		if v.Key == "" {
			v.Key = v.Name
		}
		keys = append(keys, v.Key)
	}
	got, want := strings.Join(ways, " and "), how
	coretest.Check(t, got == want, "got %s, want %s", got, want)
	coretest.Check(t, slices.Equal(keys, votes), "got votes %q, want %q", keys, votes)
}

// bubble runs a test in a bubble, with a sink, and a context that is cancelled at
// the end.
func bubble(t *testing.T, test func(t *testing.T, ctx context.Context, sink *signals.Sink)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		test(t, ctx, signals.NewSink(signals.SinkOptions{}))
	})
}

// byKey makes keys the voters.
func byKey(vote signals.Signal) string { return vote.Key }

// The wait ends with the last of the signals, and no earlier.
func TestWhoVotesAndWhatEnds(t *testing.T) {
	team := func(vote signals.Signal) string {
		team, _, _ := strings.Cut(vote.Key, "/")
		return team
	}
	user := quorum.Options{Key: "user", CancelOn: "verdict"}
	for name, c := range map[string]struct {
		pattern  string
		required int
		opts     quorum.Options
		raised   []string // name and key
		how      string
		votes    []string
	}{
		"a direct raise is a voter":       {"vote.*", 4, quorum.Options{}, []string{"vote.a user", "vote.b user", "vote.b user", "vote.none "}, "reached", []string{"user", "user", "user", "vote.none"}},
		"names are voters on a key":       {"vote.*", 2, user, []string{"vote.a user", "vote.a user", "vote.b another", "vote.b ", "verdict another", "vote.b user"}, "reached", []string{"user", "user"}},
		"a verdict on the key":            {"vote.*", 2, user, []string{"verdict user"}, "cancelled", nil},
		"a verdict on no key":             {"vote.*", 2, user, []string{"verdict "}, "cancelled", nil},
		"Voter, and an empty one":         {"vote", 4, quorum.Options{Voter: team}, []string{"vote red/ann", "vote red/bob", "vote blue/eve", "vote ", "vote "}, "reached", []string{"red/bob", "blue/eve", "vote", "vote"}},
		"what matches both is not a vote": {"*", 2, quorum.Options{CancelOn: "stop.*, verdict"}, []string{"vote ann", "verdict guilty"}, "cancelled", []string{"ann"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
				w := wait(ctx, sink, c.pattern, c.required, c.opts)
				for _, raised := range c.raised {
					synctest.Wait()
					coretest.Check(t, !w.ended(), "the wait has ended before %q", raised)
					name, key, _ := strings.Cut(raised, " ")
					sink.RaiseKey(name, key)
				}
				sink.RaiseKey("vote", "late")
				w.is(t, c.how, c.votes...)
				if c.how == "cancelled" {
					coretest.Check(t, c.raised[len(c.raised)-1] == w.result.By.Name+" "+w.result.By.Key, "got cancelled by %v, want the verdict", w.result.By)
				}
			})
		})
	}
}

func TestVotersByOperation(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
		c := core.Must(core.NewCoordinator(func(ctx context.Context, votes int) error {
			for range votes {
				core.OperationFrom(ctx).RaiseKey("vote", "the same key")
			}
			return nil
		}, core.Options{Sink: sink}))
		w := wait(ctx, sink, "vote", 3, quorum.Options{})
		for range 2 {
			if err := c.Do(ctx, 5); err != nil {
				t.Fatal(err)
			}
		}
		w.is(t, "waits")
		sink.RaiseKey("vote", "the same key") // a vote without an operation
		w.is(t, "reached", "the same key", "the same key", "the same key")
	})
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
		w := wait(ctx, sink, "vote", 2, quorum.Options{Timeout: time.Minute})
		sink.RaiseKey("vote", "ann")
		time.Sleep(time.Minute - 1)
		w.is(t, "waits")
		time.Sleep(time.Nanosecond)
		w.is(t, "timed out", "ann")
		sink.RaiseKey("vote", "bob")
		w.is(t, "timed out", "ann")
	})
}

// Fault avoided: an ended context is reported as a time-out.
func TestEndedContextIsAnErrorNotATimeout(t *testing.T) {
	bubble(t, func(t *testing.T, _ context.Context, sink *signals.Sink) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := wait(ctx, sink, "vote", 2, quorum.Options{Timeout: time.Minute})
		sink.RaiseKey("vote", "ann")
		cancel(errors.New("gave up"))
		w.is(t, "gave up", "ann")

		w = wait(ctx, sink, "vote", 2, quorum.Options{Timeout: time.Minute})
		w.is(t, "gave up")
		for range 50 {
			w = wait(ctx, sink, "vote", 1, quorum.Options{Within: -1}) // is there already
			w.is(t, "reached", "ann")
		}
	})
}

// Fault avoided: an invalid time-out is noticed after the handler is attached, which
// stays attached.
func TestNothingStaysSubscribed(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
		var asked atomic.Int64
		voter := func(signals.Signal) string { asked.Add(1); return "" }
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for how, opts := range map[string]quorum.Options{
			"reached":               {Voter: voter},
			"cancelled":             {Voter: voter, CancelOn: "vote"},
			"timed out":             {Voter: voter, Timeout: time.Second},
			"context canceled":      {Voter: voter},
			"reached, looking back": {Voter: voter, Within: -1},
			"quorum: Options.Timeout is -1ns, but must not be negative": {Voter: voter, Timeout: -1},
		} {
			if strings.Contains(how, "back") {
				sink.Raise("vote")
			}
			on := ctx
			if how == "context canceled" {
				on = ended
			}
			w := wait(on, sink, "vote", 1, opts)
			switch how {
			case "reached", "cancelled":
				sink.Raise("vote")
			case "timed out":
				time.Sleep(time.Second)
			}
			if how = strings.TrimSuffix(how, ", looking back"); how == "reached" {
				w.is(t, how, "vote")
			} else {
				w.is(t, how)
			}
			before := asked.Load()
			sink.Raise("vote")
			sink.Retract("vote")
			coretest.Check(t, asked.Load() == before, "%s: a handler is left", how)
		}
	})
}

// Fault avoided: votes raised just before the call are invisible.
func TestVotesBeforeTheCallCountWithin(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
		sink.RaiseKey("vote", "ann")
		time.Sleep(time.Second)
		sink.RaiseKey("vote", "bob")
		sink.RaiseKey("vote", "taken back")
		sink.Hold("vote", "held", 0)
		time.Sleep(time.Second)
		for _, tt := range []struct {
			within time.Duration
			want   []string
		}{
			{0, nil},
			{time.Second - 1, nil},
			{time.Second, []string{"bob", "taken back", "held"}},
			{2*time.Second - 1, []string{"bob", "taken back", "held"}},
			{2 * time.Second, []string{"ann", "bob", "taken back", "held"}},
			{-1, []string{"ann", "bob", "taken back", "held"}},
		} {
			begun := time.Now()
			ctx, cancel := context.WithCancelCause(ctx)
			w := wait(ctx, sink, "vote", 100, quorum.Options{Within: tt.within})
			cancel(errors.New("enough"))
			w.is(t, "enough", tt.want...)
			coretest.Check(t, time.Since(begun) == 0, "within %v: took %v", tt.within, time.Since(begun))
		}
	})
}

// Signals that are on the sink count as if they came now, one after the other, before
// signals that are raised while Wait looks back.
func TestLookingBackKeepsTheOrder(t *testing.T) {
	for name, test := range map[string]struct {
		before, meanwhile []string
		how               string
		votes             []string
	}{
		"a verdict after them":     {[]string{"ann", "bob", "verdict", "eve"}, nil, "reached", []string{"ann", "bob"}},
		"a verdict, too late":      {[]string{"ann", "bob"}, []string{"verdict"}, "reached", []string{"ann", "bob"}},
		"a verdict, and the votes": {[]string{"ann"}, []string{"verdict", "bob"}, "cancelled", []string{"ann"}},
		"a vote, too late":         {[]string{"ann", "verdict"}, []string{"bob"}, "cancelled", []string{"ann"}},
		"a vote":                   {[]string{"ann"}, []string{"bob", "verdict"}, "reached", []string{"ann", "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
				raise := func(keys []string) {
					for _, key := range keys {
						if key == "verdict" {
							sink.Raise(key)
						} else {
							sink.RaiseKey("vote", key)
						}
					}
				}
				raise(test.before)
				lookingBack := true
				voter := func(vote signals.Signal) string {
					if lookingBack {
						lookingBack = false
						raise(test.meanwhile)
					}
					return vote.Key
				}
				opts := quorum.Options{CancelOn: "verdict", Within: -1, Voter: voter}
				wait(ctx, sink, "vote", 2, opts).is(t, test.how, test.votes...)
			})
		})
	}
}

func TestVotesThatAreTakenBackDoNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, sink *signals.Sink) {
		w := wait(ctx, sink, "vote", 3, quorum.Options{})
		release := sink.Hold("vote", "held", 0)
		sink.RaiseKey("vote", "ann")
		sink.Retract("vote")
		release()
		sink.RaiseKey("vote", "bob")
		sink.RaiseKey("vote", "eve")
		w.is(t, "waits")
		sink.RaiseKey("vote", "ann")
		w.is(t, "reached", "bob", "eve", "ann")
		sink.Retract("vote")
		w.is(t, "reached", "bob", "eve", "ann")
	})
}

// Fault avoided: the set of voters is changed by concurrent raisers without a lock.
// A vote that is raised while Wait looks back and subscribes counts, once.
func TestConcurrentVotersAreCountedOnce(t *testing.T) {
	const voters, rounds = 8, 50
	for range rounds {
		sink := signals.NewSink(signals.SinkOptions{})
		var all sync.WaitGroup
		for i := range voters {
			all.Go(func() {
				runtime.Gosched()
				sink.RaiseKey("vote", fmt.Sprint(i))
				sink.RaiseKey("vote", fmt.Sprint(i))
			})
		}
		result, err := quorum.Wait(t.Context(), sink, "vote", voters, quorum.Options{Voter: byKey, Within: -1})
		got, want := fmt.Sprint(err, result.Reached, len(result.Votes)), fmt.Sprint(nil, true, voters)
		coretest.Check(t, got == want, "got error, reached and votes %s, want %s", got, want)
		all.Wait()
	}
}

func TestOptions(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	for want, c := range map[string]struct {
		sink     *signals.Sink
		pattern  string
		required int
		opts     quorum.Options
	}{
		"sink is nil":             {nil, "vote", 1, quorum.Options{}},
		`votes is " ,"`:           {sink, " ,", 1, quorum.Options{}},
		"0 votes are required":    {sink, "vote", 0, quorum.Options{}},
		"Options.Timeout is -1ns": {sink, "vote", 1, quorum.Options{Timeout: -1}},
	} {
		if _, err := quorum.Wait(t.Context(), c.sink, c.pattern, c.required, c.opts); err == nil || !strings.HasPrefix(err.Error(), "quorum: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
