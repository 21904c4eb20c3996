package responsibility_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
)

// model is a Keeper that searches all its promises for each question.
type model struct {
	maxPin   time.Duration
	promises []modelPromise
}

type modelPromise struct {
	id    core.OperationID
	terms responsibility.Promise
	since time.Time
}

func (m *model) drop(which func(modelPromise) bool) {
	m.promises = slices.DeleteFunc(m.promises, which)
}

func (m *model) gone(id core.OperationID) {
	m.drop(func(p modelPromise) bool { return p.id == id })
}

func (m *model) keep(id core.OperationID, terms responsibility.Promise) {
	m.gone(id)
	m.promises = append(m.promises, modelPromise{id, terms, time.Now()})
	if terms.Announce != "" {
		key := terms.Key
		if key == "" {
			key = id.String()
		}
		m.signal(terms.Announce, key)
	}
}

func (m *model) signal(name, key string) {
	m.drop(func(p modelPromise) bool {
		want := p.terms.Key
		if want == "" {
			want = p.id.String()
		}
		switch {
		case key != want, name == p.terms.Announce, strings.HasPrefix(name, "responsibility.") && !strings.HasPrefix(name, "responsibility.ack."):
			return false
		case p.terms.Ack != "":
			return core.Match(p.terms.Ack, name)
		case p.terms.Announce != "":
			return name == p.terms.Announce+".ack"
		}
		return core.Match("responsibility.ack.*", name)
	})
}

func (m *model) passed() {
	m.drop(func(p modelPromise) bool {
		limit := cmp.Or(p.terms.MaxPin, m.maxPin)
		return limit > 0 && time.Since(p.since) >= limit
	})
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { compareWithModel(t, seed) })
	}
}

func compareWithModel(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }

	sink := core.NewSink(core.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
		core.Options{Sink: sink, MaxTracked: 20, MaxAge: -1}))
	defer c.Close()
	var ids []core.OperationID
	for i := range 20 {
		id, err := c.TryEnqueue(context.Background(), i)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	c.Flush(t.Context())

	m := &model{maxPin: time.Minute}
	k := core.Must(responsibility.New(c, sink, responsibility.Options{MaxPin: m.maxPin}))
	defer k.Close()
	evicted := make(map[core.OperationID]bool)

	for step := range 500 {
		id := ids[random.IntN(len(ids))]
		did := ""
		switch n := random.IntN(100); {
		case n < 45:
			terms := responsibility.Promise{
				Announce: pick("", "a.ready", "b.ready"),
				Ack:      pick("", "", "seen.*", "a.*, b.*", "*"),
				Key:      pick("", "x", "y"),
				MaxPin:   time.Duration(random.IntN(4)-1) * 45 * time.Second,
			}
			did = fmt.Sprintf("Keep(%d, %+v)", id, terms)
			got := k.Keep(id, terms)
			if got == evicted[id] {
				t.Fatalf("seed %d, step %d: %s: got %t", seed, step, did, got)
			}
			if got {
				m.keep(id, terms)
			}
		case n < 80:
			name := pick("a.ready.ack", "b.ready.ack", "a.ready", "seen.now", "responsibility.ack.now", responsibility.SignalKept, "other")
			key := pick("x", "y", id.String(), "")
			did = fmt.Sprintf("RaiseKey(%q, %q)", name, key)
			sink.RaiseKey(name, key)
			m.signal(name, key)
		case n < 85:
			did = fmt.Sprintf("Complete(%d)", id)
			k.Complete(id)
			m.gone(id)
		case n < 87:
			did = fmt.Sprintf("Evict(%d)", id)
			c.Evict(id)
			evicted[id] = true
			m.gone(id)
		default:
			d := time.Duration(random.IntN(30)) * time.Second
			did = fmt.Sprintf("Sleep(%v)", d)
			time.Sleep(d)
			synctest.Wait()
			m.passed()
		}

		var got, want []string
		for id, p := range k.Active() {
			op, _ := c.Lookup(id)
			got = append(got, fmt.Sprint(id, p.Announce, p.Since.UnixNano(), op.Pins))
		}
		for _, p := range m.promises {
			want = append(want, fmt.Sprint(p.id, p.terms.Announce, p.since.UnixNano(), 1))
		}
		if !slices.Equal(got, want) || c.Stats().Pinned != len(want) {
			t.Fatalf("seed %d, step %d: after %s:\n got %q, and %d pinned\nwant %q", seed, step, did, got, c.Stats().Pinned, want)
		}
	}
}

// When all calls happen at once, each promise ends once, and no pin is left.
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			sink := core.NewSink(core.SinkOptions{})
			c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
				core.Options{Sink: sink, MaxTracked: 20, MaxAge: -1}))
			defer c.Close()
			k := core.Must(responsibility.New(c, sink, responsibility.Options{MaxPin: 20 * time.Millisecond}))
			kept, ended := sink.Monitor(responsibility.SignalKept, 0), sink.Monitor("responsibility.released, responsibility.expired", 0)
			defer kept.Stop()
			defer ended.Stop()
			defer sink.Subscribe("file.ready", func(s core.Signal) {
				if s.Key == "at once" {
					sink.RaiseKey("file.ready.ack", s.Key)
				}
			})()

			var all sync.WaitGroup
			for g := range uint64(8) {
				all.Go(func() {
					random := rand.New(rand.NewPCG(seed, g))
					for range 100 {
						id, err := c.TryEnqueue(context.Background(), 0)
						if err != nil {
							t.Error(err)
							return
						}
						key := []string{"at once", "a", "b", "c"}[random.IntN(4)]
						k.Keep(id, responsibility.Promise{Announce: "file.ready", Key: key})
						switch random.IntN(6) {
						case 0:
							sink.RaiseKey("file.ready.ack", key)
						case 1:
							k.Complete(id)
						case 2:
							c.Evict(id)
						case 3:
							time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
						case 4:
							if g == 0 && random.IntN(20) == 0 {
								k.Close()
							}
						}
					}
				})
			}
			all.Wait()
			k.Close()
			synctest.Wait()
			coretest.Check(t, kept.Count() == ended.Count(), "seed %d: %d promises were kept and %d have ended", seed, kept.Count(), ended.Count())
			if n := c.Stats().Pinned; n != 0 {
				t.Errorf("seed %d: %d operations are still pinned", seed, n)
			}
		})
	}
}
