package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

type order struct{ ID, Customer string }

func (o order) Key() string { return o.Customer }

var placed = signals.NewKind[order]("order.placed")

var errDown = errors.New("down")

// scene is a runner in a bubble, with the notes of its handlers.
type scene struct {
	*jobs.Runner
	t       *testing.T
	sink    *signals.Sink
	begun   time.Time
	mu      sync.Mutex
	notes   []string
	running atomic.Int64
	most    int64
}

// stage starts jobs in a bubble.
func stage(t *testing.T, opts core.Options, declared func(*scene) []jobs.Job, play func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, sink: signals.NewSink(signals.SinkOptions{}), begun: time.Now()}
		if opts.MaxConcurrency == 0 {
			opts.MaxConcurrency = 8
		}
		var err error
		s.Runner, err = jobs.New(s.sink, declared(s), opts)
		require.NoError(t, err)
		defer s.Close()
		play(s)
	})
}

// note notes something with the time since the beginning.
func (s *scene) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf("%v %s", time.Since(s.begun), fmt.Sprintf(format, args...)))
}

// noted returns the notes when all goroutines wait for time to pass.
func (s *scene) noted() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes
	s.notes = nil
	return notes
}

func (s *scene) expect(notes ...string) {
	s.t.Helper()
	assert.Equal(s.t, notes, s.noted())
}

// does returns a handler that notes its name and the key, takes d, and counts how many run.
func (s *scene) does(name string, d time.Duration, result ...error) core.Handler {
	calls := 0
	return func(ctx context.Context, signal signals.Signal) error {
		s.note("%s %s", name, signal.Key)
		s.mu.Lock()
		s.most = max(s.most, s.running.Add(1))
		calls++
		n := calls
		s.mu.Unlock()
		defer s.running.Add(-1)
		time.Sleep(d)
		if n <= len(result) {
			return result[n-1]
		}
		return nil
	}
}

// one declares one job.
func one(trigger string, do func(*scene) core.Handler, opts jobs.Options) func(*scene) []jobs.Job {
	return func(s *scene) []jobs.Job { return []jobs.Job{jobs.On(trigger, do(s), opts)} }
}

func takes(d time.Duration, result ...error) func(*scene) core.Handler {
	return func(s *scene) core.Handler { return s.does("ran", d, result...) }
}

func (s *scene) raise(name string, keys ...string) {
	for _, key := range keys {
		s.sink.RaiseKey(name, key)
	}
}

