package durable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// pair is a store that allows two turns at once.
type pair struct {
	durable.Store
	begin  func(ends int)    // is called before a turn
	answer func(claimed int) // is called before the answer of a turn
}

func (pair) Connect() (turns int, release func()) { return 2, func() {} }

func (p pair) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	p.begin(len(ends))
	t, err := p.Store.Turn(ctx, node, ends, want)
	p.answer(len(t.Items))
	return t, err
}

// While the answer of a turn that has claimed items is on its way, ends are recorded, and their slots are filled. No beat gives
// back what the answer will bring, and there are never more claims than slots. When the answer comes, the queue goes on at once.
func TestTwoTurns(t *testing.T) {
	inBubble(t, func(s *shop) {
		late, free, rest := atomic.Bool{}, make(chan struct{}), make(chan struct{})
		s.store = pair{s.store, func(int) {}, func(claimed int) {
			if claimed > 0 && late.Swap(false) {
				time.Sleep(10 * time.Second)
			}
		}}
		ran := atomic.Int64{}
		q := s.serve(func(_ context.Context, item string) error {
			switch ran.Add(1); item {
			case "first":
				<-free
			case "rest":
				<-rest
			}
			return nil
		}, durable.Options{MaxConcurrency: 120, Lease: time.Minute, Poll: 2 * time.Second})
		time.Sleep(time.Second)
		add := func(item string, n int) {
			_, err := q.EnqueueAll(s.Context(), slices.Repeat([]string{item}, n))
			assert.NoError(t, err)
			synctest.Wait()
		}
		add("first", 60)
		late.Store(true)
		add("late", 50)
		assert.Equal(t, 110, s.stats(q).Running)
		add("rest", 100)
		assert.Equal(t, int64(60), ran.Load(), "the answer is on its way")
		close(free)
		time.Sleep(9 * time.Second) // several beats
		stats := s.stats(q)
		assert.GreaterOrEqual(t, stats.Done, 50, "the second turn")
		assert.Equal(t, 110, stats.Running, "it takes only its own slots")
		assert.EqualValues(t, 60+stats.Done, ran.Load(), "late ones do not run")
		time.Sleep(1500 * time.Millisecond) // before the next beat
		assert.Equal(t, 100, s.stats(q).Running, "the rest")
		close(rest)
		time.Sleep(time.Second)
		stats = s.stats(q)
		assert.Equal(t, 210, stats.Done)
		assert.Zero(t, stats.Fenced)
		assert.Equal(t, int64(210), ran.Load(), "each ran once")
	})
}

// A turn that was begun before another one, and found less than it wanted, does not say that there is nothing to claim.
func TestTwoTurnsAndOldNews(t *testing.T) {
	inBubble(t, func(s *shop) {
		late, free, rest := atomic.Bool{}, make(chan struct{}), make(chan struct{})
		s.store = pair{s.store, func(int) {}, func(claimed int) {
			if claimed > 0 && late.Swap(false) {
				time.Sleep(10 * time.Second)
			}
		}}
		q := s.serve(func(_ context.Context, item string) error {
			switch item {
			case "first":
				<-free
			case "rest":
				<-rest
			}
			return nil
		}, durable.Options{MaxConcurrency: 120, Lease: time.Hour, Poll: time.Hour})
		s.enqueue(q, slices.Repeat([]string{"first"}, 50)...)
		synctest.Wait()
		late.Store(true)
		s.enqueue(q, "late")
		synctest.Wait()
		s.enqueue(q, slices.Repeat([]string{"rest"}, 200)...)
		close(free)
		time.Sleep(9 * time.Second)
		assert.Equal(t, 50, s.stats(q).Done)
		time.Sleep(2 * time.Second)
		assert.Equal(t, 120, s.stats(q).Running)
		close(rest)
	})
}

