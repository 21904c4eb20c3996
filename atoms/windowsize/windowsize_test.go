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
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	sizeApplied  = "window.size.applied"
	sizeRejected = "window.size.rejected"
	timeApplied  = "window.time.applied"
	timeRejected = "window.time.rejected"
	answers      = "window.*.applied, window.*.rejected"
)

func newSink(capacity int, maxAge time.Duration) *signals.Sink {
	return signals.NewSink(signals.SinkOptions{Capacity: capacity, MaxAge: maxAge})
}

func newResizer(t testing.TB, sink *signals.Sink, opts windowsize.Options) *windowsize.Resizer {
	t.Helper()
	r, err := windowsize.New(sink, opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

func window(sink *signals.Sink) windowsize.Window {
	s := sink.Stats()
	return windowsize.Window{Capacity: s.Capacity, MaxAge: s.MaxAge}
}

// A command changes the window, as far as the bounds allow, and a signal says so.
func TestCommandsChangeTheWindow(t *testing.T) {
	start := windowsize.Window{Capacity: 200, MaxAge: time.Minute}
	size := func(n int) windowsize.Window { return windowsize.Window{Capacity: n, MaxAge: time.Minute} }
	age := func(d time.Duration) windowsize.Window { return windowsize.Window{Capacity: 200, MaxAge: d} }
	for command, want := range map[string]windowsize.Window{
		"window.size.set:500":                  size(500),
		"window.size.set: 500 ":                size(500),
		"window.size.increase:100":             size(300),
		"window.size.decrease:100":             size(100),
		"a.b.c.window.size.set:300":            size(300),
		"window.size.set:99999999999999999999": size(50_000),
		"window.size.set:0":                    size(16),
		"window.size.increase:1000000":         size(50_000),
		"window.time.set:30S":                  age(30 * time.Second),
		"window.time.set:10m":                  age(10 * time.Minute),
		"window.time.set:00:05:00":             age(5 * time.Minute),
		"window.time.set:0:5:7.25":             age(5*time.Minute + 7250*time.Millisecond),
		"window.time.set:1.00:00:00":           age(time.Hour),
		"window.time.set:1ms":                  age(5 * time.Second),
		"window.time.increase:30s":             age(90 * time.Second),
		"window.time.decrease:30s":             age(30 * time.Second),
		"window.time.increase:2h":              age(time.Hour),
	} {
		sink := newSink(200, time.Minute)
		facts := coretest.Watch(t, sink, answers)
		newResizer(t, sink, windowsize.Options{})
		sink.Raise(command)
		assert.Equal(t, want, window(sink), command)
		applied := sizeApplied
		if strings.Contains(command, "time") {
			applied = timeApplied
		}
		s := facts.ExpectExactly(applied)[0]
		assert.Equal(t, "windowsize", s.Key)
		assert.Equal(t, []string{command, applied}, s.Path(), "caused by the command")
		assert.Equal(t, windowsize.Event{Command: command, From: start, To: want}, s.Payload(), command)
	}
}

// A payload that cannot be understood changes nothing, and a signal says why.
func TestMalformedPayloadsAreRejected(t *testing.T) {
	cases := map[string]string{}
	for _, payload := range []string{"", " ", "x", "-5", "+5", "1.5", "1e3", "5 0", "0x10", "١٢", "window.size.set:5"} {
		for _, c := range []string{windowsize.CommandSizeSet, windowsize.CommandSizeIncrease, windowsize.CommandSizeDecrease} {
			cases[c+":"+payload] = sizeRejected
		}
	}
	for _, payload := range []string{
		"", " ", "30", "0", "-30s", "+30s", "s", "30x", "30 s", "1d", "30s5", "９s", "9999999h", "00:05", "00:60:00", "00:00:60", "24:00:00",
		"00:5:", ":05:00", "a:b:c", "1:2:3:4", "00:005:00", "1.24:00:00", ".1:00:00", "-1.00:00:00", "99999.00:00:00", "00:00:00.", "00:00:-1",
	} {
		for _, c := range []string{windowsize.CommandTimeSet, windowsize.CommandTimeIncrease, windowsize.CommandTimeDecrease} {
			cases[c+":"+payload] = timeRejected
		}
	}
	sink := newSink(200, time.Minute)
	newResizer(t, sink, windowsize.Options{Name: "shared"})
	facts := coretest.Watch(t, sink, answers)
	for command, rejected := range cases {
		sink.Raise(command)
		s := facts.ExpectExactly(rejected)[0]
		assert.Equal(t, "shared", s.Key)
		e := s.Payload().(windowsize.Event)
		assert.Equal(t, command, e.Command)
		assert.ErrorContains(t, e.Err, "windowsize: ")
		assert.Equal(t, e.From, e.To)
	}
	assert.Equal(t, windowsize.Window{Capacity: 200, MaxAge: time.Minute}, window(sink))

	sink.Raise(windowsize.CommandTimeSet + ":" + strings.Repeat("x", 10_000))
	e := facts.ExpectExactly(timeRejected)[0].Payload().(windowsize.Event)
	assert.Less(t, len(e.Err.Error()), 200, "the payload may be of any length, the error may not")
}

// A command starts at the start of the name, or after a dot or a colon. The payload of a
// command is not searched for another one.
func TestCommandsHaveBoundaries(t *testing.T) {
	sink := newSink(200, time.Minute)
	newResizer(t, sink, windowsize.Options{})
	facts := coretest.Watch(t, sink, answers)
	for _, name := range []string{
		"rewindow.size.set:5", "window.size.set", "window.size.sets:5", "xwindow.time.set:5s", "window.size:5", "window-size-set:5",
		"Window.Size.Set:5", "window.size.applied.x:5", "window.time.rejected.x:5s",
	} {
		sink.Raise(name)
	}
	facts.None()
	sink.Raise("window.time.set:window.size.set:20")
	sink.Raise("window.size.set:20.window.time.set:30s")
	assert.Equal(t, windowsize.Window{Capacity: 200, MaxAge: time.Minute}, window(sink))
	facts.ExpectExactly(timeRejected, sizeRejected)
}

// A command with a key is for the Resizer of that name, even if it is forwarded to another
// sink, or raised by an operation. A command without a key is for all Resizers.
func TestKeyedCommands(t *testing.T) {
	one, two := newSink(200, 0), newSink(200, 0)
	defer one.Forward(two, "window.size.set:*")()
	newResizer(t, one, windowsize.Options{Name: "one"})
	newResizer(t, two, windowsize.Options{Name: "two"})
	c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: one}))
	raise := func(key, name string) { one.RaiseKey(name, key) }
	raiseInside := func(key, name string) {
		require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey(key)
			op.Raise(name)
			return nil
		}))
	}
	for _, step := range []struct {
		raise func(key, name string)
		key   string
		n     int
		want  [2]int
	}{
		{raise, "one", 20, [2]int{20, 200}},
		{raise, "two", 21, [2]int{20, 21}},
		{raise, "three", 22, [2]int{20, 21}},
		{raise, "t*", 23, [2]int{20, 21}},
		{raise, "", 24, [2]int{24, 24}},
		{raiseInside, "three", 25, [2]int{24, 24}},
		{raiseInside, "two", 26, [2]int{24, 26}},
		{raiseInside, "", 27, [2]int{27, 27}},
	} {
		step.raise(step.key, fmt.Sprintf("%s:%d", windowsize.CommandSizeSet, step.n))
		assert.Equal(t, step.want, [2]int{window(one).Capacity, window(two).Capacity}, step.key)
	}
	require.NoError(t, c.Close())
}

