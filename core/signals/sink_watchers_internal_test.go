package signals

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// Watchers of all kinds come and go; after each change, the route of each name is what a search of plain lists finds.
func TestRoutesAgainstLists(t *testing.T) {
	const alphabet = "ab.*"
	for seed := range uint64(long.Often(60, 10)) {
		random := rand.New(rand.NewPCG(seed, 3))
		text := func() string {
			switch random.IntN(12) {
			case 0:
				return "*"
			case 1:
				return "operation.*"
			case 2:
				return "a*, *b, a.b"
			case 3:
				return "a.*, a*b, a"
			}
			b := make([]byte, 1+random.IntN(5))
			for i := range b {
				b[i] = alphabet[random.IntN(len(alphabet))]
			}
			if random.IntN(3) > 0 {
				return strings.ReplaceAll(string(b), "*", "c")
			}
			return string(b)
		}
		type live struct {
			kind   int
			it     any
			text   string
			remove func()
		}
		s, to := NewSink(SinkOptions{}), NewSink(SinkOptions{})
		var all []live
		shrinking := false
		for step := range 600 {
			if step%150 == 0 {
				shrinking = !shrinking
			}
			if n := len(all); n > 0 && random.IntN(10) < map[bool]int{true: 3, false: 7}[shrinking] {
				i := random.IntN(n)
				all[i].remove()
				all = slices.Delete(all, i, i+1)
			} else {
				one := live{kind: random.IntN(6), text: text()}
				switch one.kind {
				case 0:
					one.remove = s.Subscribe(one.text, func(Signal) {})
					one.it = s.names.subs.Last().it
				case 1:
					one.remove = s.Forward(to, one.text)
					one.it = s.names.forwards.Last().it
				case 2:
					g := &gatePart{Pattern: glob.Compile(one.text), of: s, find: s.find}
					s.addGate(g)
					one.it, one.remove = g, func() { s.names.removeGate(g) }
				case 3:
					m := s.Monitor(one.text, 0)
					one.it, one.remove = m, m.Stop
				case 4:
					c := s.names.addCounter(glob.Compile(one.text), nil)
					one.it, one.remove = c, func() { s.names.removeCounter(c) }
				case 5:
					one.remove = s.SubscribeRetracted(one.text, func(Retraction) {})
					one.it = s.retractions.Last().it
				}
				all = append(all, one)
			}
			hearing := slices.ContainsFunc(all, func(w live) bool {
				return strings.HasPrefix(w.text, "operation.") && (w.kind < 2 || w.kind == 3)
			})
			if got := s.names.listening.Load(); got != hearing {
				t.Fatalf("seed %d, step %d: listening is %v", seed, step, got)
			}
			for range 3 {
				name := strings.Trim(strings.Split(text(), ",")[0], "*")
				if name == "" || name == "operation." {
					name = SignalStarted
				}
				var want [6][]any
				for _, w := range all {
					if Match(w.text, name) && !(w.kind == 2 && isLifecycle(name)) {
						want[w.kind] = append(want[w.kind], w.it)
					}
				}
				r := s.names.of(name)
				got := [6][]any{anys(r.handlers()), anys(r.forwards), anys(r.gates), anys(r.monitors), anys(r.counters), anys(find[*hook.Hook[Retraction]](&s.retractions, nil, name))}
				for kind := range want {
					if !slices.Equal(got[kind], want[kind]) {
						t.Fatalf("seed %d, step %d: %q: kind %d: got %d watchers, want %d in order", seed, step, name, kind, len(got[kind]), len(want[kind]))
					}
				}
			}
		}
		for _, w := range all {
			w.remove()
		}
		if n := &s.names; n.n != 0 || n.varied != 0 || n.wild != 0 || n.first != (byteSet{}) || n.exact != (byteSet{}) || n.of("a") != unwatched {
			t.Fatalf("seed %d: something of the watchers is left", seed)
		}
	}
}

func anys[T any](all []T) (list []any) {
	for _, one := range all {
		list = append(list, one)
	}
	return list
}

// A new watcher of one name, or one that goes, leaves the routes of other names alone.
func TestWatchersLeaveOtherRoutesAlone(t *testing.T) {
	s := NewSink(SinkOptions{})
	defer s.Subscribe("a.*", func(Signal) {})()
	s.Raise("a.x")
	route := s.names.recent[place("a.x")].route
	for i := range 100 {
		cancel := s.Subscribe(fmt.Sprint("b.", i), func(Signal) {})
		s.Monitor(fmt.Sprint("c.", i), 0).Stop()
		if i%2 == 0 {
			cancel()
		}
	}
	if r := s.names.recent[place("a.x")]; route == nil || r.text != "a.x" || r.route != route {
		t.Error("the route of another name was forgotten")
	}
}

