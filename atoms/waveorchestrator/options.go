package waveorchestrator

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure an [Orchestrator]. The zero value is the default; for numbers
// and durations 0 is the stated default and a negative value means none. Options
// are copied.
type Options[Out any] struct {
	// Name tells orchestrators apart: it is the Source of the signals that they
	// and their workers raise, except SignalBreakerOpened. "" means
	// "waveorchestrator".
	Name string
	// Sink is where these signals are raised; nil means one of the
	// orchestrator's own.
	Sink *core.Sink

	// TotalTimeout is how long an execution may take; 0 means 5 seconds,
	// negative no limit. See Grace for who does not heed it.
	TotalTimeout time.Duration
	// WorkerTimeout is how long one worker may; 0 means 2 seconds, negative no
	// limit.
	WorkerTimeout time.Duration
	// WaveInterval is the pause between two waves that run; 0 means 50
	// milliseconds, negative none.
	WaveInterval time.Duration
	// Grace is how much longer an execution waits for a worker whose context
	// has ended; then it is abandoned. 0 means 100 milliseconds, negative that
	// who does not return at once is abandoned.
	Grace time.Duration

	// MaxPerWave is how many workers of a wave run at once in an execution; 0
	// means 4, negative no limit. With 1 they run one after the other, in the
	// order of their priorities.
	MaxPerWave int
	// PerWave is the same for single waves, by number: 0 means MaxPerWave. A
	// number of which there is no wave is an error.
	PerWave map[int]int
	// MaxAbandoned is how many abandoned runs of one worker may still be
	// running before that worker is skipped; 0 means 8, negative no limit.
	MaxAbandoned int

	// BreakerThreshold is how many failures in a row open the breaker of a
	// worker; 0 means 3, negative that there are no breakers.
	BreakerThreshold int
	// BreakerReset is how long an open breaker keeps its worker from running;
	// then one execution may probe it. 0 means 30 seconds, negative that the
	// next execution probes it.
	BreakerReset time.Duration

	// EarlyExit is asked about the value of each worker that has completed, in
	// the order in which they do, one at a time, until it says true: that one
	// is decisive, and nothing more is run. nil means no early exit. It is
	// called on the goroutine that conducts the execution, which decides
	// nothing meanwhile, so it should be quick. A panic of it ends the
	// execution; Execute returns it as a [core.PanicError].
	EarlyExit func(Out) bool

	// MaxTracked is how many finished executions and runs of workers
	// [Orchestrator.Operations] still shows, and the sink the signals of; 0
	// means 200, negative none.
	MaxTracked int
	// MaxAge is how long they are shown; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
}

const (
	defaultTotalTimeout     = 5 * time.Second
	defaultWorkerTimeout    = 2 * time.Second
	defaultWaveInterval     = 50 * time.Millisecond
	defaultGrace            = 100 * time.Millisecond
	defaultMaxPerWave       = 4
	defaultMaxAbandoned     = 8
	defaultBreakerThreshold = 3
	defaultBreakerReset     = 30 * time.Second
)

// resolved returns the options with defaults filled in. Limits that are none are
// [never] or unlimited; other things that are none are 0.
func (o Options[Out]) resolved(waves []wave) (Options[Out], error) {
	for number := range o.PerWave {
		if !hasWave(waves, number) {
			return o, fmt.Errorf("waveorchestrator: Options.PerWave limits wave %d, but no worker is in it", number)
		}
	}
	if o.Name == "" {
		o.Name = "waveorchestrator"
	}
	o.TotalTimeout = span(o.TotalTimeout, defaultTotalTimeout, never)
	o.WorkerTimeout = span(o.WorkerTimeout, defaultWorkerTimeout, never)
	o.WaveInterval = span(o.WaveInterval, defaultWaveInterval, 0)
	o.Grace = span(o.Grace, defaultGrace, 0)
	o.BreakerReset = span(o.BreakerReset, defaultBreakerReset, 0)
	o.MaxPerWave = limit(o.MaxPerWave, defaultMaxPerWave)
	o.MaxAbandoned = limit(o.MaxAbandoned, defaultMaxAbandoned)
	o.BreakerThreshold = limit(o.BreakerThreshold, defaultBreakerThreshold)
	for i := range waves {
		waves[i].limit = limit(o.PerWave[waves[i].number], o.MaxPerWave)
	}
	o.PerWave = nil // the caller's map
	return o, nil
}

func span(d, normally, none time.Duration) time.Duration {
	switch {
	case d == 0:
		return normally
	case d < 0:
		return none
	}
	return d
}

// unlimited is more than there can be of anything.
const unlimited = int(^uint(0) >> 1)

func limit(n, normally int) int {
	switch {
	case n == 0:
		return normally
	case n < 0:
		return unlimited
	}
	return n
}

// never is a point in time, as what passes since an orchestrator was made, that
// does not come.
const never = time.Duration(1<<63 - 1)

// after returns when d will have passed.
func after(now, d time.Duration) time.Duration {
	if d >= never-now {
		return never
	}
	return now + d
}