// Shrinking drops the oldest signals first, by number and by age.
func TestShrinkingDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink(200, time.Minute)
		newResizer(t, sink, windowsize.Options{})
		raise := func(n int) {
			for i := range n {
				sink.RaiseKey("fact", fmt.Sprint(i))
				time.Sleep(100 * time.Millisecond)
			}
		}
		remembered := func() (keys []string) {
			for s := range sink.Sense(signals.Query{Pattern: "fact"}) {
				keys = append(keys, s.Key)
			}
			return keys
		}
		raise(100)
		sink.Raise("window.size.set:22")
		keys := remembered()
		assert.Len(t, keys, 20, "the command and its answer take places as well")
		assert.Equal(t, []string{"80", "99"}, []string{keys[0], keys[19]})

		sink.Raise("window.size.set:200")
		raise(100)
		sink.Raise("window.time.set:1s")
		keys = remembered()
		assert.Len(t, keys, 49, "the one before is exactly five seconds old")
		assert.Equal(t, []string{"51", "99"}, []string{keys[0], keys[48]})
	})
}

// An increase does not set a limit for a window without one: this would shorten the window.
func TestNoLimitOfAge(t *testing.T) {
	sink := newSink(200, -1)
	newResizer(t, sink, windowsize.Options{})
	facts := coretest.Watch(t, sink, answers)
	sink.Raise("window.time.increase:1m")
	sink.Raise("window.time.decrease:1m")
	for _, s := range facts.ExpectExactly(timeRejected, timeRejected) {
		assert.ErrorContains(t, s.Payload().(windowsize.Event).Err, "windowsize: the window has no limit of age")
	}
	assert.Zero(t, window(sink).MaxAge)
	sink.Raise("window.time.set:1m")
	sink.Raise("window.time.increase:1m")
	assert.Equal(t, 2*time.Minute, window(sink).MaxAge)
}