// Each option and each default works as documented. Fault avoided: runs without a key ran one after
// the other, and the lane still limited a job without a key and without a limit.
func TestOptions(t *testing.T) {
	const second = time.Second
	fails := []error{errDown, errDown, errDown, errDown, errDown}
	keyed := func(opts jobs.Options) func(*scene) []jobs.Job { return one("go", takes(second), opts) }
	for name, c := range map[string]struct {
		jobs func(*scene) []jobs.Job
		play func(*scene)
		want []string
	}{
		"trigger, a pattern": {one("go.*,run", takes(0), jobs.Options{Name: "a"}), func(s *scene) { s.raise("go.on", "1"); s.raise("run", "2"); s.raise("go", "3") },
			[]string{"0s ran 1", "0s ran 2"}},
		"no key, limit 1": {keyed(jobs.Options{}), func(s *scene) { s.raise("go", "1", "2"); time.Sleep(3 * second) },
			[]string{"0s ran 1", "1s ran 2"}},
		"limit 2": {keyed(jobs.Options{MaxConcurrency: 2}), func(s *scene) { s.raise("go", "", "", ""); time.Sleep(3 * second) },
			[]string{"0s ran ", "0s ran ", "1s ran "}},
		"no limit": {keyed(jobs.Options{MaxConcurrency: -1}), func(s *scene) { s.raise("go", "", "", "") },
			[]string{"0s ran ", "0s ran ", "0s ran "}},
		"key of the signal, no key is no order": {keyed(jobs.Options{Lane: "io", MaxConcurrency: -1, Key: jobs.SignalKey}), func(s *scene) { s.raise("go", "", "a", "", "a"); time.Sleep(3 * second) },
			[]string{"0s ran ", "0s ran ", "0s ran a", "1s ran a"}},
		"fixed key": {keyed(jobs.Options{Lane: "io", MaxConcurrency: -1, Key: fixedKey("x")}), func(s *scene) { s.raise("go", "a", "b"); time.Sleep(3 * second) },
			[]string{"0s ran a", "1s ran b"}},
		"key of the payload": {func(s *scene) []jobs.Job {
			return []jobs.Job{jobs.OnKindKeyed(placed, order.Key, func(ctx context.Context, _ signals.Signal, o order) error {
				assert.Equal(t, o.Customer, core.OperationFrom(ctx).Key())
				s.note("%s of %s", o.ID, o.Customer)
				time.Sleep(second)
				return nil
			}, jobs.Options{MaxConcurrency: -1})}
		}, func(s *scene) {
			s.raise("order.placed", "without a payload")
			placed.Raise(s.sink, "", order{"1", "ann"})
			placed.Raise(s.sink, "", order{"2", "ann"})
			time.Sleep(2 * second)
		}, []string{"0s 1 of ann", "1s 2 of ann"}},
		"a family": {func(s *scene) []jobs.Job {
			return []jobs.Job{jobs.OnKind(signals.NewFamily[int]("n.*"), func(_ context.Context, _ signals.Signal, n int) error { s.note("%d", n); return nil }, jobs.Options{Name: "n"})}
		}, func(s *scene) {
			signals.NewKind[int]("n.a").Raise(s.sink, "", 7)
			signals.NewKind[string]("n.b").Raise(s.sink, "", "x")
		}, []string{"0s 7"}},
		"priority, lowest first": {func(s *scene) []jobs.Job {
			job := func(name string, priority int) jobs.Job {
				return jobs.On("go", s.does(name, second), jobs.Options{Name: name, Priority: priority, Key: fixedKey("k")})
			}
			return []jobs.Job{job("last", 2), job("second", 1), job("third", 1), job("first", -1)}
		}, func(s *scene) { s.raise("go", ""); time.Sleep(5 * second) }, []string{"0s first ", "1s second ", "2s third ", "3s last "}},
		"retries, and signals of failures": {one("go", takes(0, fails...), jobs.Options{MaxRetries: 2, RetryDelay: 4 * second, MaxRetryDelay: 4 * second,
			EmitOnStart: "started", EmitOnComplete: "done", EmitOnFailure: "failed, lost"}),
			func(s *scene) { s.raise("go", "k"); time.Sleep(time.Minute) },
			[]string{"started", "job.retry:go:1", "job.retry:go:2", "failed", "lost", "job.failed:go:errors.errorString"}},
		"success after a retry": {one("go", takes(0, errDown), jobs.Options{MaxRetries: 2, EmitOnStart: "started", EmitOnComplete: "done", EmitOnFailure: "failed"}),
			func(s *scene) { s.raise("go", "k"); time.Sleep(time.Minute) }, []string{"started", "job.retry:go:1", "done"}},
		"no retries": {one("go", takes(0, fails...), jobs.Options{}), func(s *scene) {
			s.raise("go", "k")
			synctest.Wait()
			assert.EqualValues(t, 1, s.Stats().Failed)
		}, []string{"job.failed:go:errors.errorString"}},
		"retries of some errors": {one("go", takes(0, errDown, fs.ErrNotExist), jobs.Options{MaxRetries: 5, RetryIf: func(err error) bool { return errors.Is(err, errDown) }}),
			func(s *scene) { s.raise("go", "k"); time.Sleep(time.Minute) }, []string{"job.retry:go:1", "job.failed:go:errors.errorString"}},
		"timeout of an attempt": {one("go", takes(2*second), jobs.Options{Timeout: second, MaxRetries: 1}), func(s *scene) { s.raise("go", "k"); time.Sleep(time.Minute) },
			[]string{"job.retry:go:1", "job.failed:go:timeout"}},
		"await, all of them": {one("go", takes(0), jobs.Options{Await: []string{"a.*", "b"}}), func(s *scene) {
			s.raise("b", "")
			s.raise("go", "1")
			time.Sleep(second)
			assert.Empty(t, s.noted())
			s.raise("a.b", "")
		}, []string{"1s ran 1"}},
		"await a key": {one("go", takes(0), jobs.Options{MaxConcurrency: -1, Await: []string{"ready"}, AwaitSameKey: true}), func(s *scene) {
			s.raise("ready", "0")
			s.raise("go", "1", "2", "0", "")
			s.expect("0s ran 0")
			s.raise("ready", "3", "2")
			s.expect("0s ran 2")
			s.raise("ready", "", "1")
		}, []string{"0s ran ", "0s ran 1"}},
		"await with a timeout": {one("go", takes(0), jobs.Options{Await: []string{"ready"}, AwaitTimeout: second, EmitOnStart: "started"}),
			func(s *scene) { s.raise("go", "k"); time.Sleep(time.Minute) }, []string{"job.failed:go:timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, core.Options{}, c.jobs, func(s *scene) {
				facts := coretest.Watch(s.t, s.sink, "started, done, failed, lost, job.*")
				c.play(s)
				if strings.Contains(c.want[0], "s ") {
					assert.ElementsMatch(t, c.want, s.noted())
					return
				}
				synctest.Wait()
				for _, signal := range facts.ExpectExactly(c.want...) {
					assert.Equal(t, "k", signal.Key, "the key of the trigger")
					assert.NotZero(t, signal.Operation, "raised by the run")
					assert.Equal(t, "go", signal.Path()[0], "caused by the trigger")
				}
			})
		})
	}
}

