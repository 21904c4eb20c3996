package data

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A request is a signal that asks for the operation op.
type request struct {
	op     string
	signal signals.Signal
}

// serve runs a request. If there is no error, it raises the answer.
func (s *store[K, V]) serve(ctx context.Context, r request) error {
	key, answers := r.signal.Key, s.opts.Sink.Because(r.signal)
	switch r.op {
	case "save":
		value, ok := r.signal.Payload().(V)
		if !ok {
			return fmt.Errorf("data: the signal must have a payload of type %T, not %T", *new(V), r.signal.Payload())
		}
		return s.save(ctx, answers, key, func(yield func(K, V) bool) { yield(K(key), value) })
	case "delete":
		return s.delete(ctx, answers, key)
	}
	value, ok, err := s.Load(ctx, K(key))
	if err == nil {
		Loaded[V](s.opts.Name).Raise(answers, key, Found[V]{value, ok})
	}
	return err
}

// done raises the answer of a request that has failed.
func (s *store[K, V]) done(r request, err error) {
	s.told(s.opts.Sink.Because(r.signal), s.named(err, r.op, r.signal.Key))
}
