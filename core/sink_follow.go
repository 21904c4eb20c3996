package core

import (
	"cmp"
	"slices"
	"sync"
)

// Follow calls fn for every signal that matches pattern, each once: before it returns, for
// those present, held ones included, oldest first; and then for those that come, like
// [Sink.Subscribe]. Signals that are raised while Follow runs come after those present. It
// panics if fn is nil.
func (s *Sink) Follow(pattern string, fn func(Signal)) (cancel func()) {
	if fn == nil {
		panic("core: Follow needs a function")
	}
	p := compile(pattern)
	f := &follower{fn: fn, behind: true}
	var present []Signal
	s.lockFresh()
	s.each(p, func(seq uint64, f *fact) bool {
		present = append(present, f.signal(seq, s.names.clock))
		return true
	})
	cancel = newHook(p, f.call).join(&s.mu, &s.names.subs, s.names.changed)
	s.unlock()
	slices.SortFunc(present, func(a, b Signal) int { return cmp.Compare(a.Seq, b.Seq) })
	once := []*subscription{newHook(p, fn)}
	for i := range present {
		deliver(once, false, &present[i], &s.panics)
	}
	for _, signal := range f.next() {
		deliver(once, false, &signal, &s.panics)
	}
	return cancel
}

// A follower keeps signals back until those from before are handed to fn.
type follower struct {
	fn     func(Signal)
	mu     sync.Mutex
	behind bool
	queue  []Signal
}

func (f *follower) call(s Signal) {
	f.mu.Lock()
	behind := f.behind
	if behind {
		f.queue = append(f.queue, s)
	}
	f.mu.Unlock()
	if !behind {
		f.fn(s)
	}
}

// next returns what has been kept back, and keeps nothing back any more.
func (f *follower) next() (queue []Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue, f.queue, f.behind = f.queue, nil, false
	return queue
}
