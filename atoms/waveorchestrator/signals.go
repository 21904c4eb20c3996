package waveorchestrator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The signals of an orchestrator. Their payload is an [Event]. If a signal is about a worker or a
// wave, its key is the name of the worker or the number of the wave. Some names have details after
// the constant; the payload has these details, too. Match such names by pattern:
// "worker.failed:*" matches all failures, "worker.completed:db:*" all completed runs of the worker
// db.
const (
	// SignalStarted is raised when an execution begins.
	SignalStarted = "wave.orchestrator.started"
	// SignalCompleted is raised as SignalCompleted:duration={ms}:results={count} when an
	// execution that has begun ends, with any outcome. The count is the number of workers that
	// have completed.
	//
	//ephemeral:raises wave.orchestrator.completed:*
	SignalCompleted = "wave.orchestrator.completed"
	// SignalFailed is raised when all waves were run and no worker has completed.
	SignalFailed = "wave.failed"
	// SignalTimeout is raised as SignalTimeout:elapsed={ms} when [Options.TotalTimeout]
	// has passed.
	//
	//ephemeral:raises wave.timeout:*
	SignalTimeout = "wave.timeout"
	// SignalWaveStarted is raised as SignalWaveStarted:wave={N}:workers={count}. The count is
	// the number of workers that are not skipped. If all workers of a wave are skipped, the
	// signal is not raised.
	//
	//ephemeral:raises wave.started:*
	SignalWaveStarted = "wave.started"
	// SignalEarlyExit is raised as SignalEarlyExit:wave={N} when a result of that wave
	// was decisive. The payload names the worker.
	//
	//ephemeral:raises wave.early_exit:*
	SignalEarlyExit = "wave.early_exit"

	// SignalWorkerStarted is raised as SignalWorkerStarted:{name}.
	//
	//ephemeral:raises worker.started:*
	SignalWorkerStarted = "worker.started"
	// SignalWorkerCompleted is raised as SignalWorkerCompleted:{name}:duration={ms}.
	//
	//ephemeral:raises worker.completed:*
	SignalWorkerCompleted = "worker.completed"
	// SignalWorkerFailed is raised as SignalWorkerFailed:{name}:error={message} when a worker
	// has returned an error or panicked. The name of the signal has up to 128 bytes of the
	// message, without commas, "*", "?" and control characters. The payload has the error.
	//
	//ephemeral:raises worker.failed:*
	SignalWorkerFailed = "worker.failed"
	// SignalWorkerTimeout is raised as SignalWorkerTimeout:{name}:duration={ms} when a worker
	// has taken longer than [Options.WorkerTimeout]. Then SignalWorkerFailed is not raised.
	//
	//ephemeral:raises worker.timeout:*
	SignalWorkerTimeout = "worker.timeout"
	// SignalWorkerAbandoned is raised when a worker has not returned within
	// [Options.Grace].
	SignalWorkerAbandoned = "worker.abandoned"

	// SignalBreakerOpened is held as SignalBreakerOpened:{name}:failures={count} while a
	// breaker is open: for [Options.BreakerReset], or until Close. A coordinator can wait for the
	// end with [core.Options.DeferOn]. The signal has no payload and no Source.
	//
	//ephemeral:raises circuit.opened:*
	SignalBreakerOpened = "circuit.opened"
	// SignalBreakerClosed is raised when a probe has completed.
	SignalBreakerClosed = "circuit.closed"
)

// Events are the signals of an orchestrator with their payload, except SignalBreakerOpened.
var Events = signals.NewFamily[Event]("wave.*,worker.*," + SignalBreakerClosed)

// An Event is the payload of [Events]. Which fields are set depends on the signal.
type Event struct {
	Execution core.OperationID // the operation that is the execution
	Worker    string
	Wave      int
	Workers   int           // in SignalWaveStarted: workers that run; in SignalCompleted: workers that have completed
	Duration  time.Duration // time of the run, or of the execution so far
	Err       error         // why the run failed or was cancelled; in SignalFailed: ErrFailed
	Outcome   Outcome       // in SignalCompleted
}

func waveStarted(key string, workers int) string {
	return SignalWaveStarted + ":wave=" + key + ":workers=" + strconv.Itoa(workers)
}

// millis is d in whole milliseconds.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// maxMessage is how many bytes of an error are in the name of a signal.
const maxMessage = 128

// message is the text of an error, changed so that it can be part of a name. If the Error method
// panics, the text says so.
func message(err error) string {
	text := fmt.Sprintf("%v", err)
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "_")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == ',':
			return ';'
		case r == '*', r == '?', unicode.IsControl(r):
			return '_'
		}
		return r
	}, text)
	return strings.TrimRightFunc(text, unicode.IsSpace)
}
