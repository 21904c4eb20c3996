package data

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A request is a signal that asks for something, which is op.
type request struct {
	op     string
	signal core.Signal
}

// open makes the coordinator of the requests and, if there is a sink, subscribes to them.
func (s *store[K, V]) open() (err error) {
	s.requests, err = core.NewKeyedCoordinator(func(r request) string { return r.signal.Key }, s.serve, core.Options{
		Name: s.opts.Name, Sink: s.opts.Sink, MaxConcurrency: s.opts.MaxConcurrency, MaxQueued: s.opts.MaxQueued,
		MaxTracked: -1, EchoCapacity: -1, // payloads may be large
		OnDone: func(op core.Snapshot) { // also of requests that never ran
			if op.Err != nil {
				s.refuse(op.Item.(request), op.Err)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	s.Lifecycle = s.requests
	if s.opts.Sink == nil {
		return nil
	}
	for op, prefix := range map[string]string{"save": s.opts.SavePrefix, "load": s.opts.LoadPrefix, "delete": s.opts.DeletePrefix} {
		s.cancels = append(s.cancels, s.opts.Sink.Subscribe(prefix+"."+s.opts.Name, func(signal core.Signal) {
			r := request{op, signal}
			if _, err := s.requests.TryEnqueue(context.Background(), r); err != nil {
				s.refuse(r, err)
			}
		}))
	}
	Initialized(s.opts.Name).Raise(s.opts.Sink, s.opts.Name, struct{}{})
	return nil
}

// serve does what a request asks for, and answers it unless there is an error.
func (s *store[K, V]) serve(ctx context.Context, r request) error {
	key, answers := r.signal.Key, s.opts.Sink.Because(r.signal)
	switch r.op {
	case "save":
		value, ok := r.signal.Payload().(V)
		if !ok {
			return fmt.Errorf("data: the signal must have a payload of type %T, not %T", *new(V), r.signal.Payload())
		}
		if err := s.save(ctx, K(key), value); err != nil {
			return err
		}
		Saved(s.opts.Name).Raise(answers, key, struct{}{})
	case "load":
		value, ok, err := s.Load(ctx, K(key))
		if err != nil {
			return err
		}
		Loaded[V](s.opts.Name).Raise(answers, key, Found[V]{value, ok})
	case "delete":
		if err := s.delete(ctx, K(key)); err != nil {
			return err
		}
		Deleted(s.opts.Name).Raise(answers, key, struct{}{})
	}
	return nil
}

// refuse answers a request that was not done.
func (s *store[K, V]) refuse(r request, err error) {
	Failed(s.opts.Name).Raise(s.opts.Sink.Because(r.signal), r.signal.Key, s.named(err, r.op, r.signal.Key))
}

// tell raises what has become of a direct call, if there is a sink, and returns the error.
func (s *store[K, V]) tell(kind core.Kind[struct{}], err error, items ...Item) error {
	switch {
	case s.opts.Sink == nil:
	case err != nil:
		Failed(s.opts.Name).Raise(s.opts.Sink, err.(*Error).Key, err)
	default:
		for _, item := range items {
			kind.Raise(s.opts.Sink, item.Key, struct{}{})
		}
	}
	return err
}
