// This file decides in which order results come.

package core

import (
	"context"
	"iter"
)

// Map runs work for every item of seq, a bounded number at once, and yields the results in
// the order of the items, each with its error. A panic of work is a [PanicError]. Map
// works ahead of the loop, at most by the number of items that may run plus the number
// that may be queued. When the loop is left early, Map cancels the running operations,
// with the cause [ErrCancelled], and waits for them.
//
// When ctx ends, Map takes no more items, cancels what runs, and ends with the cause of
// ctx after the results that were ready. With [Options.StopOnError] the first error
// ends it at once: no more items start, what runs is cancelled with that error as the cause, and
// the loop gets that error in place of the first result that is missing. If the options
// are not valid, the loop gets only that error. Map takes the items from seq on the
// goroutine of the loop.
func Map[In, Out any](ctx context.Context, seq iter.Seq[In], work ResultWork[In, Out], opts Options) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		var none Out
		if seq == nil {
			yield(none, errNoSeq)
			return
		}
		if work == nil {
			yield(none, errNoWork)
			return
		}
		r, err := newRun(ctx, nil, func(ctx context.Context, s *slot[In, Out]) (err error) {
			s.out, err = work(ctx, s.in)
			return err
		}, opts, opts.StopOnError)
		if err != nil {
			yield(none, err)
			return
		}
		defer r.close()

		var ahead []*slot[In, Out]
		limit := r.engine.slots.Limit + int(r.engine.intake.rooms[0].Limit)
		// emit yields the oldest result; false if the loop is over.
		emit := func() bool {
			s := ahead[0]
			ahead = ahead[1:]
			if s.err == nil {
				s.err = r.engine.await(r.group.ctx, s.operation, nil, true)
			}
			if s.err == nil {
				return yield(s.out, nil)
			}
			if cause := r.group.parentCause(); cause != nil {
				yield(none, cause) // the body may still write s.out
				return false
			}
			if cause := r.group.stopped(s.operation); cause != nil {
				yield(none, cause)
				return false
			}
			out := none
			if s.ready() {
				out = s.out
			}
			if opts.StopOnError {
				r.group.halt(s.err)
			}
			return yield(out, s.err) && !opts.StopOnError
		}
		cut := false
		for in := range seq {
			s := &slot[In, Out]{in: in}
			s.operation, s.err = r.group.enqueue(r.group.ctx, s)
			ahead = append(ahead, s)
			for len(ahead) == limit || len(ahead) > 0 && ahead[0].ready() {
				if !emit() {
					return
				}
			}
			if r.group.ctx.Err() != nil { // StopOnError, or the end of ctx
				cut = r.group.parentCause() != nil
				break
			}
		}
		for len(ahead) > 0 {
			if !emit() {
				return
			}
		}
		if cut {
			yield(none, r.group.parentCause())
		}
	}
}

// slot is an item on its way through Map.
type slot[In, Out any] struct {
	in        In
	out       Out
	err       error // why it was not accepted
	operation *Operation
}

// ready reports whether the result can be had without waiting.
func (s *slot[In, Out]) ready() bool {
	return s.operation == nil || s.operation.engine.ended(s.operation)
}
