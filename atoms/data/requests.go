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
		Name:           s.opts.Name,
		Sink:           s.opts.Sink,
		MaxConcurrency: s.opts.MaxConcurrency,
		MaxQueued:      s.opts.MaxQueued,
		MaxTracked:     -1, // payloads may be large
		EchoCapacity:   -1,
		OnDone:         s.served,
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

// serve does what a request asks for. Its error is raised by served.
func (s *store[K, V]) serve(ctx context.Context, r request) error {
	key, answers := K(r.signal.Key), s.opts.Sink.Because(r.signal)
	switch r.op {
	case "save":
		value, ok := r.signal.Payload().(V)
		if !ok {
			return fmt.Errorf("data: the signal must carry a %T, not a %T", *new(V), r.signal.Payload())
		}
		if err := s.save(ctx, key, value); err != nil {
			return err
		}
		s.saved.Raise(answers, r.signal.Key, struct{}{})
	case "load":
		value, ok, err := s.Load(ctx, key)
		if err != nil {
			return err
		}
		Loaded[V](s.opts.Name).Raise(answers, r.signal.Key, Found[V]{value, ok})
	case "delete":
		if err := s.delete(ctx, key); err != nil {
			return err
		}
		s.deleted.Raise(answers, r.signal.Key, struct{}{})
	}
	return nil
}

// served answers requests that have failed, also if they never ran.
func (s *store[K, V]) served(op core.Snapshot) {
	if op.Err != nil {
		s.refuse(op.Item.(request), op.Err)
	}
}

func (s *store[K, V]) refuse(r request, err error) {
	if _, ok := err.(*Error); !ok {
		err = &Error{s.opts.Name, r.op, r.signal.Key, err}
	}
	s.failed.Raise(s.opts.Sink.Because(r.signal), r.signal.Key, err)
}

// answer raises what has become of a direct call, and returns the error.
func (s *store[K, V]) answer(kind core.Kind[struct{}], err error, keys ...string) error {
	switch {
	case s.opts.Sink == nil:
	case err != nil:
		s.failed.Raise(s.opts.Sink, err.(*Error).Key, err)
	default:
		for _, key := range keys {
			kind.Raise(s.opts.Sink, key, struct{}{})
		}
	}
	return err
}
