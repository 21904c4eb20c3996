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
// So it returns although a body ignores its context. To wait for such bodies, call Close.
// A part whose Drain returns another error is closed likewise, and the next part is drained.
// For a body that calls Shutdown, this is the part that the body belongs to.
//
// The error wraps those of Drain. It says what still ran and what was pending just before
// Shutdown closed it, and why: for each part that is an [Inspector], up to 16 operations as
// Explain shows them.
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
		for o := range p.Operations(OperationQuery{Status: status}) {
			if listed == maxExplained {
				break
			}
			if x, ok := p.Explain(o.ID); ok && x.Status&StatusAlive != 0 {
				fmt.Fprintf(&list, "\n\t%v", x)
				listed++
			}
		}
	}
	s := p.Stats()
	if more := s.Pending + s.Running + s.Suspended - listed; more > 0 {
		fmt.Fprintf(&list, "\n\tand %d more", more)
	}
	return fmt.Errorf("core: %q is closed before it is drained: %w%v", p.Name(), err, &list)
}
