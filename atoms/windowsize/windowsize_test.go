package windowsize_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/windowsize"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

const (
	sizeApplied  = windowsize.SignalSizeApplied
	sizeRejected = windowsize.SignalSizeRejected
	timeApplied  = windowsize.SignalTimeApplied
	timeRejected = windowsize.SignalTimeRejected
)

func newSink(capacity int, maxAge time.Duration) *core.Sink {
	return core.NewSink(core.SinkOptions{Capacity: capacity, MaxAge: maxAge})
}

func newResizer(t testing.TB, sink *core.Sink, opts windowsize.Options) *windowsize.Resizer {
	t.Helper()
	r, err := windowsize.New(sink, opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

func window(sink *core.Sink) windowsize.Window {
	s := sink.Stats()
	return windowsize.Window{Capacity: s.Capacity, MaxAge: s.MaxAge}
}

// Weak point: the commands are parsed and then do nothing.
func TestCommandsReallyChangeTheWindow(t *testing.T) {
	const start = time.Minute
	for command, want := range map[string]windowsize.Window{
		"window.size.set:500":          {Capacity: 500, MaxAge: start},
		"window.size.set: 500 ":        {Capacity: 500, MaxAge: start},
		"window.size.increase:100":     {Capacity: 300, MaxAge: start},
		"window.size.decrease:100":     {Capacity: 100, MaxAge: start},
		"app.window.size.set:200":      {Capacity: 200, MaxAge: start},
		"a.b.c.window.size.set:300":    {Capacity: 300, MaxAge: start},
		"window.size.set:1000000":      {Capacity: 50_000, MaxAge: start},
		"window.size.set:0":            {Capacity: 16, MaxAge: start},
		"window.size.increase:1000000": {Capacity: 50_000, MaxAge: start},
		"window.size.decrease:1000000": {Capacity: 16, MaxAge: start},
		"window.time.set:30s":          {Capacity: 200, MaxAge: 30 * time.Second},
		"window.time.set:30S":          {Capacity: 200, MaxAge: 30 * time.Second},
		"window.time.set:10m":          {Capacity: 200, MaxAge: 10 * time.Minute},
		"window.time.set:1h":           {Capacity: 200, MaxAge: time.Hour},
		"window.time.set:30000ms":      {Capacity: 200, MaxAge: 30 * time.Second},
		"window.time.set:1m30s":        {Capacity: 200, MaxAge: 90 * time.Second},
		"window.time.set:00:05:00":     {Capacity: 200, MaxAge: 5 * time.Minute},
		"window.time.set:0:5:7.25":     {Capacity: 200, MaxAge: 5*time.Minute + 7250*time.Millisecond},
		"window.time.set:1.00:00:00":   {Capacity: 200, MaxAge: time.Hour},
		"window.time.set:1ms":          {Capacity: 200, MaxAge: 5 * time.Second},
		"window.time.set:1000h":        {Capacity: 200, MaxAge: time.Hour},
		"window.time.increase:30s":     {Capacity: 200, MaxAge: 90 * time.Second},
		"window.time.decrease:30s":     {Capacity: 200, MaxAge: 30 * time.Second},
		"window.time.increase:2h":      {Capacity: 200, MaxAge: time.Hour},
		"window.time.decrease:2h":      {Capacity: 200, MaxAge: 5 * time.Second},
	} {
		sink := newSink(200, start)
		signals := coretest.Watch(t, sink, "window.*.applied, window.*.rejected")
		r := newResizer(t, sink, windowsize.Options{})
		sink.Raise(command)
		assert.Equal(t, want, window(sink), command)

		applied := sizeApplied
		if strings.Contains(command, "time") {
			applied = timeApplied
		}
		s := signals.ExpectExactly(applied)[0]
		assert.Equal(t, "windowsize", s.Key)
		assert.Equal(t, []string{command, applied}, s.Path(), "caused by the command")
		e := s.Payload().(windowsize.Event)
		assert.Equal(t, command, e.Command)
		assert.Equal(t, windowsize.Window{Capacity: 200, MaxAge: start}, e.From)
		assert.Equal(t, want, e.To)
		assert.NoError(t, e.Err)
		assert.Equal(t, r.Stats().Clamped == 1, e.Clamped)
		clamped := strings.Contains(command, "000") && !strings.Contains(command, "30000ms") || strings.Contains(command, "2h") ||
			strings.HasSuffix(command, ":0") || strings.HasSuffix(command, ":1ms") || strings.Contains(command, "1.00")
		assert.Equal(t, clamped, e.Clamped, command)
	}
}

// Weak point: a bare number is read as days, and 10m, which the documentation uses, is
// rejected. Weak point: malformed payloads are ignored silently.
func TestMalformedPayloadsAreRejectedAloud(t *testing.T) {
	sizes := []string{"", " ", "x", "-5", "+5", "1.5", "1e3", "5 0", "0x10", "١٢", "window.size.set:5"}
	times := []string{"", " ", "30", "-30s", "+30s", "1.5s", "s", "30x", "30us", "30 s", "1d", "30s5", "00:05", "00:60:00", "00:00:60",
		"00:5:", ":05:00", "a:b:c", "1:2:3:4", "00:005:00", "1.24:00:00", ".1:00:00", "00:00:00.", "00:00:00.1234567890", "00:00:-1", "５s"}
	cases := map[string]string{}
	for _, p := range sizes {
		for _, c := range []string{windowsize.CommandSizeSet, windowsize.CommandSizeIncrease, windowsize.CommandSizeDecrease} {
			cases[c+":"+p] = sizeRejected
		}
	}
	for _, p := range times {
		for _, c := range []string{windowsize.CommandTimeSet, windowsize.CommandTimeIncrease, windowsize.CommandTimeDecrease} {
			cases[c+":"+p] = timeRejected
		}
	}
	sink := newSink(200, time.Minute)
	r := newResizer(t, sink, windowsize.Options{Name: "shared"})
	signals := coretest.Watch(t, sink, "window.*.applied, window.*.rejected")
	for command, rejected := range cases {
		sink.Raise(command)
		s := signals.ExpectExactly(rejected)[0]
		assert.Equal(t, "shared", s.Key)
		e := s.Payload().(windowsize.Event)
		assert.Equal(t, command, e.Command)
		assert.ErrorContains(t, e.Err, "windowsize: ")
		assert.Equal(t, e.From, e.To)
	}
	assert.Equal(t, windowsize.Window{Capacity: 200, MaxAge: time.Minute}, window(sink))
	assert.Equal(t, windowsize.Stats{Rejected: uint64(len(cases))}, r.Stats())

	sink.Raise(windowsize.CommandTimeSet + ":" + strings.Repeat("x", 10_000))
	e := signals.ExpectExactly(timeRejected)[0].Payload().(windowsize.Event)
	assert.Less(t, len(e.Err.Error()), 200, "what others have written may be of any length")
}

// Weak point: the search for a command has no word boundary, and a payload that contains
// another command matches that one too.
func TestWhatIsNoCommand(t *testing.T) {
	sink := newSink(200, time.Minute)
	r := newResizer(t, sink, windowsize.Options{})
	signals := coretest.Watch(t, sink, "window.*.applied, window.*.rejected")
	for _, name := range []string{
		"rewindow.size.set:5", "window.size.set", "window.size.sets:5", "xwindow.time.set:5s", "window.size:5", "window-size-set:5",
		"Window.Size.Set:5", sizeApplied + ":5", timeRejected + ":5s",
	} {
		sink.Raise(name)
	}
	signals.None()
	sink.Raise("window.time.set:window.size.set:20")
	signals.ExpectExactly(timeRejected)
	sink.Raise("window.size.set:20.window.time.set:30s")
	signals.ExpectExactly(sizeRejected)
	assert.Equal(t, windowsize.Window{Capacity: 200, MaxAge: time.Minute}, window(sink))
	assert.Equal(t, windowsize.Stats{Rejected: 2}, r.Stats())
}

// The signals it raises are not commands, whatever it is called and wherever they go.
func TestAnswersAreNotCommands(t *testing.T) {
	sink := newSink(200, time.Minute)
	r := newResizer(t, sink, windowsize.Options{Name: "window.size.set:17"})
	sink.RaiseKey("window.size.set:100", "window.size.set:17")
	sink.RaiseKey("window.size.set:x", "window.size.set:17")
	assert.Equal(t, windowsize.Stats{Applied: 1, Rejected: 1}, r.Stats())
	assert.Equal(t, 100, window(sink).Capacity)
}

// A loop through somebody else's handler is ended by the sink, because the answers name
// their cause.
func TestLoopsThroughOthersEnd(t *testing.T) {
	sink := newSink(200, time.Minute)
	r := newResizer(t, sink, windowsize.Options{})
	cancel := sink.Subscribe(sizeApplied, func(s core.Signal) { sink.Because(s).Raise("window.size.increase:1") })
	defer cancel()
	sink.Raise("window.size.increase:1")
	assert.Equal(t, windowsize.Stats{Applied: 1}, r.Stats())
	assert.Equal(t, uint64(1), sink.Stats().Blocked)
}

func TestKeyedCommands(t *testing.T) {
	one, two := newSink(200, 0), newSink(200, 0)
	defer one.Forward(two, "window.size.set:*")()
	newResizer(t, one, windowsize.Options{Name: "one"})
	newResizer(t, two, windowsize.Options{Name: "two"})
	capacities := func() [2]int { return [2]int{window(one).Capacity, window(two).Capacity} }
	for _, c := range []struct {
		key  string
		want [2]int
	}{
		{"one", [2]int{20, 200}},
		{"two", [2]int{20, 21}},
		{"three", [2]int{20, 21}},
		{"t*", [2]int{20, 21}},
		{"", [2]int{24, 24}},
	} {
		n := 20
		switch c.key {
		case "two":
			n = 21
		case "":
			n = 24
		}
		one.RaiseKey(fmt.Sprintf("%s:%d", windowsize.CommandSizeSet, n), c.key)
		assert.Equal(t, c.want, capacities(), c.key)
	}
}

func TestCommandsOfAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink(200, 0)
		newResizer(t, sink, windowsize.Options{})
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: sink}))
		require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("window.size.set:300")
			return nil
		}))
		assert.Equal(t, 300, window(sink).Capacity)
		require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("customer")
			op.Raise("window.size.set:400") // for a Resizer of that name
			assert.Equal(t, 300, window(sink).Capacity)
			op.RaiseKey("window.size.set:400", "windowsize")
			return nil
		}))
		assert.Equal(t, 400, window(sink).Capacity)
		require.NoError(t, c.Close())
	})
}

