package reputation

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	// SignalUpdate is raised by [Scores.Update], with the key of the score.
	SignalUpdate = "reputation.update"
	// SignalInvalidate is raised by [Scores.Invalidate], with the key of the
	// score, whether there was one or not.
	SignalInvalidate = "reputation.invalidate"
)

var (
	// Updates are the signals [SignalUpdate], with the new score.
	Updates = core.NewKind[float64](SignalUpdate)
	// Invalidations are the signals [SignalInvalidate], with the score there
	// was.
	Invalidations = core.NewKind[float64](SignalInvalidate)
)

// Options configure [Scores]. HalfLife is required.
type Options struct {
	// HalfLife is the time in which a score halves.
	HalfLife time.Duration
	// Capacity is how many scores are kept; 0 means 1024.
	Capacity int
	// Floor is where a score ends: one that is nearer to 0 is forgotten, and is
	// 0. 0 means 0.001, which suits updates by about 1; negative means none.
	Floor float64
	// Sink is where changes are raised; nil means nowhere.
	Sink *core.Sink
}

const (
	defaultCapacity = 1024
	defaultFloor    = 0.001
)

// Scores are the scores of keys. Make them with [New]. They own no goroutine and
// need no closing. All methods are safe for concurrent use.
type Scores[K ~string] struct {
	sink *core.Sink
	base time.Time

	mu      sync.Mutex
	book    book[K]
	ignored uint64
}

// New makes an empty set of scores, or says what is wrong with the options.
func New[K ~string](opts Options) (*Scores[K], error) {
	var errs []error
	if opts.HalfLife <= 0 {
		errs = append(errs, fmt.Errorf("reputation: Options.HalfLife is %v, but must be positive", opts.HalfLife))
	}
	if opts.Capacity < 0 {
		errs = append(errs, fmt.Errorf("reputation: Options.Capacity is %d, but must not be negative", opts.Capacity))
	}
	if math.IsNaN(opts.Floor) || math.IsInf(opts.Floor, 0) {
		errs = append(errs, fmt.Errorf("reputation: Options.Floor is %v, but must be finite", opts.Floor))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if opts.Capacity == 0 {
		opts.Capacity = defaultCapacity
	}
	if opts.Floor == 0 {
		opts.Floor = defaultFloor
	}
	return &Scores[K]{
		sink: opts.Sink,
		base: time.Now(),
		book: newBook[K](opts.Capacity, float64(opts.HalfLife), opts.Floor),
	}, nil
}

// Update adds delta to the score of key, as it is now, raises [SignalUpdate], and
// returns the new score. Signals of concurrent updates of a key may come in either
// order. A delta that is infinite or not a number changes nothing, is counted in
// [Stats], and raises no signal; a score does not exceed what a float64 holds.
func (s *Scores[K]) Update(key K, delta float64) (score float64) {
	finite := !math.IsNaN(delta) && !math.IsInf(delta, 0)
	s.mu.Lock()
	now := s.now()
	if finite {
		score = s.book.update(key, delta, now)
	} else {
		score = s.book.score(key, now)
		s.ignored++
	}
	s.mu.Unlock()
	if finite && s.sink != nil {
		Updates.Raise(s.sink, string(key), score)
	}
	return score
}

// Score returns the score of key as it is now; 0 if it has none.
func (s *Scores[K]) Score(key K) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.score(key, s.now())
}

// Invalidate forgets the score of key and raises [SignalInvalidate]. It reports
// whether there was one.
func (s *Scores[K]) Invalidate(key K) bool {
	s.mu.Lock()
	score := s.book.score(key, s.now())
	s.book.remove(key)
	s.mu.Unlock()
	if s.sink != nil {
		Invalidations.Raise(s.sink, string(key), score)
	}
	return score != 0
}

// All walks the scores as of the start of the loop, the highest first. It copies and
// sorts them.
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

// Stats are what [Scores] hold and have dropped.
type Stats struct {
	Len      int    `json:"len"` // scores that are not forgotten
	Capacity int    `json:"capacity"`
	Evicted  uint64 `json:"evicted"` // forgotten to make room for others
	Ignored  uint64 `json:"ignored"` // updates by what is not a finite number
}

// Stats returns the counters.
func (s *Scores[K]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.fade(s.now())
	return Stats{
		Len:      len(s.book.heap),
		Capacity: s.book.capacity,
		Evicted:  s.book.evicted,
		Ignored:  s.ignored,
	}
}

// now is the time since the scores were made. It is monotonic, so a clock that is
// set back decays nothing and restores nothing.
func (s *Scores[K]) now() time.Duration { return time.Since(s.base) }
