package core

import (
	"slices"
	"sync"
)

// Follow calls fn once for every signal that matches pattern. Before Follow returns, it
// calls fn for the signals that are present, also held ones, oldest first. After that it
// calls fn for new signals, like [Sink.Subscribe]. Signals that are raised while Follow
// runs come after those present. It panics if fn is nil.
func (s *Sink) Follow(pattern string, fn func(Signal)) (cancel func()) {
	need(fn != nil, "Follow needs a function")
	p := compile(pattern)
	var (
		present []Signal
		mu      sync.Mutex
		behind  = true
		queue   []Signal // what comes while those present are handed to fn
	)
	hook := newHook(p, func(signal Signal) {
		mu.Lock()
		wait := behind
		if wait {
			queue = append(queue, signal)
		}
		mu.Unlock()
		if !wait {
			fn(signal)
		}
	})
	s.lockFresh()
	s.each(p, func(seq uint64, f *fact) bool {
		present = append(present, f.signal(seq, s.names.clock))
		return true
	})
	cancel = hook.join(&s.mu, &s.names.subs, s.names.changed)
	s.unlock()
	slices.SortFunc(present, asRaised)
	once := []*subscription{newHook(p, fn)}
	for i := range present {
		deliver(once, false, &present[i], &s.panics)
	}
	mu.Lock()
	behind = false
	mu.Unlock()
	for i := range queue { // to which nothing is added any more
		deliver(once, false, &queue[i], &s.panics)
	}
	return cancel
}