// Fault avoided: pins and their expiry did nothing. ExpireAfter also says how long the
// operation is visible without a pin.
func TestPinAndExpireAfter(t *testing.T) {
	for name, c := range map[string]struct {
		opts    jobs.Options
		visible time.Duration // after the end
		ack     bool
	}{
		"neither":        {jobs.Options{}, 5 * time.Minute, false},
		"pinned":         {jobs.Options{Pin: true, ExpireAfter: -1}, 24 * time.Hour, false},
		"acknowledged":   {jobs.Options{Pin: true, ExpireAfter: -1}, 10 * time.Minute, true},
		"pin expires":    {jobs.Options{Pin: true, ExpireAfter: time.Hour}, time.Hour, false},
		"shorter":        {jobs.Options{ExpireAfter: time.Minute}, time.Minute, false},
		"longer":         {jobs.Options{ExpireAfter: time.Hour}, time.Hour, false},
		"with a failure": {jobs.Options{ExpireAfter: time.Hour, Name: "fails"}, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			var id core.OperationID
			do := func(s *scene) core.Handler {
				return func(ctx context.Context, _ signals.Signal) error {
					id = core.OperationFrom(ctx).ID()
					if c.opts.Name == "fails" {
						return errDown
					}
					return nil
				}
			}
			stage(t, core.Options{}, one("go", do, c.opts), func(s *scene) {
				s.raise("go", "")
				time.Sleep(c.visible - 1)
				synctest.Wait()
				_, visible := s.Lookup(id)
				assert.True(t, visible, "just before %v", c.visible)
				if c.ack {
					s.sink.RaiseKey("responsibility.ack.read", id.String())
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				_, visible = s.Lookup(id)
				assert.Equal(t, c.opts.ExpireAfter < 0 && !c.ack, visible, "after %v", c.visible)
				time.Sleep(time.Hour) // timers of the bubble
			})
		})
	}
}