// Shrinking drops the oldest first, by number and by age.
func TestShrinkingDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink(200, time.Minute)
		r := newResizer(t, sink, windowsize.Options{})
		for i := range 100 {
			sink.RaiseKey("fact", fmt.Sprint(i))
			time.Sleep(100 * time.Millisecond)
		}
		newest := func() (first, last string, n int) {
			for s := range sink.Sense(core.Query{Pattern: "fact"}) {
				if n++; n == 1 {
					first = s.Key
				}
				last = s.Key
			}
			return
		}
		assert.Equal(t, 21, r.SetCapacity(21))
		first, last, n := newest()
		assert.Equal(t, "80", first, "the answer takes a place as well")
		assert.Equal(t, "99", last)
		assert.Equal(t, 20, n)

		r.SetCapacity(200)
		for i := 100; i < 200; i++ {
			sink.RaiseKey("fact", fmt.Sprint(i))
			time.Sleep(100 * time.Millisecond)
		}
		assert.Equal(t, 5*time.Second, r.SetMaxAge(time.Second))
		first, last, n = newest()
		assert.Equal(t, "151", first, "the one before is exactly five seconds old")
		assert.Equal(t, "199", last)
		assert.Equal(t, 49, n)
	})
}

func TestMethods(t *testing.T) {
	sink := newSink(200, time.Minute)
	signals := coretest.Watch(t, sink, "window.*")
	r := newResizer(t, sink, windowsize.Options{})
	assert.Equal(t, 500, r.SetCapacity(500))
	assert.Equal(t, 16, r.SetCapacity(-1))
	assert.Equal(t, 116, r.AddCapacity(100))
	assert.Equal(t, 100, r.AddCapacity(-16))
	assert.Equal(t, 50_000, r.AddCapacity(math.MaxInt))
	assert.Equal(t, 16, r.AddCapacity(math.MinInt))
	assert.Equal(t, 16, r.AddCapacity(0))
	assert.Equal(t, 2*time.Minute, r.SetMaxAge(2*time.Minute))
	assert.Equal(t, 5*time.Second, r.SetMaxAge(0))
	add := func(delta, want time.Duration) {
		t.Helper()
		got, err := r.AddMaxAge(delta)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	add(time.Second, 6*time.Second)
	add(-time.Second, 5*time.Second)
	add(math.MaxInt64, time.Hour)
	add(math.MinInt64, 5*time.Second)
	want := []string{}
	for i := range 13 {
		want = append(want, sizeApplied)
		if i >= 7 {
			want[i] = timeApplied
		}
	}
	raised := signals.ExpectExactly(want...)
	assert.Equal(t, windowsize.Event{
		From:    windowsize.Window{Capacity: 500, MaxAge: time.Minute},
		To:      windowsize.Window{Capacity: 16, MaxAge: time.Minute},
		Clamped: true,
	}, raised[1].Payload())
	e, ok := core.NewKind[windowsize.Event](timeApplied).From(raised[12])
	assert.True(t, ok)
	assert.Equal(t, 5*time.Second, e.To.MaxAge)
	assert.Equal(t, windowsize.Stats{Applied: 13, Clamped: 6}, r.Stats())
	assert.Equal(t, "windowsize", r.Name())
	assert.Same(t, sink, r.Sink())
}

// A window that was made larger or smaller than the bounds is not changed against the
// sense of what is asked for.
func TestBeyondTheBounds(t *testing.T) {
	sink := newSink(100_000, 2*time.Hour)
	r := newResizer(t, sink, windowsize.Options{})
	assert.Equal(t, windowsize.Window{Capacity: 100_000, MaxAge: 2 * time.Hour}, window(sink), "New changes nothing")
	assert.Equal(t, 100_000, r.AddCapacity(1))
	age, err := r.AddMaxAge(1)
	assert.NoError(t, err)
	assert.Equal(t, 2*time.Hour, age)
	assert.Equal(t, 50_000, r.AddCapacity(-1))
	age, _ = r.AddMaxAge(-1)
	assert.Equal(t, time.Hour, age)

	sink = newSink(4, time.Second)
	r = newResizer(t, sink, windowsize.Options{})
	assert.Equal(t, 4, r.AddCapacity(-1))
	assert.Equal(t, 4, r.AddCapacity(0))
	age, _ = r.AddMaxAge(-1)
	assert.Equal(t, time.Second, age)
	assert.Equal(t, 16, r.AddCapacity(1))
	age, _ = r.AddMaxAge(1)
	assert.Equal(t, 5*time.Second, age)
}

// Without a limit there is nothing to add to: it is not made shorter by an increase.
func TestNoLimitOfAge(t *testing.T) {
	sink := newSink(200, 0)
	r := newResizer(t, sink, windowsize.Options{})
	signals := coretest.Watch(t, sink, "window.*.applied, window.*.rejected")
	for _, delta := range []time.Duration{time.Minute, -time.Minute} {
		d, err := r.AddMaxAge(delta)
		assert.Zero(t, d)
		assert.ErrorIs(t, err, windowsize.ErrNoLimit)
	}
	signals.None()
	assert.Zero(t, r.Stats().Rejected, "who calls a method is told")
	sink.Raise("window.time.increase:1m")
	sink.Raise("window.time.decrease:1m")
	for _, s := range signals.ExpectExactly(timeRejected, timeRejected) {
		assert.ErrorIs(t, s.Payload().(windowsize.Event).Err, windowsize.ErrNoLimit)
	}
	assert.Zero(t, window(sink).MaxAge)
	sink.Raise("window.time.set:1m")
	sink.Raise("window.time.increase:1m")
	assert.Equal(t, 2*time.Minute, window(sink).MaxAge)
}

func TestOptions(t *testing.T) {
	sink := newSink(200, time.Minute)
	r := newResizer(t, sink, windowsize.Options{MinCapacity: 100, MaxCapacity: 300, MinAge: time.Second, MaxAge: 2 * time.Minute})
	assert.Equal(t, 100, r.SetCapacity(1))
	assert.Equal(t, 300, r.SetCapacity(1000))
	assert.Equal(t, time.Second, r.SetMaxAge(1))
	assert.Equal(t, 2*time.Minute, r.SetMaxAge(time.Hour))

	r = newResizer(t, sink, windowsize.Options{MinCapacity: -1, MaxCapacity: -1, MinAge: -1, MaxAge: -1})
	assert.Equal(t, 1, r.SetCapacity(0))
	assert.Equal(t, 100_000, r.SetCapacity(100_000))
	assert.Equal(t, time.Duration(1), r.SetMaxAge(0))
	assert.Equal(t, time.Duration(math.MaxInt64), r.SetMaxAge(math.MaxInt64))
	age, err := r.AddMaxAge(1)
	assert.NoError(t, err)
	assert.Equal(t, time.Duration(math.MaxInt64), age)

	for field, opts := range map[string]windowsize.Options{
		"Options.MaxCapacity is 67108865": {MaxCapacity: core.MaxSinkCapacity + 1},
		"Options.MinCapacity is 60000":    {MinCapacity: 60_000},
		"Options.MinCapacity is 16":       {MaxCapacity: 10},
		"Options.MinAge is 2h0m0s":        {MinAge: 2 * time.Hour},
		"Options.MinAge is 5s":            {MaxAge: time.Second},
	} {
		r, err := windowsize.New(sink, opts)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "windowsize: "+field)
	}
	_, err = windowsize.New(nil, windowsize.Options{})
	assert.ErrorContains(t, err, "windowsize: ")
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink(200, 0)
		r := newResizer(t, sink, windowsize.Options{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { assert.NoError(t, r.Close()) })
		}
		all.Wait()
		assert.NoError(t, r.Close())
		sink.Raise("window.size.set:300")
		assert.Equal(t, 200, window(sink).Capacity)
		assert.Equal(t, 300, r.SetCapacity(300), "who has it may still use it")

		r = newResizer(t, sink, windowsize.Options{})
		cancel := sink.Subscribe(sizeApplied, func(core.Signal) { assert.NoError(t, r.Close()) })
		defer cancel()
		sink.Raise("window.size.set:400")
		sink.Raise("window.size.set:500")
		assert.Equal(t, 400, window(sink).Capacity, "closed by a handler")
	})
}

