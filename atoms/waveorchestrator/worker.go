package waveorchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
)

// A Worker is a function with a name, a wave and a priority.
type Worker[In, Out any] struct {
	// Name identifies the worker in results and signals. It is required and unique. It has at
	// most 128 bytes, no comma, colon, "*", "?" or control character, and no blanks at its
	// ends.
	//
	//ephemeral:none
	Name string
	// Wave is the number of the worker's wave. Waves run in the order of their numbers. The numbers
	// may be negative, and may have gaps.
	Wave int
	// Priority orders the workers of a wave, if not all of them may run at once: lower numbers
	// start first. Workers of the same priority start in the order of their names.
	Priority int
	// Do is the work. Its context has the values of the context of Execute, and the run's
	// operation ([core.OperationFrom]). The context ends when the time of the worker is over
	// or the execution ends. Then Do should return; see [Options.Grace]. The cause is
	// [ErrWorkerTimeout], [ErrTimeout], [ErrEarlyExit], the cause of the context of Execute, the
	// cause of Cancel, or [core.ErrClosed].
	//
	// All workers get the same input. If the input is a pointer, workers of a wave and abandoned
	// runs use the same memory at the same time. Later waves see the changes of earlier ones.
	Do core.ResultWork[In, Out]
}

// WorkerStatus is the state of a worker, across executions.
type WorkerStatus struct {
	Name     string        `json:"name"`
	Breaker  breaker.State `json:"breaker"`
	Failures int           `json:"failures"`       // in a row
	Retry    time.Time     `json:"retry,omitzero"` // when a probe may run; zero unless Breaker is open
}

const maxName = 128

func (w *Worker[In, Out]) validate(i int) error {
	switch {
	case w.Name == "":
		return fmt.Errorf("waveorchestrator: worker %d needs a Name", i)
	case len(w.Name) > maxName:
		return fmt.Errorf("waveorchestrator: the name of worker %d has %d bytes, and may have %d", i, len(w.Name), maxName)
	case strings.ContainsAny(w.Name, ",:*?") || strings.ContainsFunc(w.Name, unicode.IsControl) || strings.TrimSpace(w.Name) != w.Name:
		return fmt.Errorf("waveorchestrator: the name %q of worker %d must not have commas, colons, *, ?, control characters or blanks around it",
			w.Name, i)
	case w.Do == nil:
		return fmt.Errorf("waveorchestrator: worker %q needs a function Do, not nil", w.Name)
	}
	return nil
}

// wave is the workers of one wave: a part of all members, in their order.
type wave struct {
	number    int
	key       string // number
	from, end int    // workers
	limit     int
	started   string // name of SignalWaveStarted if all workers of the wave run
}

// plan checks workers and puts them in order.
func plan[In, Out any](list []Worker[In, Out]) ([]*member[In, Out], []wave, error) {
	if len(list) == 0 {
		return nil, nil, errors.New("waveorchestrator: there must be at least one worker")
	}
	members := make([]*member[In, Out], len(list))
	for i := range list {
		w := list[i]
		if err := w.validate(i); err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(list[:i], func(other Worker[In, Out]) bool { return other.Name == w.Name }) {
			return nil, nil, fmt.Errorf("waveorchestrator: there are two workers %q, but names tell them apart", w.Name)
		}
		members[i] = &member[In, Out]{Worker: w, started: SignalWorkerStarted + ":" + w.Name, release: func() {}}
	}
	slices.SortFunc(members, func(a, b *member[In, Out]) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	var waves []wave
	for i, m := range members {
		if len(waves) == 0 || waves[len(waves)-1].number != m.Wave {
			waves = append(waves, wave{number: m.Wave, key: strconv.Itoa(m.Wave), from: i})
		}
		waves[len(waves)-1].end = i + 1
	}
	return members, waves, nil
}

// member is a worker and its state across executions.
type member[In, Out any] struct {
	Worker[In, Out]
	started string // name of SignalWorkerStarted

	// Guarded by the orchestrator's mu.
	breaker *breaker.Breaker
	release func() // releases SignalBreakerOpened
}