// Ten times as many watchers or held signals take some ten times as long, not a hundred times: to come and to go,
// first or last first, also while others are raised.
func TestManyWatchersCostNoMoreEach(t *testing.T) {
	if long.Race() || long.Often(1, 0) == 0 {
		t.Skip("fewer do not show it, and the race detector makes many cost more")
	}
	for _, test := range []struct {
		name  string
		large int
		run   func(n int)
	}{
		{"handlers of different names", 100_000, func(n int) {
			s := NewSink(SinkOptions{})
			ends := make([]func(), n)
			for i := range ends {
				ends[i] = s.Subscribe(fmt.Sprint("name.", i), func(Signal) {})
				s.Raise("other")
			}
			for _, end := range ends {
				end()
				s.Raise("name.1")
			}
		}},
		{"handlers of one name", 100_000, func(n int) {
			s := NewSink(SinkOptions{})
			ends := make([]func(), n)
			for i := range ends {
				ends[i] = s.Subscribe("name", func(Signal) {})
				s.Raise("other")
			}
			s.Raise("name")
			for _, end := range slices.Backward(ends) {
				end()
			}
		}},
		{"handlers of retractions", 30_000, func(n int) {
			s := NewSink(SinkOptions{})
			ends := make([]func(), n)
			for i := range ends {
				ends[i] = s.SubscribeRetracted("name", func(Retraction) {})
			}
			for _, end := range ends {
				end()
			}
		}},
		{"monitors with a watermark, and forwards", 30_000, func(n int) {
			s, to := NewSink(SinkOptions{}), NewSink(SinkOptions{})
			all := s.Monitor("*", 0)
			ends := make([]func(), n)
			for i := range ends {
				m, cut := s.Monitor(fmt.Sprint("name.", i), 0), s.Forward(to, fmt.Sprint("name.", i))
				end := all.OnCount(1, 0, func(bool) {})
				ends[i] = func() { m.Stop(); cut(); end() }
			}
			s.Raise("name.1")
			for _, end := range ends {
				end()
			}
		}},
		{"waits for a signal that comes", 30_000, func(n int) {
			s, done := NewSink(SinkOptions{}), make(chan error, n)
			for i := range n {
				go func() {
					_, err := s.WaitFor(context.Background(), fmt.Sprint("name.", i%2))
					done <- err
				}()
			}
			for s.Stats().Handlers < n {
				time.Sleep(time.Millisecond)
			}
			s.Raise("name.0")
			s.Raise("name.1")
			for range n {
				<-done
			}
		}},
		{"counters, as of waits for signals to go", 30_000, func(n int) {
			s, all := NewSink(SinkOptions{}), make([]*counter, n)
			s.Raise("name")
			for i := range all {
				all[i] = s.names.addCounter(glob.Compile("name"), make(chanWaker, 1))
			}
			s.Retract("name")
			for _, c := range all {
				s.names.removeCounter(c)
			}
		}},
		{"gates", 60_000, func(n int) {
			sc := NewScope(NewSink(SinkOptions{}), "", ScopeOptions{})
			all := make([]*Gate, n)
			for i := range all {
				all[i] = sc.Gate(fmt.Sprint("stop.", i), func() {})
			}
			sc.sink.Raise("stop.1")
			for _, g := range all {
				g.Stop()
			}
		}},
		{"held signals", 100_000, func(n int) {
			s := NewSink(SinkOptions{})
			defer NewScope(s, "", ScopeOptions{}).Gate("held", nil).Stop()
			ends := make([]func(), n)
			for i := range ends {
				ends[i] = s.Hold("held", "", time.Hour+time.Duration(i*7919%n))
				s.Raise("other")
			}
			for _, end := range ends[n/2:] {
				end()
			}
			for _, end := range slices.Backward(ends[:n/2]) {
				end()
			}
		}},
		{"held signals of which the leases end one after the other", 30_000, func(n int) {
			s := NewSink(SinkOptions{})
			for i := range n {
				s.Hold("held", "", time.Hour+time.Duration(i*7919%n)*time.Second)
			}
			for i := range n {
				s.mu.Lock()
				s.expireLeases(int64(2*time.Hour) + int64(i+1)*int64(time.Second))
				s.unlock()
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) { long.Linear(t, test.large, test.run) })
	}
}