// A lane has a limit. The first lane is the highest, both for given lanes and for lanes that jobs
// name.
func TestLanes(t *testing.T) {
	for name, c := range map[string]struct {
		given string
		lanes [3]string // lanes of three jobs; the last job runs first
		want  []string  // names and limits
	}{
		"none":                 {"", [3]string{}, nil},
		"named by jobs":        {"", [3]string{"hot", "cold", "hot:2"}, []string{"hot 2", "cold 0"}},
		"one without a lane":   {"", [3]string{"hot:2", "", "cold"}, []string{"hot 2", "normal 0", "cold 0"}},
		"given":                {"a:3, normal, b", [3]string{"b", "a:3", ""}, []string{"a 3", "normal 0", "b 0"}},
		"given without front":  {"a, b", [3]string{"b", "", "a"}, []string{"a 0", "b 0"}},
		"given, no plain name": {"a:b", [3]string{"a:b"}, []string{"a:b 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := core.Options{MaxConcurrency: 1}
			if c.given != "" {
				if opts.Lanes, _ = core.ParseLanes(c.given); opts.Lanes == nil {
					opts.Lanes = []core.Lane{{Name: c.given}}
				}
			}
			stage(t, opts, func(s *scene) (all []jobs.Job) {
				for i, lane := range c.lanes {
					all = append(all, jobs.On("go", s.does(fmt.Sprint(i), time.Second), jobs.Options{Name: fmt.Sprint(i), Lane: lane}))
				}
				return all
			}, func(s *scene) {
				var got []string
				for _, l := range s.Stats().Lanes {
					got = append(got, fmt.Sprint(l.Name, " ", l.Limit))
				}
				assert.Equal(t, c.want, got)
				s.raise("go", "")
				require.NoError(t, s.Drain(s.t.Context()))
				assert.Len(t, s.noted(), 3)
			})
		})
	}
}

// Fault avoided: a job could not replace a value of its group by the default value; a prefix could
// double a dot.
func TestGroup(t *testing.T) {
	do := func(context.Context, signals.Signal) error { return nil }
	all := jobs.Group{Prefix: "stage.", Lane: "io:2", MaxConcurrency: 3}.Jobs(
		jobs.On(".ingest, .parse", do, jobs.Options{Name: "a"}),
		jobs.On("finalize", do, jobs.Options{Name: "b", Lane: "hot", MaxConcurrency: 1}),
		jobs.OnKind(placed, func(context.Context, signals.Signal, order) error { return nil }, jobs.Options{Name: "c", MaxConcurrency: -1}))
	r, err := jobs.New(signals.NewSink(signals.SinkOptions{}), all, core.Options{})
	require.NoError(t, err)
	defer r.Close()
	var got []string
	for _, j := range r.Jobs() {
		got = append(got, fmt.Sprint(j.Name, " ", j.Trigger, " ", j.Lane, " ", j.MaxConcurrency))
	}
	assert.Equal(t, []string{"a stage.ingest,stage.parse io 3", "b stage.finalize hot 1", "c order.placed io 0"}, got)
}