// A turn finds a class full, because the turn beside it has not yet recorded the end that makes room. The queue looks again.
func TestTwoTurnsOfAClass(t *testing.T) {
	inBubble(t, func(s *shop) {
		l, stop, free, first := log{}, make(chan struct{}), make(chan struct{}), make(chan struct{})
		s.store = pair{s.store, func(ends int) {
			if ends == 1 {
				<-stop
			}
		}, func(int) {}}
		q := s.serve(func(_ context.Context, item string) error {
			l.add(item)
			switch item {
			case "plain":
				<-free
			case "1":
				<-first
			}
			return nil
		}, durable.Options{MaxConcurrency: 200, Lease: time.Hour, Poll: time.Hour, Classes: []durable.Class{{Name: "class"}}})
		assert.NoError(t, q.SetClass(s.Context(), durable.Class{Name: "class", Limit: 1}))
		s.enqueue(q, slices.Repeat([]string{"plain"}, 50)...)
		s.enqueue(q.Class("class"), "1")
		time.Sleep(time.Second)
		l.take()
		close(first)
		synctest.Wait() // a turn with this end begins
		s.enqueue(q.Class("class"), "2")
		close(free)
		time.Sleep(time.Second)
		assert.Equal(t, 50, s.stats(q).Done, "the second turn")
		assert.Empty(t, l.take(), "the class is full")
		close(stop)
		time.Sleep(time.Second)
		assert.Equal(t, "2", l.take())
		assert.Equal(t, 52, s.stats(q).Done)
	})
}

// Two turns at once, whose answers come in any order: each item runs once, those of a key in order, no more of a class than its
// limit, and the queue never waits for its next poll.
func TestTwoTurnsAtRandom(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds = 20
	}
	for seed := range seeds {
		inBubble(t, func(s *shop) {
			var l log
			r := rand.New(rand.NewPCG(seed, 0))
			busy, both := atomic.Int64{}, atomic.Bool{}
			s.store = pair{s.store, func(int) {
				if busy.Add(1) == 2 {
					both.Store(true)
				}
				time.Sleep(time.Duration(l.random(r, 10)) * time.Millisecond)
			}, func(int) {
				time.Sleep(time.Duration(l.random(r, 10)) * time.Millisecond)
				busy.Add(-1)
			}}
			last, failed, ofClass := map[string]int{}, map[string]bool{}, 0
			q := s.serve(func(ctx context.Context, item string) error {
				key, n := "", 0
				fmt.Sscanf(item, "%3s/%d", &key, &n)
				class := durable.ClaimFrom(ctx).Class
				l.mu.Lock()
				again := !failed[item] && n%7 == 3
				if failed[item] = again; !again {
					assert.Equal(t, last[key]+1, n, item)
					last[key] = n
				}
				if class != "" {
					ofClass++
				}
				assert.LessOrEqual(t, ofClass, 5)
				l.mu.Unlock()
				err := sleep(ctx, time.Duration(l.random(r, 5))*time.Millisecond)
				l.mu.Lock()
				defer l.mu.Unlock()
				if class != "" {
					ofClass--
				}
				if again {
					return durable.Snooze(0, "again")
				}
				return err
			}, durable.Options{MaxConcurrency: 150, Lease: 100 * time.Hour, Poll: 100 * time.Hour, Classes: []durable.Class{{Name: "class"}}})
			assert.NoError(t, q.SetClass(s.Context(), durable.Class{Name: "class", Limit: 5}))
			began := time.Now()
			for n := range 5 {
				for k := range 100 {
					q := q
					if k%10 == 0 && seed%2 == 0 {
						q = q.Class("class")
					}
					_, err := q.Enqueue(s.Context(), fmt.Sprintf("%3d/%d", 100+k, n+1))
					assert.NoError(t, err)
					if l.random(r, 50) == 0 {
						time.Sleep(time.Duration(l.random(r, 40)) * time.Millisecond)
					}
				}
			}
			for s.stats(q).Done < 500 && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
			}
			assert.Less(t, time.Since(began), time.Minute, "seed %d", seed)
			assert.True(t, both.Load())
			assert.Zero(t, s.stats(q).Fenced)
		})
	}
}
