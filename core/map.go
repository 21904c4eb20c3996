package core

import (
	"context"
	"iter"
)

// Map runs work for every item of seq, a bounded number at once, and walks the
// results in the order of the items, or, for an item that failed, its error; a
// panic of work is a [PanicError]. It works ahead of the loop by as many items as
// may run and be queued, and no more. Leaving the loop cancels what runs and waits
// for it.
//
// When ctx ends, Map takes no more items, cancels what runs, and ends with the
// cause of ctx after the results that were ready. With [Options.StopOnError] it
// ends after the first error. If the options are not valid, the loop sees just
// that error. The loop runs on the goroutine that called it.
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
		}, opts)
		if err != nil {
			yield(none, err)
			return
		}
		defer r.close()

		var ahead []*slot[In, Out]
		limit := r.limit + int(r.intake.queues[0].limit)
		// emit yields the oldest result; false if the loop is over.
		emit := func() bool {
			s := ahead[0]
			ahead = ahead[1:]
			if s.err == nil {
				s.err = r.see(r.ctx, s.operation)
			}
			if s.err == nil {
				return yield(s.out, nil)
			}
			if cause := r.cause(); cause != nil {
				yield(none, cause)
				return false
			}
			return yield(none, s.err) && !opts.StopOnError // the body may still be at s.out
		}
		cut := false
		for in := range seq {
			s := &slot[In, Out]{in: in}
			s.operation, s.err = r.enqueue(r.ctx, s, true)
			ahead = append(ahead, s)
			for len(ahead) == limit || len(ahead) > 0 && ahead[0].ready() {
				if !emit() {
					return
				}
			}
			if cut = r.cause() != nil; cut {
				break
			}
		}
		for len(ahead) > 0 {
			if !emit() {
				return
			}
		}
		if cut {
			yield(none, r.cause())
		}
	}
}

// slot is an item on its way through Map.
type slot[In, Out any] struct {
	in        In
	out       Out
	err       error // it was not accepted
	operation *Operation
}

// ready reports whether the result can be had without waiting.
func (s *slot[In, Out]) ready() bool {
	if s.operation == nil {
		return true
	}
	e := s.operation.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.operation.status&StatusFinished != 0
}