// Fault avoided: mistakes were found when the first signal came, or never.
func TestNewSaysWhatIsWrong(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	do := func(context.Context, signals.Signal) error { return nil }
	typed := func(context.Context, signals.Signal, order) error { return nil }
	on := func(trigger string, opts jobs.Options) []jobs.Job { return []jobs.Job{jobs.On(trigger, do, opts)} }
	both := func(a, b jobs.Options) []jobs.Job { return append(on("x", a), on("x", b)...) }
	for want, c := range map[string]struct {
		jobs []jobs.Job
		opts core.Options
	}{
		`another sink`:                                      {jobs: on("a", jobs.Options{}), opts: core.Options{Sink: signals.NewSink(signals.SinkOptions{})}},
		`Options.Classes must be empty`:                     {jobs: on("a", jobs.Options{}), opts: core.Options{Classes: []core.Class{{Name: "c", Limit: 1}}}},
		`job "a": the name is used twice`:                   {jobs: both(jobs.Options{Name: "a"}, jobs.Options{Name: "a"})},
		`the name "a.*" is empty, or has wildcards`:         {jobs: on("a.*", jobs.Options{})},
		`job "a": the trigger " , " matches no signal`:      {jobs: on(" , ", jobs.Options{Name: "a"})},
		`job "a": the handler is nil`:                       {jobs: []jobs.Job{jobs.On("a", nil, jobs.Options{})}},
		`job "order.placed": the handler is nil`:            {jobs: []jobs.Job{jobs.OnKind[order](placed, nil, jobs.Options{})}},
		`Options.Key is set, but the key is made`:           {jobs: []jobs.Job{jobs.OnKindKeyed(placed, order.Key, typed, jobs.Options{Key: jobs.SignalKey})}},
		`job "order.placed": the key function is nil`:       {jobs: []jobs.Job{jobs.OnKindKeyed[order, string](placed, nil, typed, jobs.Options{})}},
		`job "a": it raises "b.c", which sets it off again`: {jobs: on("b.*", jobs.Options{Name: "a", EmitOnComplete: "x, b.c"})},
		`it raises "b*", but a name has no wildcards`:       {jobs: on("a", jobs.Options{EmitOnFailure: "b*"})},
		`the lane "hot:abc" is not a name`:                  {jobs: on("a", jobs.Options{Lane: "hot:abc"})},
		`the lane "hot:0" is not a name`:                    {jobs: on("a", jobs.Options{Lane: "hot:0"})},
		`the limit of its lane "hot" is 3 here, and 4`:      {jobs: both(jobs.Options{Name: "a", Lane: "hot:4"}, jobs.Options{Name: "b", Lane: "hot:3"})},
		`the lane "cold" is none of Options.Lanes`:          {jobs: on("a", jobs.Options{Lane: "cold"}), opts: core.Options{Lanes: []core.Lane{{Name: "hot"}}}},
		`the limit of its lane "hot" is 3 here, and 0`:      {jobs: on("a", jobs.Options{Lane: "hot:3"}), opts: core.Options{Lanes: []core.Lane{{Name: "hot"}}}},
		`no signal matches an empty pattern`:                {jobs: on("a", jobs.Options{Await: []string{"x", " "}})},
		`AwaitTimeout is 1s and AwaitSameKey false`:         {jobs: on("a", jobs.Options{AwaitTimeout: time.Second})},
		`it awaits signals, but Options.MaxSuspended is -1`: {jobs: on("a", jobs.Options{Await: []string{"x"}}), opts: core.Options{MaxSuspended: -1}},
		`MaxRetries is 0, but RetryDelay`:                   {jobs: on("a", jobs.Options{RetryDelay: time.Second})},
		`MaxRetryDelay is 1s, but must not be less than`:    {jobs: on("a", jobs.Options{MaxRetries: 1, RetryDelay: time.Minute, MaxRetryDelay: time.Second})},
		`ExpireAfter is -1ns, but only a pin`:               {jobs: on("a", jobs.Options{ExpireAfter: -1})},
		`core: Options.MaxConcurrency is -1`:                {jobs: on("a", jobs.Options{}), opts: core.Options{MaxConcurrency: -1}},
	} {
		r, err := jobs.New(sink, c.jobs, c.opts)
		assert.Nil(t, r)
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "jobs: ")
	}
	_, err := jobs.New(nil, on("a", jobs.Options{}), core.Options{})
	assert.ErrorContains(t, err, "jobs: the sink is nil")
	assert.Zero(t, sink.Stats().Handlers)
}

func fixedKey(key string) func(signals.Signal) string {
	return func(signals.Signal) string { return key }
}