// Changes are not lost, from however many goroutines and Resizers they come.
func TestConcurrentChanges(t *testing.T) {
	sink := newSink(1000, time.Minute)
	one := newResizer(t, sink, windowsize.Options{Name: "one"})
	two := newResizer(t, sink, windowsize.Options{Name: "two"})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 100 {
				switch g {
				case 0:
					one.AddCapacity(3)
				case 1:
					two.AddCapacity(-1)
				case 2:
					sink.RaiseKey("window.time.increase:1s", "one")
				case 3:
					sink.RaiseKey("window.size.increase:1", "two")
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, windowsize.Window{Capacity: 1300, MaxAge: 160 * time.Second}, window(sink))
	assert.Equal(t, windowsize.Stats{Applied: 200}, one.Stats())
	assert.Equal(t, windowsize.Stats{Applied: 200}, two.Stats())
}

// A dull model: a number and its bounds.
func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		opts := windowsize.Options{MinCapacity: 1 + random.IntN(50), MaxCapacity: 50 + random.IntN(200)}
		n := 1 + random.IntN(300)
		sink := newSink(n, 0)
		r := newResizer(t, sink, opts)
		for range 200 {
			v := random.IntN(400)
			old := n
			var command string
			switch random.IntN(3) {
			case 0:
				command, n = windowsize.CommandSizeSet, min(max(v, opts.MinCapacity), opts.MaxCapacity)
			case 1:
				command = windowsize.CommandSizeIncrease
				if v > 0 {
					n = max(old, min(max(old+v, opts.MinCapacity), opts.MaxCapacity))
				}
			case 2:
				command = windowsize.CommandSizeDecrease
				if v > 0 {
					n = min(old, min(max(old-v, opts.MinCapacity), opts.MaxCapacity))
				}
			}
			sink.Raise(fmt.Sprintf("%s:%d", command, v))
			require.Equal(t, n, window(sink).Capacity, "seed %d: %s:%d from %d", seed, command, v, old)
		}
		require.NoError(t, r.Close())
	}
}

// Whatever is raised, the window stays within its bounds, and a command has one answer.
func FuzzCommands(f *testing.F) {
	for _, s := range []string{"window.size.set:500", "app.window.size.increase:1", "window.time.set:00:05:00", "window.time.decrease:1h30m",
		"window.size.set:99999999999999999999", "window.time.set:window.size.set:5", "x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		sink := newSink(200, time.Minute)
		r := core.Must(windowsize.New(sink, windowsize.Options{}))
		defer r.Close()
		sink.Raise(name)
		w, s := window(sink), r.Stats()
		if w.Capacity < 16 || w.Capacity > 50_000 || w.MaxAge < 5*time.Second || w.MaxAge > time.Hour {
			t.Errorf("%q: %+v", name, w)
		}
		answers := uint64(0)
		for signal := range sink.Sense(core.Query{Key: "windowsize"}) {
			if _, ok := signal.Payload().(windowsize.Event); ok {
				answers++
			}
		}
		if s.Applied+s.Rejected > 1 || answers != s.Applied+s.Rejected {
			t.Errorf("%q: %+v, %d answers", name, s, answers)
		}
	})
}
