package reputation

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var (
	// Updates are raised by [Scores.Update], with the key of the score and the new score.
	Updates = signals.NewKind[float64]("reputation.updated")
	// Invalidations are raised by [Scores.Invalidate], with the key of the score and the former
	// score, whether there was one or not.
	Invalidations = signals.NewKind[float64]("reputation.invalidated")
)

// Options configure [Scores]. HalfLife is required.
type Options struct {
	// HalfLife is the time in which a score halves.
	HalfLife time.Duration
	// Capacity is how many scores are kept; 0 means 1024.
	Capacity int
	// Floor is the least absolute value of a score: a score nearer to 0 is forgotten.
	// 0 means 0.001, which suits updates by about 1; negative means no floor.
	Floor float64
	// Sink is where changes are raised; nil means nowhere, so that updates stay
	// cheap.
	Sink *signals.Sink
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	err := errors.Join(
		check.Error(o.HalfLife <= 0, "reputation: Options.HalfLife is %v, but must be positive", o.HalfLife),
		check.NotNegative("reputation: Options.Capacity", o.Capacity),
		check.Error(!finite(o.Floor), "reputation: Options.Floor is %v, but must be finite", o.Floor),
	)
	o.Capacity, o.Floor = cmp.Or(o.Capacity, 1024), cmp.Or(o.Floor, 0.001)
	return o, err
}

// Scores are the scores of keys. Make them with [New]. They own no goroutine and
// need no closing. All methods are safe for concurrent use.
type Scores[K ~string] struct {
	opts Options
	base time.Time

	mu   sync.Mutex
	book book[K]
}

// New makes an empty set of scores, or says what is wrong with the options.
func New[K ~string](opts Options) (*Scores[K], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	return &Scores[K]{
		opts: opts,
		base: time.Now(),
		book: newBook[K](opts.Capacity, float64(opts.HalfLife), opts.Floor),
	}, nil
}

// Update adds delta to the present score of key, raises [Updates], and returns
// the new score. Signals of concurrent updates of a key may come in either order. A
// delta that is infinite or NaN changes nothing and raises no
// signal. A score is at most the largest float64.
func (s *Scores[K]) Update(key K, delta float64) (score float64) {
	s.mu.Lock()
	now := s.now()
	if finite(delta) {
		score = s.book.update(key, delta, now)
	} else {
		score = s.book.score(key, now)
	}
	s.mu.Unlock()
	if finite(delta) && s.opts.Sink != nil {
		Updates.Raise(s.opts.Sink, string(key), score)
	}
	return score
}

// Score returns the present score of key, or 0.
func (s *Scores[K]) Score(key K) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.score(key, s.now())
}

// Invalidate forgets the score of key and raises [Invalidations]. It reports
// whether there was one.
func (s *Scores[K]) Invalidate(key K) bool {
	s.mu.Lock()
	score := s.book.score(key, s.now())
	s.book.remove(key)
	s.mu.Unlock()
	if s.opts.Sink != nil {
		Invalidations.Raise(s.opts.Sink, string(key), score)
	}
	return score != 0
}

// All yields the scores that exist when the loop starts, highest first. It copies and sorts
// them.
func (s *Scores[K]) All() iter.Seq2[K, float64] {
	return func(yield func(K, float64) bool) {
		s.mu.Lock()
		all := s.book.all(s.now())
		s.mu.Unlock()
		slices.SortFunc(all, higher[K])
		for _, e := range all {
			if !yield(e.key, e.score) {
				return
			}
		}
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// now is the time since the scores were made. It is monotonic: setting the clock back
// does not change scores.
func (s *Scores[K]) now() time.Duration { return time.Since(s.base) }