func TestOptions(t *testing.T) {
	sink := newSink(200, time.Minute)
	newResizer(t, sink, windowsize.Options{MinCapacity: -1, MaxCapacity: -1, MinAge: -1, MaxAge: -1})
	for command, want := range map[string]windowsize.Window{
		"window.size.set:0":                      {Capacity: 1, MaxAge: time.Minute},
		"window.size.set:100000":                 {Capacity: 100_000, MaxAge: time.Minute},
		"window.time.set:0s":                     {Capacity: 200, MaxAge: 1},
		"window.time.set:9223372036854775807ns":  {Capacity: 200, MaxAge: math.MaxInt64 - 1},
		"window.time.increase:2562047h47m16s":    {Capacity: 200, MaxAge: math.MaxInt64 - 1},
		"window.size.increase:99999999999999999": {Capacity: signals.MaxSinkCapacity, MaxAge: time.Minute},
	} {
		sink.Resize(200, time.Minute)
		sink.Raise(command)
		assert.Equal(t, want, window(sink), command)
	}

	for field, opts := range map[string]windowsize.Options{
		"Options.MaxCapacity is 67108865": {MaxCapacity: signals.MaxSinkCapacity + 1},
		"Options.MinCapacity is 60000":    {MinCapacity: 60_000},
		"Options.MinCapacity is 16":       {MaxCapacity: 10},
		"Options.MinAge is 2h0m0s":        {MinAge: 2 * time.Hour},
		"Options.MinAge is 5s":            {MaxAge: time.Second},
	} {
		r, err := windowsize.New(sink, opts)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "windowsize: "+field)
	}
	_, err := windowsize.New(nil, windowsize.Options{})
	assert.ErrorContains(t, err, "windowsize: ")
}

// Close may be called many times, and by a handler of the command's own signal.
func TestClose(t *testing.T) {
	sink := newSink(200, 0)
	r := newResizer(t, sink, windowsize.Options{})
	assert.NoError(t, r.Close())
	assert.NoError(t, r.Close())
	sink.Raise("window.size.set:300")
	assert.Equal(t, 200, window(sink).Capacity)

	r = newResizer(t, sink, windowsize.Options{})
	defer sink.Subscribe(sizeApplied, func(signals.Signal) { assert.NoError(t, r.Close()) })()
	sink.Raise("window.size.set:400")
	sink.Raise("window.size.set:500")
	assert.Equal(t, 400, window(sink).Capacity, "closed by a handler")
}

// No change is lost, however many goroutines and Resizers make them.
func TestConcurrentChanges(t *testing.T) {
	sink := newSink(1000, time.Minute)
	newResizer(t, sink, windowsize.Options{Name: "one"})
	newResizer(t, sink, windowsize.Options{Name: "two"})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 100 {
				sink.RaiseKey([]string{
					"window.size.increase:3", "window.size.decrease:1", "window.time.increase:1s", "window.size.increase:1",
				}[g], []string{"one", "two"}[g%2])
			}
		})
	}
	all.Wait()
	assert.Equal(t, windowsize.Window{Capacity: 1300, MaxAge: 160 * time.Second}, window(sink))
}

// The model is a number with its bounds, and starts at any value. An increase never shrinks
// a window above the bounds, and a decrease never enlarges one below.
func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		least, most, n := 1+random.IntN(50), 50+random.IntN(200), 1+random.IntN(300)
		sink := newSink(n, time.Duration(n)*time.Second)
		r := newResizer(t, sink, windowsize.Options{
			MinCapacity: least, MaxCapacity: most, MinAge: time.Duration(least) * time.Second, MaxAge: time.Duration(most) * time.Second,
		})
		for range 200 {
			v, old, command := random.IntN(400), n, "set"
			switch random.IntN(3) {
			case 0:
				n = min(max(v, least), most)
			case 1:
				command = "increase"
				if v > 0 {
					n = max(old, min(max(old+v, least), most))
				}
			case 2:
				command = "decrease"
				if v > 0 {
					n = min(old, min(max(old-v, least), most))
				}
			}
			sink.Raise(fmt.Sprintf("window.size.%s:%d", command, v))
			sink.Raise(fmt.Sprintf("window.time.%s:%ds", command, v))
			want := windowsize.Window{Capacity: n, MaxAge: time.Duration(n) * time.Second}
			require.Equal(t, want, window(sink), "seed %d: %s %d from %d", seed, command, v, old)
		}
		require.NoError(t, r.Close())
	}
}

// Whatever is raised, the window stays within its bounds, and a command is answered once.
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
		w := window(sink)
		if w.Capacity < 16 || w.Capacity > 50_000 || w.MaxAge < 5*time.Second || w.MaxAge > time.Hour {
			t.Errorf("%q: %+v", name, w)
		}
		answered := 0
		for signal := range sink.Sense(signals.Query{Key: "windowsize"}) {
			if _, ok := signal.Payload().(windowsize.Event); ok {
				answered++
			}
		}
		if answered > 1 {
			t.Errorf("%q: %d answers", name, answered)
		}
	})
}
