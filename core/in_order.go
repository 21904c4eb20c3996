package core

import (
	"context"
	"errors"
)

// InOrder makes one Lifecycle of the stages of a pipeline, the one that gets items first
// in front: each stage is flushed, drained, stopped and closed when the one before it is,
// so that it can still hand on what it has.
//
// Complete ends the intake of the first stage; Drain ends that of the others, each in its
// turn. Flush, Drain and Stop end with the first error; then later stages are untouched.
// Close closes all of them.
func InOrder(stages ...Lifecycle) Lifecycle { return inOrder(stages) }

type inOrder []Lifecycle

func (p inOrder) Complete() {
	if len(p) > 0 {
		p[0].Complete()
	}
}

func (p inOrder) each(do func(Lifecycle) error) error {
	for _, stage := range p {
		if err := do(stage); err != nil {
			return err
		}
	}
	return nil
}

func (p inOrder) Flush(ctx context.Context) error {
	return p.each(func(l Lifecycle) error { return l.Flush(ctx) })
}

func (p inOrder) Drain(ctx context.Context) error {
	return p.each(func(l Lifecycle) error { return l.Drain(ctx) })
}

func (p inOrder) Stop(ctx context.Context) error {
	return p.each(func(l Lifecycle) error { return l.Stop(ctx) })
}

func (p inOrder) Close() error {
	var errs []error
	for _, stage := range p {
		errs = append(errs, stage.Close())
	}
	return errors.Join(errs...)
}
