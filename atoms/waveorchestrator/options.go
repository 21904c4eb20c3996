package waveorchestrator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure an [Orchestrator]. The zero value is the default. For numbers and durations, 0
// means the stated default, and a negative value means none. Options are copied.
type Options[Out any] struct {
	// Name is the Source of the signals of executions. The Source of the signals of workers is
	// Name + ".workers"; SignalBreakerOpened has no Source. "" means "waveorchestrator".
	//
	//ephemeral:none
	Name string
	// Sink is where the signals are raised; nil means a new sink.
	Sink *signals.Sink

	// TotalTimeout is how long an execution may take; 0 means 5 seconds, negative no
	// limit.
	TotalTimeout time.Duration
	// WorkerTimeout is how long one worker may take; 0 means 2 seconds, negative no
	// limit.
	WorkerTimeout time.Duration
	// WaveInterval is the pause between two waves that run; 0 means 50 milliseconds,
	// negative none.
	WaveInterval time.Duration
	// Grace is how long an execution waits for a worker to return after the end of the worker's
	// context; 0 means 100 milliseconds, negative none. After that time the worker is abandoned.
	Grace time.Duration

	// MaxConcurrency is how many executions run at once; 0 and negative mean no limit. Further
	// calls of Execute wait. While a worker waits in such a call, its WorkerTimeout goes on.
	// SetMaxConcurrency changes the limit.
	MaxConcurrency int
	// MaxPerWave is how many workers of a wave run at once in an execution; 0 means 4,
	// negative no limit. With 1 they run one after the other, in the order of their
	// priorities.
	MaxPerWave int
	// PerWave replaces MaxPerWave for single waves. The key is the number of the wave; the value
	// 0 means MaxPerWave, negative no limit. A number without workers is an error.
	PerWave map[int]int

	// BreakerThreshold is how many failures in a row open the breaker of a worker; 0
	// means 3, negative that there are no breakers.
	BreakerThreshold int
	// BreakerReset is how long an open breaker keeps its worker from running; 0 means 30
	// seconds, negative that the next execution probes. After that time, one execution runs the
	// worker as a probe. If the probe has no result after the same time again, another execution
	// probes.
	BreakerReset time.Duration

	// EarlyExit reports whether the value of a worker is decisive: then no more workers are
	// needed. nil means no early exit. It is called for the value of each completed worker,
	// one at a time, in the order in which they complete, until it returns true. It runs on
	// the goroutine of the execution and should be quick. If it panics, the execution ends,
	// and Execute returns a [core.PanicError].
	EarlyExit func(Out) bool
}

// resolved returns the options with defaults in place of zeroes. A negative limit becomes never or
// unlimited. A negative WaveInterval or Grace becomes 0.
func (o Options[Out]) resolved(waves []wave) (Options[Out], error) {
	for number := range o.PerWave {
		if !slices.ContainsFunc(waves, func(w wave) bool { return w.number == number }) {
			return o, fmt.Errorf("waveorchestrator: Options.PerWave limits wave %d, but no worker is in it", number)
		}
	}
	o.Name = cmp.Or(o.Name, "waveorchestrator")
	o.TotalTimeout = limit(o.TotalTimeout, 5*time.Second, never)
	o.WorkerTimeout = limit(o.WorkerTimeout, 2*time.Second, never)
	o.WaveInterval = limit(o.WaveInterval, 50*time.Millisecond, 0)
	o.Grace = limit(o.Grace, 100*time.Millisecond, 0)
	o.MaxConcurrency = limit(o.MaxConcurrency, unlimited, unlimited)
	o.MaxPerWave = limit(o.MaxPerWave, 4, unlimited)
	o.BreakerThreshold = limit(o.BreakerThreshold, 3, unlimited)
	return o, nil
}

func limit[N int | time.Duration](n, normally, none N) N {
	if n = cmp.Or(n, normally); n < 0 {
		return none
	}
	return n
}

// unlimited is more than any limit can reach, and a number that every reader of JSON accepts.
const unlimited = math.MaxInt32

// never is a point in time, as a duration since New, that does not come.
const never = time.Duration(1<<63 - 1)

// after returns when d will have passed.
func after(now, d time.Duration) time.Duration { return now + min(d, never-now) }
