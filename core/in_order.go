package core

import (
	"context"
	"errors"
)

// InOrder makes one Lifecycle of the stages of a pipeline. The first argument is the
// stage that gets items first. Each stage is flushed, drained, stopped or closed after
// the stage before it, so that the stage before can still hand its items on.
//
// It is for types that consist of stages, and for Flush and Stop of a pipeline. To end a
// program, use [Shutdown].
//
// Complete ends the intake of the first stage only. Drain ends the intake of all stages,
// each in its turn. Flush, Drain and Stop return at the first error and leave later stages
// alone. Close closes all of them.
func InOrder(stages ...Lifecycle) Lifecycle { return inOrder(stages) }

type inOrder []Lifecycle

func (p inOrder) Complete() {
	if len(p) > 0 {
		p[0].Complete()
	}
}

func (p inOrder) each(ctx context.Context, do func(Lifecycle, context.Context) error) error {
	for _, stage := range p {
		if err := do(stage, ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p inOrder) Flush(ctx context.Context) error { return p.each(ctx, Lifecycle.Flush) }
func (p inOrder) Drain(ctx context.Context) error { return p.each(ctx, Lifecycle.Drain) }
func (p inOrder) Stop(ctx context.Context) error  { return p.each(ctx, Lifecycle.Stop) }

func (p inOrder) Close() error {
	var errs []error
	for _, stage := range p {
		errs = append(errs, stage.Close())
	}
	return errors.Join(errs...)
}
