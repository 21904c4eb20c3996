// This file decides in which order the parts of a program end.

package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shutdown ends the parts of a program. It drains them in order: the first argument is the
// part that gets items first. It returns nil if all are drained. Then the parts still list
// what failed; Close would empty their windows.
//
// When ctx ends, Shutdown closes the parts that are not drained, without waiting for them.
// So it returns even if a body ignores its context. To wait for such bodies, call Close. A
// part whose Drain returns another error is closed likewise, and the next part is drained.
// For a body that calls Shutdown, this is the part that the body belongs to.
//
// The error wraps the errors of Drain. It says what still ran and what was pending just
// before Shutdown closed it, and why: for each part that is an [Inspector], what Explain
// says about up to 16 operations that have started, and about up to 16 pending ones. It is text, for people. Running operations stay
// in Operations after Close, so a program can still ask which of them have not ended.
func Shutdown(ctx context.Context, parts ...Lifecycle) error {
	need(!slices.Contains(parts, nil), "Shutdown needs parts, not nil")
	var errs []error
	for _, part := range parts {
		if stages, ok := part.(inOrder); ok { // so that the error names them
			errs = append(errs, Shutdown(ctx, stages...))
		} else if err := part.Drain(ctx); err != nil {
			errs = append(errs, undrained(part, err))
			go part.Close()
		}
	}
	return errors.Join(errs...)
}

// undrained is the error of Drain together with what has not ended, and why.
func undrained(part Lifecycle, err error) error {
	p, ok := part.(Inspector)
	if !ok {
		return fmt.Errorf("core: %T is closed before it is drained: %w", part, err)
	}
	var list strings.Builder
	listed := 0
	for _, status := range [...]Status{StatusRunning | StatusSuspended, StatusPending} {
		for o := range p.Operations(OperationQuery{Status: status, Limit: maxExplained}) {
			if x, ok := p.Explain(o.ID); ok && x.Status&StatusAlive != 0 {
				fmt.Fprintf(&list, "\n\t%v", x)
				listed++
			}
		}
	}
	if s := p.Stats(); s.Pending+s.Running+s.Suspended > listed {
		fmt.Fprintf(&list, "\n\tand %d more", s.Pending+s.Running+s.Suspended-listed)
	}
	return fmt.Errorf("core: %q is closed before it is drained: %w%v", p.Name(), err, &list)
}

// InOrder makes one Lifecycle of the stages of a pipeline. The first argument is the
// stage that gets items first. Each stage is flushed, drained, stopped or closed after
// the stage before it, so that the previous stage can still pass on its items.
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

func (p inOrder) Stop(ctx context.Context) error { return p.each(ctx, Lifecycle.Stop) }

func (p inOrder) Close() error {
	var errs []error
	for _, stage := range p {
		errs = append(errs, stage.Close())
	}
	return errors.Join(errs...)
}
